"""Joining, splitting, inserting, deleting, turning: against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import SHAPES, agree, numbers


@pytest.mark.parametrize("name", ["ravel", "fliplr", "flipud", "atleast_1d", "atleast_2d",
                                  "atleast_3d", "diagflat", "rot90", "vander"])  # fmt: skip
def test_of_every_shape(name: str) -> None:
    for seed, shape in enumerate(SHAPES):
        if name == "vander" and len(shape) != 1:
            continue
        agree(name, numbers(seed, shape))


def test_turns() -> None:
    x = numbers(0, (2, 3, 4))
    for k in range(-5, 6):
        for axes in ((0, 1), (1, 0), (-1, 0), (2, 1)):
            agree("rot90", x, k, axes)
    for axis in range(3):
        for start in range(-3, 4):
            agree("rollaxis", x, axis, start)
    agree("rot90", x, 1, (0, 0))


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
def test_stacks(name: str) -> None:
    for shapes in ([(3,), (3,)], [(2, 3), (2, 3)], [(3,), (2, 3)], [(0,), (0,)], [(), ()],
                   [(2, 0), (2, 1)], [(2, 1, 3), (2, 1, 3)]):  # fmt: skip
        arrays = [numbers(i, s) for i, s in enumerate(shapes)]
        given: Any = [rg.asarray(a) for a in arrays]
        try:
            right = getattr(np, name)(arrays)
        except ValueError:
            with pytest.raises(rg.RetrogradError):
                getattr(rg, name)(given)
        else:
            np.testing.assert_array_equal(getattr(rg, name)(given).numpy(), right)
    with pytest.raises(rg.ShapeError, match="at least one"):
        getattr(rg, name)([])


def test_parts() -> None:
    for shape in ((5,), (4, 6), (2, 3, 4), (0,)):
        x = numbers(1, shape)
        for wanted in (1, 2, 3, 7, [1], [1, 3], [3, 1], [-1], [0, 9]):
            agree("array_split", x, wanted)
            for name in ("hsplit", "vsplit", "dsplit"):
                if not (name == "vsplit" and shape == (0,)):
                    agree(name, x, wanted)
    agree("array_split", numbers(1, (3,)), 0)


def test_insert_and_delete() -> None:
    x = numbers(3, (3, 4))
    for obj in (
        0,
        2,
        -1,
        [0, 2],
        [2, 2],
        [],
        slice(0, 3, 2),
        np.array([True, False, True]),
        9,
        [-9],
    ):
        for axis in (0, None):
            if not (isinstance(obj, np.ndarray) and axis is None):
                agree("delete", x, obj, axis)
                agree("insert", x, obj, 5.0, axis)
    agree("insert", x, 1, numbers(4, (3,)), 1)
    agree("insert", x, [1], numbers(4, (3, 1)), 1)
    agree("insert", x, [1, 3], numbers(4, (3, 2)), 1)
    agree("insert", x, 1, numbers(4, (2, 4)), 0)
    agree("insert", numbers(1, (3,), "int64"), 1, 2)
    with pytest.raises(rg.TraceError):
        rg.jit(lambda i: rg.delete(rg.arange(3), i))(rg.asarray(1))


def test_append_resize_trim() -> None:
    x = numbers(0, (2, 3))
    agree("append", x, numbers(1, (2, 1)), axis=1)
    agree("append", x, numbers(1, (3,)), axis=0)
    agree("append", x, numbers(1, (3,), "int64"))
    for shape in (7, (3, 3), (0,), (2, 2), ()):
        agree("resize", x, shape)
        agree("resize", numbers(0, (0,)), shape)
    for row in ([0, 0], [], [0, 1, 0], [1.0, np.nan, 0], [0, 0, 2]):
        for trim in ("fb", "f", "b"):
            agree("trim_zeros", np.array(row, float), trim)
    for condition in ([True, False, True], [0, 1]):
        agree("compress", condition, numbers(2, (3, 3)), 1)
        agree("compress", condition, numbers(2, (3, 3)))


def test_block() -> None:
    a, b = numbers(0, (2, 2)), numbers(1, (2, 3))
    given: Any = [[rg.asarray(a), rg.asarray(b)], [rg.asarray(b), rg.asarray(a)]]
    np.testing.assert_array_equal(rg.block(given).numpy(), np.block([[a, b], [b, a]]))
    for lists in ([], [[1], 2]):
        with pytest.raises(rg.ArgumentError):
            rg.block(lists)


def test_gradients_go_to_where_elements_came_from() -> None:
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = rg.tensor([7.0], requires_grad=True)
    y = rg.insert(rg.delete(rg.resize(x, 5), [0, 1]), 1, v) * [1.0, 10.0, 100.0, 1000.0]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [100.0, 1000.0, 1.0]
    assert v.grad is not None
    assert v.grad.tolist() == [10.0]
