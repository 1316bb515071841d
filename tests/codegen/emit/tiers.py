"""Graphs run by every tier, which agree to the bit, and numbers whose sums tell orders apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import DType, Graph, float32, float64
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor

Array = np.ndarray[Any, Any]


WIDE = [float32, float64]


def numbers(rng: np.random.Generator, shape: Any, dtype: DType, special: bool) -> Array:
    """Of very different sizes; some are special."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    x[rng.random(shape) < 0.1] = -0.0
    if special:
        x[rng.random(shape) < 0.02] = np.inf
        x[rng.random(shape) < 0.01] = -np.inf
        x[rng.random(shape) < 0.01] = np.finfo(np.float64 if dtype is float64 else np.float32).max
    return x.astype(dtype.dtype)


def assert_bits(found: Array, expected: Array, what: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    if found.dtype.kind == "f" and found.dtype.itemsize > 2:
        np.testing.assert_array_equal(found, expected, err_msg=str(what))  # and NaN
        np.testing.assert_array_equal(
            np.signbit(found[found == 0]), np.signbit(expected[found == 0])
        )
    else:
        assert found.tobytes() == expected.tobytes(), what


def in_every_tier(graph: Graph, named: Graph | None, cases: list[list[Array]]) -> list[Array]:
    """The values of a graph, which every tier gives; `named` is the same for sizes with names."""
    compiled = Executable(graph)
    tiers: dict[str, Any] = {"narrow": Executable(graph, light=True, narrow=True)}
    tiers["interpreted"] = OpByOpExecutor(graph)
    if named is not None:
        tiers["named"] = Executable(named)
    for arrays in cases:
        expected = compiled(arrays)
        for name, program in tiers.items():
            for y, a, b in zip(graph.outputs, program(arrays), expected, strict=True):
                assert_bits(a, b, f"{name}: {y.describe()}")
    return expected
