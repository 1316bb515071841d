"""Matrices for routines, and functions of them compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.backend_registry import compile_graph
from retrograd.ir import Dim, spec
from retrograd.runtime.backend import Array

N = Dim("N")
DTYPES = ("float32", "float64", "complex128")
SIZES = (1, 2, 3, 8, 9, 33)


def compiled(f: Callable[..., Any], dtype: str, *shapes: Any) -> Callable[..., list[Array]]:
    """A program for arrays of these shapes, in which sizes may be named."""
    program = compile_graph(rg.trace(f, *[spec(s, dtype) for s in shapes]), "llvm")
    return lambda *arrays: program([np.ascontiguousarray(a) for a in arrays])


def drawn(dtype: str, *shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def turned(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(dtype: str, *shape: int) -> Array:
    x = drawn(dtype, *shape)
    return (x @ turned(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(found: Any, wanted: Any, dtype: str, factor: float = 100) -> None:
    """As far apart as so many roundings of the largest element."""
    wanted = np.asarray(wanted)
    scale = float(abs(wanted).max(initial=0))
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=float(factor * np.finfo(dtype).eps * scale)
    )
