"""Constants and counters are what they are, but for numbers that some backend rounds."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import (
    TensorType,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int64,
)
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.leaf import Constant, Iota, SizeOf, constant, input_node
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from tests.verify.bound_propagation.lattices import found, interval, interval_of, rectangle


def test_constants_are_points():
    for value in (np.array([1.5, -2.0, np.inf]), np.array([True, False]), np.array([7, -9])):
        x = interval_of(constant(value), [])
        assert x.is_point
        assert x.lower.tolist() == value.astype(float).tolist()
    x = interval_of(Constant(np.asarray(2.5), (2, 3))(), [])
    assert x.shape == (2, 3)
    assert (x.lower == 2.5).all()
    z = interval_of(constant(np.array([1 + 2j], np.complex64)), [])
    assert z == rectangle([1 + 2j], [1 + 2j])


def test_what_float64_does_not_have_lies_between_neighbours():
    x = interval_of(constant(np.array([2**53 + 1, 3])), [])
    assert int(x.lower[0]) < 2**53 + 1 < int(x.upper[0])
    assert x.lower[1] == x.upper[1] == 3


def test_subnormal_constants_may_be_zero_and_nan_is_marked():
    x = interval_of(constant(np.array([1e-40, -1e-40, 1.0], np.float32)), [])
    assert x.lower.tolist()[::2] == [0, 1]
    assert x.upper[0] == np.float32(1e-40)
    assert x.lower[1] == -np.float32(1e-40)
    assert x.upper[1] == 0
    x = interval_of(constant(np.array([1.0, np.nan])), [])
    assert x.nan.tolist() == [False, True]
    assert (x.lower[1], x.upper[1]) == (-np.inf, np.inf)


@pytest.mark.parametrize("dtype", [float64, float32, float16, int64, int8], ids=str)
def test_counters(dtype):
    x = interval_of(Iota((2, 100), 1, dtype)(), [])
    assert (x.lower == np.arange(100)).all()
    assert (x.upper == np.arange(100)).all()


def test_long_counters_of_halves_are_rounded_or_not():
    x = interval_of(Iota((2052,), 0, float16)(), [])
    assert (x.lower[2049], x.upper[2049]) == (2048, 2049)
    assert (x.lower[2051], x.upper[2051]) == (2051, 2052)
    assert (x.lower[:2049] == x.upper[:2049]).all()
    x = interval_of(Iota((130,), 0, int8)(), [])
    assert x.lower[129] == x.upper[129] == np.arange(130).astype(np.int8)[129]


def test_sizes():
    for dtype in (float32, int64):
        x = interval_of(SizeOf(2**24 + 1, dtype)(), [])
        assert x.lower <= 2**24 + 1 <= x.upper
    assert x.is_point
    x = interval_of(SizeOf(2**24 + 1, float32)(), [])
    assert x.lower == np.float32(2**24 + 1)


def test_inputs_and_what_passes_on_its_input():
    assert interval_of(input_node(TensorType(float32, (2,))), []).nan
    x = interval_of(input_node(TensorType(bool_, ())), [])
    assert (x.lower, x.upper, x.nan) == (0, 1, False)
    assert interval_of(input_node(TensorType(complex64, ())), []).imag.upper == np.inf
    x = interval([-0.0, 1e-40], [0.0, np.inf], np.array([True, False]))
    for op in (StopGradient(), Alias(), RegionIn(), RegionOut(), Keep()):
        assert found(op, float32, x) is x
    assert found(After(), float32, x, interval([1.0], [2.0])) is x
