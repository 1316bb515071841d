"""Reductions on the GPU by each of their ways: an invocation or a workgroup for a result, or
several for parts of it; of shapes at which these change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.wgpu.dispatch import Dispatch, EmitContext, emit
from retrograd.wgpu.plan import ShaderPlan
from tests.wgpu.gpu import graph_of, needs_gpu, program, run

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
# Shapes, and the axes that are reduced.
SHAPES = [
    ((0, 3), (0,)), ((3, 0), (1,)), ((3, 0), (0,)), ((1,), (0,)), ((7, 8), (1,)), ((7, 9), (1,)),
    ((64, 65), (1,)), ((70_001, 2), (1,)), ((2, 70_001), (1,)), ((70_001, 2), (0,)),
    ((2, 70_001), (0,)), ((5, 4096), (1,)), ((4097, 5), (0,)), ((300_007,), (0,)),
    ((3, 11, 2, 5, 7, 3), (1, 3)), ((2, 3, 4, 5, 6), (0, 4)), ((13, 17, 19), (0, 1, 2)),
]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    r = np.random.default_rng(shape)
    if dtype is np.bool_:
        return r.random(shape) < 0.001
    if np.dtype(dtype).kind in "iu":
        return r.integers(0, 9, shape).astype(dtype)
    return r.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.sample(3)
def test_sums_are_as_accurate_as_stated(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """The error grows with the blocks and their number's logarithm, not with the terms."""
    x = numbers(shape)
    found, wide = run(ReduceSum(axes=axes), x), x.astype(np.float64)
    sizes = np.abs(wide).sum(axes)
    bound = (3 * 64 + 20) * 2.0**-24 * sizes
    assert found.shape == wide.sum(axes).shape
    assert (np.abs(found - wide.sum(axes)) <= bound).all()
    whole = numbers(shape, np.int32)
    np.testing.assert_array_equal(run(ReduceSum(axes=axes), whole), whole.sum(axes, dtype="i4"))


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.sample(2)
def test_extrema_and_truth(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = numbers(shape)
    truth = numbers(shape, np.bool_)
    np.testing.assert_array_equal(run(ReduceAny(axes=axes), truth), truth.any(axes))
    np.testing.assert_array_equal(run(ReduceAll(axes=axes), ~truth), (~truth).all(axes))
    if all(shape[a] for a in axes):
        np.testing.assert_array_equal(run(ReduceMax(axes=axes), x), x.max(axes))
        np.testing.assert_array_equal(run(ReduceMin(axes=axes), x), x.min(axes))
        if x.size:
            x.flat[x.size // 2] = np.nan
            np.testing.assert_array_equal(run(ReduceMax(axes=axes), x), x.max(axes))


@pytest.mark.parametrize("shape", [(3, 5), (3, 4097), (20_000, 9), (2, 300_007), (4097, 2)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.sample(2)
def test_the_first_extremum_and_the_first_nan(shape: tuple[int, int], axis: int) -> None:
    x = numbers(shape, np.int32)  # with many that are equal
    np.testing.assert_array_equal(run(ArgMax(axis=axis), x), x.argmax(axis))
    np.testing.assert_array_equal(run(ArgMin(axis=axis), x), x.argmin(axis))
    y = x.astype(np.float32)
    y.flat[:: max(x.size // 3, 1)] = np.nan
    np.testing.assert_array_equal(run(ArgMax(axis=axis), y), y.argmax(axis))


def test_products_and_dtypes() -> None:
    x = 1 + numbers((3, 1000)).astype(np.float64) / 100
    np.testing.assert_allclose(run(ReduceProd(axes=(1,)), x), x.prod(1), rtol=1e-12)
    few = numbers((4, 300), np.uint8)
    np.testing.assert_array_equal(run(ReduceSum(axes=(1,)), few), few.sum(1, dtype=np.uint8))
    lowest = np.full((2, 100), -128, np.int8)
    np.testing.assert_array_equal(run(ReduceMax(axes=(1,)), lowest), [-128, -128])
    infinite = np.full((2, 100), -np.inf, np.float32)
    np.testing.assert_array_equal(run(ReduceMax(axes=(1,)), infinite), [-np.inf, -np.inf])


def dispatches(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[Dispatch]:
    from retrograd.wgpu.device import device

    (kernel,) = ShaderPlan(graph_of(ReduceSum(axes=axes), np.ones(shape, np.float32))).kernels
    made = program(graph_of(ReduceSum(axes=axes), np.ones(shape, np.float32)))
    context = EmitContext(kernel, {}, device().facts)
    context.new_scratch = lambda type: made.plan.memory.new("temporary", type)  # type: ignore[attr-defined]
    return emit(kernel.nests[0], context)


@pytest.mark.parametrize(
    ("shape", "axes", "groups"),
    [
        ((100, 8), (1,), [2]),  # an invocation for each
        ((20_000, 4096), (1,), [313]),
        ((20_000, 5000), (1,), [20_000]),  # a workgroup for each
        ((100, 500), (1,), [100]),
        ((1, 1 << 20), (1,), [256, 1]),  # parts of it
        ((1 << 20, 3), (0,), None),
    ],
)
def test_who_computes_what(
    shape: tuple[int, ...], axes: tuple[int, ...], groups: list[int] | None
) -> None:
    found = [d.groups for d in dispatches(shape, axes)]
    if groups is None:
        assert len(found) == 2
        assert found[0] > 1
    else:
        assert found == groups
    assert math.prod(found) > 0
