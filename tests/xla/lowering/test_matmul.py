"""Products are one dot_general, accumulated in float32 where they are of halves."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, traced, value

R = np.random.default_rng(0)


def test_one_operation_and_no_transposes() -> None:
    a, b = R.normal(size=(4, 3, 5)), R.normal(size=(4, 7, 5))
    f = lambda a, b: rg.einsum("bik,bjk->bij", a, b)
    assert [x for x in operations(f, a, b) if x != "return"] == ["dot_general"]
    np.testing.assert_allclose(value(f, a, b), np.einsum("bik,bjk->bij", a, b), rtol=0, atol=1e-14)


def test_halves_are_added_up_in_float32() -> None:
    """4096 products of 1 are 4096 in float32; of float16, sums end at 2048."""
    a, b = np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16)
    assert value(lambda a, b: a @ b, a, b) == 4096
    assert "tensor<1x1xf32>" in traced(lambda a, b: a @ b, a, b).to_stablehlo()


def test_integers_and_complex_numbers() -> None:
    a = R.integers(-(2**40), 2**40, (3, 4))
    np.testing.assert_array_equal(value(lambda a: a @ a.T, a), a @ a.T)
    z = R.normal(size=(3, 4)) + 1j * R.normal(size=(3, 4))
    np.testing.assert_allclose(value(lambda z: z @ z.T, z), z @ z.T, rtol=1e-13)


def test_nothing_to_add_up() -> None:
    found = value(lambda a, b: a @ b, np.ones((2, 0)), np.ones((0, 3)))
    np.testing.assert_array_equal(found, np.zeros((2, 3)))
