"""Calls of library functions that were recorded before are looked up by their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.trace_cache import SITES
from tests.eager.recorded import Z


def test_a_function_that_returns_what_it_was_given_may_be_called_again():
    """What is in a buffer under the name of an array has no value of its own to compute."""
    x = rg.tensor([2.0, -3.0])
    for _ in range(3):
        assert (+x).tolist() == rg.positive(x).tolist() == [2, -3]
        assert rg.reshape(x, (2,)).tolist() == rg.permute_dims(x, (0,)).tolist() == [2, -3]


T = rg.tensor(Z)


B = rg.tensor(Z > 2)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    # Arguments that are equal, or nearly so, and mean something else.
    *[(rg.Tensor.__getitem__, (T, key), {}) for key in (
        0, 1, True, False, -1, None, ..., (0,), (0, 1), (1, 0), (None, 0), (0, None), (..., 0),
        (0, ...), slice(1), slice(None, 1), slice(0, 1), slice(1, None), slice(None, None, 2),
        (slice(1, None), 0), (0, slice(1, None)), (slice(None), None), [1, 0], [0, 1], (),
    )],
    *[(rg.sum, (T,), options) for options in (
        {}, {"axis": 0}, {"axis": 1}, {"axis": (0,)}, {"axis": (0, 1)}, {"axis": [0, 1]},
        {"axis": 0, "keepdims": True}, {"axis": 1, "keepdims": False}, {"keepdims": True},
        {"dtype": rg.float64}, {"dtype": rg.float32}, {"dtype": "float64"},
    )],
    (rg.sum, (T, 0), {}), (rg.sum, (T, 1), {}),
    *[(rg.reshape, (T, shape), {}) for shape in ((24,), (-1,), 24, [24], (4, 6), (6, 4), [4, 6])],
    *[(rg.clip, (T, low, high), {}) for low, high in (
        (0, 1), (0.0, 1.0), (-0.0, 1.0), (0, 1.5), (0.5, 1), (None, 1), (1, None), (False, True),
    )],
    (rg.clip, (T,), {"min": 1}), (rg.clip, (T,), {"max": 1}), (rg.clip, (T, 1), {}),
    *[(rg.where, given, {}) for given in (
        (B, T, T), (B, T, -T), (B, -T, T), (B, T, 0), (B, T, 0.5), (B, T, 1), (B, T, True),
        (B, 0.5, T), (~B, T, 0),
    )],
    *[(rg.concat, (parts,), options) for options in ({}, {"axis": 1}, {"axis": None}) for parts in (
        [T, -T], (T, -T), [-T, T], [T, T, T], [T],
    )],
    *[(rg.astype, (T, dtype), {}) for dtype in (rg.float64, rg.float32, rg.int32, rg.bool)],
    *[(rg.einsum, given, {}) for given in (
        ("ijk,ijk->i", T, T), ("ijk,ijk->j", T, T), ("ijk,ijk->i", T, -T), ("ijk->kji", T),
    )],
    (rg.take, (T, rg.tensor([1, 0])), {"axis": 1}), (rg.take, (T, rg.tensor([0, 1])), {"axis": 1}),
    (rg.full_like, (T, 1), {"dtype": None}), (rg.full_like, (T, True), {"dtype": None}),
    (rg.take, (T, [1, 0]), {"axis": 1}), (rg.take, (T, np.array([1, 0])), {"axis": 1}),
]  # fmt: skip


def outcomes(calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]) -> list[str]:
    """What calls give that are recorded one after the other, before any is computed."""
    found: list[Any] = []
    for f, args, options in calls:
        try:
            found.append(f(*args, **options))
        except (rg.RetrogradError, TypeError) as error:
            found.append(type(error).__name__)
    return [
        y if isinstance(y, str) else f"{y.dtype} {y.shape} {y.numpy().tobytes().hex()}"
        for y in found
    ]


@pytest.mark.slow
def test_calls_on_one_line_are_told_apart_by_their_arguments():
    """However often a line has run, with whatever arguments, a call gives what it gives alone."""
    alone = []
    for call in CALLS:
        SITES.clear()
        alone += outcomes([call])
    assert len(set(alone)) > 50
    for _ in range(3):
        assert outcomes(CALLS) == alone
        assert outcomes(CALLS[::-1]) == alone[::-1]


@pytest.mark.parametrize("grad", [True, False])
def test_gradients_through_calls_that_were_seen(grad: bool) -> None:
    def use(a: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
        y = rg.concat([a * b, b], axis=0)
        y = rg.where(y > 0.1, y, a[0, 0]) + rg.concat([b, b], axis=0)
        return (rg.clip(y, -1.0, 1.0)[1:, ::2] * rg.reshape(y, (2, -1))[0, 0]).sum()

    rng = np.random.default_rng(0)
    for _ in range(5):
        arrays = [rng.normal(size=(2, 4)) for _ in range(2)]
        a, b = [rg.tensor(x, requires_grad=True) for x in arrays]
        expected = rg.grad(use, argnums=(0, 1))(*arrays)  # type: ignore[arg-type]
        if grad:
            use(a, b).backward()
            assert [x.grad.numpy().tobytes() for x in (a, b)] == [
                g.numpy().tobytes() for g in expected
            ]
        else:
            with rg.no_grad():
                y = use(a, b)
            assert not y.requires_grad
            assert use(a, b).requires_grad
