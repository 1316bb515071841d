"""Shapes and dtypes that operands have in common."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.broadcasting import (
    as_node,
    joined_dtype,
    listed_axes,
    normal_axes,
    normal_axis,
    number_dtype,
)


def test_shapes_are_broadcast_as_numpy_does():
    sizes: list[Any] = [(), (1,), (3,), (0,), (2, 1), (2, 3), (4, 1, 1), 3]
    for shapes in itertools.product(sizes, repeat=2):
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(rg.ShapeError):
                rg.broadcast_shapes(*shapes)
        else:
            assert rg.broadcast_shapes(*shapes) == expected
    assert rg.broadcast_shapes() == ()
    with pytest.raises(rg.ShapeError):
        rg.broadcast_shapes((-1,))


def test_a_number_takes_the_dtype_of_what_is_beside_it_if_of_its_kind() -> None:
    assert number_dtype(3, rg.int8) is rg.int8
    assert number_dtype(3, rg.float16) is rg.float16
    assert number_dtype(2.5, rg.float64) is rg.float64
    assert number_dtype(2.5, rg.int8) is rg.float32
    assert number_dtype(True, rg.int8) is rg.int8
    assert number_dtype(1j, rg.float64) is rg.complex128
    assert joined_dtype([as_node(np.ones(1, np.int16)), 2.5]) is rg.float32
    assert joined_dtype([2.5, as_node(np.ones(1, np.float16)), True]) is rg.float16


def test_axes_are_counted_from_either_end_and_there_once() -> None:
    assert normal_axis(-1, 3, "f") == 2
    assert normal_axis(-4, 3, "f", new=1) == 0  # one more axis is to come
    assert normal_axes((2, -3), 3, "f") == (0, 2)
    assert listed_axes((2, -3), 3, "f") == (2, 0)
    for axis, words in ((3, "f: .*3"), ((0, -3), "f: "), (1.0, "f: ")):
        with pytest.raises(rg.ShapeError, match=words):
            normal_axes(axis, 3, "f")
