"""Derivatives of any call of `benchmarks.calls` by finite differences, at points of zeros,
ties and equal coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from benchmarks.calls import Arrays, Call

Array = np.ndarray[Any, Any]
Calls = Callable[[Arrays], dict[str, Call]]
VALUES = {"zeros": (0.0, 0.0, 1.0, -1.0, 2.0), "ties": (0.25, 0.5, 1.0), "equal": (0.5,)}
STEP, MOST = 1e-5, 10
# Without equal eigenvalues: those have tests of their own.
SQUARES = {3: np.array([[2.0, 0.5], [1.0, -1.0]]), 4: np.array([[2.0, 0.0], [0.0, 3.0]])}


class Points(Arrays):
    """Arrays of few values in double precision; or the ones that are given."""

    def __init__(self, kind: str, given: Iterable[rg.Tensor] = ()) -> None:
        self._values, self._given = VALUES[kind], iter(given)
        super().__init__(2)

    def _next(self, make: Callable[[], Array]) -> rg.Tensor:
        x = next(self._given, None)
        if x is None:
            x = rg.tensor(self._chosen(make()))
        self.made.append(x)
        return x

    def _chosen(self, like: Array) -> Array:
        k = len(self.made)
        if k in SQUARES:
            return SQUARES[k]
        rng = np.random.default_rng((k, len(self._values)))
        x = rng.choice(self._values, like.shape)
        return x + 1j * rng.choice([0.0, 0.5], like.shape) if like.dtype.kind == "c" else x


class Found(NamedTuple):
    """Of how many second derivatives finite differences tell something, and what is wrong."""

    checked: int
    wrong: list[str]


def study(calls: Calls, name: str, kind: str) -> Found | None:
    """Gradient and Hessian (forward over reverse, and reverse over reverse, batched) of a weighted
    sum of the results in some directions, against differences of function and gradient. None where
    nothing depends on the arrays. Where two differences disagree there is a kink, which is left
    out."""
    f, x = _function(calls, name, kind)
    if f is None:
        return None
    g = rg.grad(f)
    rng = np.random.default_rng(5)
    near = g(rg.tensor(x + rng.uniform(-0.01, 0.01, x.shape))).numpy()
    at = np.flatnonzero(near != 0)
    if not at.size:
        return None
    at = np.sort(rng.choice(at, MOST, replace=False)) if at.size > MOST else at
    unit = np.eye(x.size)[at]
    steps = [0.0 * unit, *(s * STEP * unit for s in (1, -1, 8, -8))]
    points = rg.tensor(np.concatenate([x + s for s in steps]))
    here = rg.tensor(np.repeat(x[None], at.size, axis=0))
    slopes = np.split(rg.vmap(g)(points).numpy(), 5)
    heights = np.split(rg.vmap(f)(points).numpy(), 5)
    wrong: list[str] = []
    _compare(f"gradient of {name}", slopes[0][range(at.size), at], heights, wrong)
    forward = rg.vmap(lambda v, t: rg.jvp(g, (v,), (t,))[1])(here, rg.tensor(unit))
    back = rg.vmap(lambda v, t: rg.grad(lambda u: (g(u) * t).sum())(v))(here, rg.tensor(unit))
    checked = 0
    for mode, found in (("forward", forward), ("reverse", back)):
        checked = _compare(f"Hessian of {name}, {mode}", found.numpy(), slopes, wrong)
    return Found(checked, wrong)


def _function(calls: Calls, name: str, kind: str) -> tuple[Any, Array]:
    """A weighted sum of the results, as a function of all parts of all arrays, and these."""
    base = Points(kind)
    parts = _inexact(calls(base)[name]())
    rng = np.random.default_rng(6)
    weights = [rng.uniform(0.5, 1.5, (2, *p.shape)) for p in parts]
    given = [x.numpy() for x in base.made]
    rows = [np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x for x in given]
    ends = np.cumsum([0, *(r.size for r in rows)])

    def f(v: Any) -> Any:
        taken = []
        for row, x, start, end in zip(rows, given, ends, ends[1:], strict=False):
            piece = v[int(start) : int(end)].reshape(row.shape)
            taken.append(rg.complex(piece[0], piece[1]) if x.dtype.kind == "c" else piece)
        total = rg.asarray(0.0, dtype=rg.float64)
        results = _inexact(calls(Points(kind, taken))[name]())
        for y, w in zip(results, weights, strict=True):
            total = total + (rg.real(y) * w[0]).sum()
            total = total + (rg.imag(y) * w[1]).sum() if y.dtype.is_complex else total
        return total

    return (f if parts else None), np.concatenate([r.ravel() for r in rows])


def _inexact(result: Any) -> list[rg.Tensor]:
    parts = rg.tree.flatten(result)[0]
    return [y for y in parts if isinstance(y, rg.Tensor) and y.dtype.is_inexact]


def _compare(what: str, found: Array, around: list[Array], wrong: list[str]) -> int:
    """Add what is wrong; how many numbers the differences tell."""
    here, right, left, far_right, far_left = around
    with np.errstate(all="ignore"):
        one, other = (right - here) / STEP, (here - left) / STEP
        middle, wide = (right - left) / (2 * STEP), (far_right - far_left) / (16 * STEP)
        size = 1 + np.abs(middle)
        smooth = (np.abs(one - other) < 1e-2 * size) & (np.abs(middle - wide) < 1e-3 * size)
        bad = smooth & ~(np.abs(found - middle) < 1e-3 * size)
    for i in np.argwhere(bad)[:3]:
        at = tuple(i)
        wrong.append(f"{what} at {at}: {found[at]!r}, by differences {middle[at]!r}")
    return int(smooth.sum())
