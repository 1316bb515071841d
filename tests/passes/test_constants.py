"""What passes ask of constants, and which answers differ for zeros, NaN and arrays."""

import numpy as np
import pytest

from retrograd.ir import TensorType, bool_, float32, full, int8, spec, uint8
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import Iota, constant, input_node
from retrograd.passes import constants as c

TYPE = TensorType(float32, (2, 3))


def splat(value, dtype=float32):
    return full(value, TensorType(dtype, (2, 3)))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "zero", "nonzero"),
    [(0.0, True, False), (-0.0, True, False), (1e-45, False, True), (NAN, False, True),
     (INF, False, True)],
)  # fmt: skip
def test_zero_and_nonzero(value, zero, nonzero):
    x = splat(value)
    assert (c.zero(x), c.nonzero(x)) == (zero, nonzero)


def test_the_sign_of_zero_counts_where_there_is_one():
    assert c.is_full(splat(-0.0), -0.0)
    assert not c.is_full(splat(-0.0), 0.0)
    assert not c.is_full(splat(0.0), -0.0)
    assert c.is_full(splat(0, int8), -0.0)
    assert c.is_full(splat(2.5), 2.5)
    assert not c.is_full(splat(NAN), NAN)
    a, b = np.array(0.0), np.array(-0.0)
    assert not c.same_bits(a, b)
    assert c.same_bits(np.array(NAN), np.array(NAN))


def test_all_bits_set():
    assert c.all_ones(splat(True, bool_))
    assert c.all_ones(splat(-1, int8))
    assert c.all_ones(splat(255, uint8))
    assert not c.all_ones(splat(1, int8))
    assert not c.all_ones(splat(False, bool_))


def test_what_is_no_splat_has_no_value():
    x = input_node(spec((2, 3)), "x")
    for node in (x, exp(splat(0.0)), Iota((2, 3), 0, float32)(), constant(np.zeros((2, 3), "f"))):
        assert c.splat(node) is None
        assert not any((c.zero(node), c.nonzero(node), c.is_full(node, 0.0)))
    assert c.splat(splat(7.0)) == 7


def test_refilled_splats_keep_the_bits():
    value = c.splat(splat(-0.0))
    assert value is not None
    again = c.refill(value, TensorType(float32, (5,)))
    assert again.shape == (5,)
    assert c.is_full(again, -0.0)
    assert c.is_full(c.like(3, splat(0, int8)), 3)
    assert c.like(3, splat(0, int8)).type == TensorType(int8, (2, 3))


def test_buffers_are_constants_of_several_elements():
    assert c.is_buffer(constant(np.arange(3.0)))
    assert not c.is_buffer(constant(np.ones(1)))
    assert not c.is_buffer(splat(1.0))
    assert not c.is_buffer(input_node(spec((3,))))
