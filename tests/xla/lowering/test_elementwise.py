"""Elementwise ops: XLA's own where it has them, and formulas for edges."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("jax", reason="the extra xla is not installed")
from tests.xla.lowering.programs import operations, value

EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e300, 1e-300])


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("exp", "exponential"),
        ("tanh", "tanh"),
        ("sin", "sine"),
        ("floor", "floor"),
        ("sqrt", "sqrt"),
    ],
)
def test_by_their_name(name: str, own: str) -> None:
    f = getattr(rg, name)
    assert operations(f, EDGES) in ([own, "return"], [own])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(value(f, EDGES), getattr(np, name)(EDGES), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_integers_divide_as_python_does(dtype: str) -> None:
    a = np.array([7, 100, 3, 0, 127]).astype(dtype)
    b = np.array([2, 7, 5, 3, 10]).astype(dtype)
    if dtype != "uint16":
        a, b = np.concatenate([a, -a, a]), np.concatenate([b, b, -b])
    np.testing.assert_array_equal(value(lambda a, b: a // b, a, b), a // b)
    np.testing.assert_array_equal(value(lambda a, b: a % b, a, b), a % b)


def test_extrema_pass_nan_on() -> None:
    other = np.full_like(EDGES, 0.5)
    found = value(rg.maximum, EDGES, other)
    np.testing.assert_array_equal(found, np.maximum(EDGES, other))


def test_casts_to_integers_end_at_the_ends() -> None:
    found = value(lambda x: x.astype(rg.int32), np.array([1e20, -1e20, np.nan, 2.9, -2.9]))
    np.testing.assert_array_equal(found, [2**31 - 1, -(2**31), 0, 2, -2])


def test_halves_are_rounded_once() -> None:
    """In float32, not after each step of a formula."""
    x = np.linspace(0.1, 3, 301).astype(np.float16)
    found = value(lambda x: rg.softplus(x), x)
    want = np.log1p(np.exp(x.astype(np.float64))).astype(np.float16)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, want)
