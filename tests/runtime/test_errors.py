"""What is raised for a run that ended early names the node, and the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import IndexRangeError
from retrograd.ir import Graph, int64, spec, uint64
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Slice
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram


@pytest.mark.parametrize("dtype", [int64, uint64], ids=str)
def test_index_errors_name_the_node(dtype) -> None:
    x = input_node(spec((5, 2)), "x")
    i = input_node(spec((3,), dtype), "i")
    u = input_node(spec((3, 2)), "u")
    row = Gather(0)(x, i).renamed("rows")
    # A position that no output reads is out of range all the same.
    program = Executable(Graph([x, i, u], [Slice((0, 0), (1, 2), (1, 1))(row)]))
    scatter = Executable(Graph([x, i, u], [ScatterAdd(0)(x, i, u)]))
    arrays = [np.zeros((5, 2), np.float32), np.array([1, 2, 4], dtype.dtype),
              np.ones((3, 2), np.float32)]  # fmt: skip
    for p, op in ((program, "gather"), (scatter, "scatter_add")):
        p(arrays)
        for bad in (5, 2**40) if dtype is uint64 else (5, -6, -(2**63), 2**63 - 1):
            wrong = arrays[1].copy()
            wrong[2] = bad
            with pytest.raises(IndexRangeError, match=f"{op} with the index {bad} .* of size 5"):
                p([arrays[0], wrong, arrays[2]])
            with pytest.raises(IndexRangeError):
                ReferenceProgram(p.graph)([arrays[0], wrong, arrays[2]])
        assert len(p(arrays)) == 1  # usable after an error
    with pytest.raises(IndexRangeError, match="rows = "):
        program([arrays[0], np.full(3, 9, dtype.dtype), arrays[2]])


def raised(f: Any, *arrays: Any) -> str:
    """What a compiled program says, and the reference in the same words."""
    found = []
    for backend in ("llvm", "reference"):
        with rg.backend(backend), pytest.raises(rg.errors.RetrogradError) as caught:
            f(*[rg.tensor(a) for a in arrays]).numpy()
        found.append((type(caught.value), str(caught.value).splitlines()[0]))
    assert found[0][0] is found[1][0]
    return found[0][1]


def test_routines_say_which_matrix_and_why() -> None:
    x = np.stack([np.eye(3)] * 4)
    x[2] = -x[2]
    assert "[2]" in raised(rg.jit(rg.linalg.cholesky), x)
    x[2] = 0
    text = raised(rg.jit(rg.linalg.inv), x)
    assert "[2]" in text
    assert "singular" in text


def test_circles_are_named_by_the_meaning_of_the_order() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 0]])

    def f(edges: Any, x: Any) -> Any:
        return gnn.dag_scan(lambda a, b: a + b, gnn.Graph(3, edges), x)

    with pytest.raises(rg.errors.CycleError, match=r"0|1|2"):
        rg.jit(lambda x: f(edges, x))(np.ones((3, 2), np.float32)).numpy()


def test_loops_that_do_more_steps_than_they_may() -> None:
    def f(x: Any) -> Any:
        return rg.while_loop(lambda y: y < 100, lambda y: y + 1, x, max_steps=7)

    assert "7" in raised(rg.jit(f), np.float32(0))
