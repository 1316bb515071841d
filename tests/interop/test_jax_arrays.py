"""from_jax, to_jax: the same numbers and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "bool",
    "complex64",
]


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.sample(4)
def test_numbers_and_dtypes_stay(jax: Any, name: str) -> None:
    a = jax.numpy.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    x = rg.from_jax(a)
    assert x.dtype is getattr(rg, name)
    np.testing.assert_array_equal(x.numpy(), np.asarray(a))
    back = rg.to_jax({"x": x, "n": 3})
    assert back["n"] == 3
    assert back["x"].dtype == a.dtype
    np.testing.assert_array_equal(back["x"], a)
    assert rg.to_jax(x[:0]).shape == (0, 3)


def test_sixty_four_bits(jax: Any) -> None:
    x = rg.tensor([1.0, 1 / 3], rg.float64)
    with pytest.raises(rg.DTypeError, match=r"jax_enable_x64', True\), or pass x\.astype\(rg\.flo"):
        rg.to_jax(x)
    with jax.enable_x64(True):
        a = rg.to_jax(x)
        assert a.dtype == np.float64
        assert rg.from_jax(a).tolist() == x.tolist()
        assert rg.to_jax(rg.tensor(2**40)).item() == 2**40
    assert rg.to_jax(rg.tensor([3, -4])).tolist() == [3, -4]
    with pytest.raises(rg.DTypeError, match="does not hold these numbers"):
        rg.to_jax(rg.tensor([2**40]))


def test_what_cannot_cross_says_what_to_do(jax: Any) -> None:
    with pytest.raises(rg.TraceError, match=r"rg\.interop\.as_jax"):
        jax.jit(rg.from_jax)(jax.numpy.ones(2))
    with pytest.raises(rg.DTypeError, match="key_data"):
        rg.from_jax(jax.random.key(0))
    with pytest.raises(rg.ArgumentError, match=r"takes a jax\.Array"):
        rg.from_jax(np.ones(2))
    with pytest.raises(rg.ArgumentError, match="takes a tensor"):
        rg.to_jax("x")
    with pytest.raises(rg.GradientError, match="detach"):
        rg.to_jax(rg.ones(2).requires_grad_())
    with pytest.raises(rg.TraceError):
        rg.jit(rg.to_jax)(rg.ones(2))
