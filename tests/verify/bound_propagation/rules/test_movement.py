"""What only moves elements: both ends and marks of NaN go where NumPy puts elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ir import complex64, float16, float32, int8
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice, SliceSet
from retrograd.ops.windows import Windows
from tests.verify.bound_propagation.lattices import found, interval, rectangle

LOW = np.arange(12.0).reshape(3, 4)
NAN = LOW % 5 == 2
ONE: dict[str, Any] = {
    "expand": (Expand((2, 3, 4), (0,)), lambda v: np.broadcast_to(v, (2, 3, 4))),
    "reshape": (Reshape((2, 6)), lambda v: v.reshape(2, 6)),
    "permute": (Permute((1, 0)), np.transpose),
    "slice": (Slice((1, 0), (3, 4), (1, 3)), lambda v: v[1:3, 0:4:3]),
    "flip": (Flip((1,)), lambda v: v[:, ::-1]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [float32, float16, int8], ids=str)
@pytest.mark.parametrize("name", ONE)
def test_of_one_array(name, dtype):
    op, exact = ONE[name]
    nan = NAN if dtype.is_float else False
    y = found(op, dtype, interval(LOW, LOW + 2, nan))
    assert (y.lower == exact(LOW)).all()
    assert (y.upper == exact(LOW + 2)).all()
    assert (np.asarray(y.nan) == (exact(NAN) if dtype.is_float else False)).all()


def test_of_several():
    a, b = interval(LOW, LOW + 1, NAN), interval(-LOW, 2 - LOW)
    y = found(Concat(0), float32, a, b)
    assert (y.lower == np.concatenate([LOW, -LOW])).all()
    assert (y.upper == np.concatenate([LOW + 1, 2 - LOW])).all()
    assert (y.nan == np.concatenate([NAN, NAN & False])).all()
    part = interval(LOW[:2, :2] + 50, LOW[:2, :2] + 60)
    y = found(SliceSet((0, 1), (2, 3), (1, 1)), float32, a, part)
    for end, exact, new in ((y.lower, LOW.copy(), part.lower), (y.upper, LOW + 1, part.upper)):
        exact[0:2, 1:3] = new
        assert (end == exact).all()
    assert y.nan[2, 0] == NAN[2, 0]
    assert not y.nan[0, 1:3].any()


def test_padding_brings_its_own_ends_and_marks():
    fill = interval(-1.0, 7.0, np.asarray(True))
    y = found(Pad((1,), (0,), (1,)), float32, interval([2.0, 3.0], [4.0, np.inf]), fill)
    assert y.lower.tolist() == [-1, 2, -1, 3]
    assert y.upper.tolist() == [7, 4, 7, np.inf]
    assert y.nan.tolist() == [True, False, True, False]


def test_windows():
    x = np.arange(5.0).reshape(1, 1, 5)
    y = found(Windows((3,), (1,), (1,)), float32, interval(x, x + 1))
    exact = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
    assert (y.lower == exact).all()
    assert (y.upper == exact + 1).all()


def test_complex_arrays_points_and_empty_ones():
    z = rectangle([1 + 2j, 3 - 1j], [2 + 2j, 3 + 4j])
    y = found(Flip((0,)), complex64, z)
    assert y.real.lower.tolist() == [3, 1]
    assert y.imag.upper.tolist() == [4, 2]
    x = np.arange(3.0)
    point = interval(x, x)._replace(upper=x, lower=x)
    y = found(Flip((0,)), float32, point)
    assert y.upper is y.lower
    assert found(Flip((0,)), float32, interval([], [])).shape == (0,)
    y = found(Concat(0), float32, interval([], []), interval([1.0], [2.0]))
    assert (y.lower, y.upper) == (1, 2)
    signed = found(Flip((0,)), float32, interval([-0.0, 1.0], [0.0, 1.0]))
    assert np.signbit(signed.lower[1])
