"""Arrays that are given to a program: what fits its inputs, and what sizes follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, Graph, spec
from retrograd.ops.elementwise import neg
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime.backend import bind
from retrograd.runtime.executable import Executable


def test_inputs_are_checked() -> None:
    n = Dim("N")
    x, y = input_node(spec((n, 3)), "x"), input_node(spec((n,)), "y")
    program = Executable(Graph([x, y], [ReduceSum((0, 1))(x), neg(y)]))
    a, b = np.zeros((4, 3), np.float32), np.zeros(4, np.float32)
    with pytest.raises(ShapeError, match="takes 2 arrays"):
        program([a])
    with pytest.raises(DTypeError, match="input 'y'"):
        program([a, b.astype(np.float64)])
    with pytest.raises(ShapeError, match="size"):
        program([a, np.zeros(5, np.float32)])
    static = Executable(Graph([z := input_node(spec((3,)), "z")], [neg(z)]))
    with pytest.raises(ShapeError, match="input 'z'"):
        static([np.zeros(4, np.float32)])


N, M = Dim("N"), Dim("M")


def bound(types: list[tuple[Any, ...]], *shapes: tuple[int, ...]) -> dict[str, int]:
    inputs = [input_node(spec(t), f"x{k}") for k, t in enumerate(types)]
    return bind(inputs, [np.zeros(s, np.float32) for s in shapes])


def test_sizes_follow_from_arrays() -> None:
    assert bound([(3, 4)], (3, 4)) == {}
    assert bound([(N, M), (M,)], (3, 4), (4,)) == {"N": 3, "M": 4}
    assert bound([(N + 1,), (N,)], (4,), (3,)) == {"N": 3}
    assert bound([(2 * N,)], (6,)) == {"N": 3}
    assert bound([(N * M,), (M,)], (12,), (4,)) == {"N": 3, "M": 4}
    assert bound([(N,), (N,)], (0,), (0,)) == {"N": 0}


def test_what_contradicts_itself_is_told_with_both_values() -> None:
    with pytest.raises(ShapeError, match=r"axis 0 of input 'x1'.* 3 .*has 4 there"):
        bound([(N,), (N,)], (3,), (4,))
    with pytest.raises(ShapeError, match=r"has the size N \+ 1 = 4"):
        bound([(N,), (N + 1,)], (3,), (5,))
    with pytest.raises(ShapeError, match="shape"):
        bound([(2 * N,)], (3, 1))
    with pytest.raises(ShapeError):
        bound([(2 * N,)], (5,))
    with pytest.raises(ShapeError, match="does not follow"):
        bound([(N * M,)], (12,))
