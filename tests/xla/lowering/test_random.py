"""Random bits are Threefry's, by integers alone, the same as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.ops.random.threefry import threefry
from tests.xla.lowering.programs import operations, value


def bits(shape):
    from retrograd.ir import Graph, spec, uint32
    from retrograd.ops.leaf import input_node
    from retrograd.ops.random.threefry import RandomBits

    key = input_node(spec((2,), uint32))
    return Graph([key], [RandomBits(shape=shape)(key)])


def test_bits() -> None:
    from retrograd.xla.executable import XlaProgram

    key = np.array([7, 2**32 - 1], np.uint32)
    (found,) = XlaProgram(bits((3, 5)))([key])
    count = np.arange(15, dtype=np.uint64)
    low, high = count.astype(np.uint32), (count >> np.uint64(32)).astype(np.uint32)
    with np.errstate(over="ignore"):
        want = threefry(np.full(15, key[0]), np.full(15, key[1]), low, high)[0]
    np.testing.assert_array_equal(np.asarray(found), want.reshape(3, 5))


def test_uniform_numbers_are_those_of_the_cpu() -> None:
    f = lambda x: x + rg.random.Generator(5).uniform(shape=(4, 3))
    x = np.zeros((4, 3), np.float32)
    want = rg.random.Generator(5).uniform(shape=(4, 3)).numpy()
    np.testing.assert_array_equal(value(f, x), want)
    assert "rng_bit_generator" not in operations(f, x)
