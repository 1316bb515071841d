"""Every registered op on the llvm backend: all samples of its record, and all symbolic sizes."""

from __future__ import annotations

import pytest

from retrograd.ir import REGISTRY, Dim, Graph, Node, bool_, spec
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array
from retrograd.runtime.paired_program import on_real
from retrograd.verify.records import RECORDS
from tests.runtime.agreement import ULPS, GuardedProgram, assert_same
from tests.sampling import sampled


@pytest.mark.parametrize("name", [n for n in RECORDS if n != "input"])
@pytest.mark.sample(40)
def test_samples(name: str) -> None:
    check_samples(name)


def check_samples(name: str, slack: float = 1.0) -> None:
    """All samples of a record in one graph: one compilation, and nodes that do not mix up."""
    record = RECORDS[name]
    inputs: list[Node] = []
    outputs: list[Node] = []
    arrays: list[Array] = []
    for sample in sampled(record.samples(), 2, name):
        nodes = sample.nodes()
        inputs += nodes
        outputs.append(sample.op(*nodes))
        arrays += sample.inputs
    ulps = max(4 * record.ulps, 16)
    # Near a zero, as y1 has one at 2.197, the reference itself is only absolutely right.
    assert_same(Graph(inputs, outputs), arrays, ulps, scale=slack * record.absolute / ulps)


@pytest.mark.parametrize("name", [n for n, r in RECORDS.items() if r.symbolic])
@pytest.mark.sample(13)
def test_symbolic_sizes(name: str) -> None:
    for case in sampled(RECORDS[name].symbolic, 1, name):
        nodes = [input_node(t) for t in case.types]
        # An input that tells all the sizes, even those that occur in attributes only.
        named = input_node(spec(tuple(Dim(n) for n in case.sizes[0]), bool_))
        program = on_real(Graph([*nodes, named], [case.op(*nodes)]), GuardedProgram)
        for sizes in case.sizes:
            types = [*case.types, named.type]
            arrays = [case.draw(t.bind(sizes)) for t in types]
            assert_same(program.graph, arrays, max(4 * RECORDS[name].ulps, ULPS), program)


def test_every_op_has_a_record() -> None:
    assert set(REGISTRY) - set(RECORDS) <= {"input"}
