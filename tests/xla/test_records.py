"""Every registered op on the xla backend: all samples of its record, and all symbolic sizes."""

from __future__ import annotations

import pytest

from retrograd.ir import Dim, Graph, Node, bool_, spec
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array
from retrograd.verify.records import RECORDS
from tests.runtime.agreement import ULPS, assert_same
from tests.sampling import mostly_exhaustive, sampled

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.xla.executable import XlaProgram


def check_samples(name: str, most: int) -> None:
    """Samples of a record in one graph: one compilation, and nodes that do not mix up."""
    record = RECORDS[name]
    inputs: list[Node] = []
    outputs: list[Node] = []
    arrays: list[Array] = []
    for sample in sampled(record.samples(), most, name):
        nodes = sample.nodes()
        inputs += nodes
        outputs.append(sample.op(*nodes))
        arrays += sample.inputs
    ulps = max(4 * record.ulps, 16)
    graph = Graph(inputs, outputs)
    scale = record.absolute / ulps
    assert_same(graph, arrays, ulps, XlaProgram(graph), scale=scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive([n for n in RECORDS if n != "input"], 40))
def test_samples(name: str) -> None:
    check_samples(name, 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", mostly_exhaustive([n for n, r in RECORDS.items() if r.symbolic], 20)
)
def test_symbolic_sizes(name: str) -> None:
    for case in RECORDS[name].symbolic:
        nodes = [input_node(t) for t in case.types]
        named = input_node(spec(tuple(Dim(n) for n in case.sizes[0]), bool_))
        program = XlaProgram(Graph([*nodes, named], [case.op(*nodes)]))
        for sizes in case.sizes:
            arrays = [case.draw(t.bind(sizes)) for t in (*case.types, named.type)]
            assert_same(program.graph, arrays, max(4 * RECORDS[name].ulps, ULPS), program)
