"""Every registered op on the wgpu backend: all samples of its record, and all symbolic sizes. What
has no shader says so, and runs where the CPU is asked to help."""

from __future__ import annotations

import pytest

from retrograd.backend_registry import find
from retrograd.errors import BackendError
from retrograd.ir import Dim, Graph, Node, bool_, spec
from retrograd.ops.leaf import input_node
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.backend import Array
from retrograd.verify.records import RECORDS
from retrograd.wgpu import supports
from retrograd.wgpu.fallback import lacking
from tests.runtime.agreement import ULPS, assert_same
from tests.sampling import mostly_exhaustive, sampled
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
BRIEF = ["add", "reduce_sum", "dot_general", "gather", "cast", "sort", "scan", "argmax"]
ALL = [n for n in RECORDS if n != "input"]


@pytest.mark.parametrize("name", BRIEF)
def test_some_samples(name: str) -> None:
    check_samples(name, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive(ALL, 40))
def test_samples(name: str) -> None:
    check_samples(name)


def check_samples(name: str, count: int | None = None) -> None:
    """All samples of a record in one graph: one compilation, and nodes that do not mix up."""
    record = RECORDS[name]
    inputs: list[Node] = []
    outputs: list[Node] = []
    arrays: list[Array] = []
    samples = list(record.samples())
    for sample in samples if count is None else sampled(samples, 2, name)[:count]:
        nodes = sample.nodes()
        inputs += nodes
        outputs.append(sample.op(*nodes))
        arrays += sample.inputs
    graph = Graph(inputs, outputs)
    program = find("wgpu")(graph)
    asked = lacking(real_graph(graph)) is not None
    assert asked == (supports(name, outputs[0].dtype) == "asked")
    if asked:
        with pytest.raises(BackendError, match=r"fallback=True"):
            program(arrays)
        program = find("wgpu+llvm")(graph)
    ulps = max(4 * record.ulps, 16)
    assert_same(graph, arrays, ulps, program, scale=record.absolute / ulps)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", mostly_exhaustive([n for n, r in RECORDS.items() if r.symbolic], 20)
)
def test_symbolic_sizes(name: str) -> None:
    for case in sampled(RECORDS[name].symbolic, 1, name):
        nodes = [input_node(t) for t in case.types]
        # An input that tells all the sizes, even those that occur in attributes only.
        named = input_node(spec(tuple(Dim(n) for n in case.sizes[0]), bool_))
        program = find("wgpu+llvm")(Graph([*nodes, named], [case.op(*nodes)]))
        for sizes in case.sizes:
            types = [*case.types, named.type]
            arrays = [case.draw(t.bind(sizes)) for t in types]
            assert_same(program.graph, arrays, max(4 * RECORDS[name].ulps, ULPS), program)
