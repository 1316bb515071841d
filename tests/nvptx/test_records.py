"""The op records on the cuda backend: the PTX that is shipped, run by the interpreter, against the
reference; and to the bit against the llvm backend."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, bool_, spec
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.runtime.paired_program import on_real
from retrograd.verify.records import RECORDS
from tests.nvptx.interpreted_device import interpreted
from tests.runtime.agreement import ULPS, assert_same
from tests.sampling import mostly_exhaustive, sampled

# One for each kind of kernel; all of them take minutes of interpreting.
FEW = ["add", "reduce_max", "cumsum", "argmax", "searchsorted", "while_loop", "scatter_add", "mod"]
NAMES = [n for n in RECORDS if n != "input"]
pytestmark = pytest.mark.filterwarnings("ignore:overflow")


def of_record(name: str, most: int | None) -> tuple[Graph, list[Array]]:
    """Samples of a record in one graph."""
    inputs: list[Node] = []
    outputs: list[Node] = []
    arrays: list[Array] = []
    samples = list(RECORDS[name].samples())
    for sample in samples if most is None else sampled(samples, most, name):
        nodes = sample.nodes()
        inputs += nodes
        outputs.append(sample.op(*nodes))
        arrays += sample.inputs
    return Graph(inputs, outputs), arrays


def check(name: str, most: int | None = None) -> None:
    record = RECORDS[name]
    graph, arrays = of_record(name, most)
    ulps = max(4 * record.ulps, 16)
    program = interpreted(graph)
    assert_same(graph, arrays, ulps, program, scale=record.absolute / ulps)
    native = on_real(graph, lambda real: Executable(real, simplify=True))(arrays)
    for y, r in zip(program(arrays), native, strict=True):
        nan = np.isnan(r) if r.dtype.kind in "fc" else np.zeros(r.shape, np.bool_)
        np.testing.assert_array_equal(y[~nan].view(np.uint8), r[~nan].view(np.uint8), err_msg=name)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.sample(1)
def test_some(name: str) -> None:
    check(name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive(NAMES, 40))
def test_all(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_exhaustive([n for n in NAMES if RECORDS[n].symbolic], 20))
def test_symbolic_sizes(name: str) -> None:
    check_symbolic(name)


@pytest.mark.parametrize("name", ["sort", "reduce_sum"])
@pytest.mark.sample(1)
def test_some_symbolic_sizes(name: str) -> None:
    check_symbolic(name, 1)


def check_symbolic(name: str, most: int | None = None) -> None:
    cases = list(RECORDS[name].symbolic)
    for case in cases if most is None else sampled(cases, most, name):
        nodes = [input_node(t) for t in case.types]
        # An input that tells all the sizes, even those that occur in attributes only.
        named = input_node(spec(tuple(Dim(n) for n in case.sizes[0]), bool_))
        graph = Graph([*nodes, named], [case.op(*nodes)])
        program = interpreted(graph)
        for sizes in case.sizes:
            types = [*case.types, named.type]
            arrays = [case.draw(t.bind(sizes)) for t in types]
            assert_same(graph, arrays, max(4 * RECORDS[name].ulps, ULPS), program)
