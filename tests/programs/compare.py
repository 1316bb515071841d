"""How far apart results may be that were rounded differently.

A tolerance is measured, never chosen: a program runs again with every float that it computes, and
every input, changed by a few units of its last places, two times; what its results move by is what
rounding may do to them. Where they jump, or are not finite, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
# The relative change of a value, some units in the last place: so many for float64 since what rests
# on iteration (factorizations, special functions) promises no more.
CHANGE = {
    "float64": 2.0**-40, "complex128": 2.0**-40, "float32": 2.0**-18, "complex64": 2.0**-18,
    "float16": 2.0**-7, "bfloat16": 2.0**-4,
}  # fmt: skip
RUNS = 2
Values = list[Array]


class Noise:
    """What changes a value a little: another change each time, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, x: Any, zeros: bool = False) -> Any:
        """Zeros, too, where they may be rounding."""
        change = CHANGE.get(x.dtype.name)
        if change is None:
            return x
        shape = tuple(int(n) for n in x.shape)
        factor = 1 + change * self.rng.choice([-1.0, 1.0], shape) * self.rng.uniform(0.5, 1, shape)
        y = x * rg.asarray(np.asarray(factor), dtype=_real(x.dtype.name))
        if not zeros:
            return y
        more = np.asarray(0.01 * change * self.rng.choice([-1.0, 1.0], shape))
        if x.dtype.name in ("complex64", "complex128"):
            return y + rg.asarray(more * (1 + 1j), dtype=x.dtype)
        return y + rg.asarray(more, dtype=_real(x.dtype.name))


def _real(name: str) -> Any:
    return {"complex64": rg.float32, "complex128": rg.float64}.get(name) or getattr(rg, name)


def spread(run: Callable[[Noise], Values], base: Values) -> list[Array]:
    """By how much each element may differ; infinite where anything may happen."""
    found = [np.zeros(y.shape) for y in base]
    for seed in range(RUNS):
        for most, y, z in zip(found, base, run(Noise(seed)), strict=True):
            if y.shape != z.shape:
                most[...] = np.inf
                continue
            np.maximum(most, _apart(y, z), out=most)
    return [_bound(most, y) for most, y in zip(found, base, strict=True)]


def _apart(y: Array, z: Array) -> Array:
    with np.errstate(all="ignore"):
        if y.dtype.name not in CHANGE:
            return np.where(y == z, 0.0, np.inf)
        a, b = _wide(y), _wide(z)
        apart = np.abs(a - b)
    same = np.isnan(a) & np.isnan(b) | (a == b)
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


def _bound(most: Array, y: Array) -> Array:
    change = CHANGE.get(y.dtype.name)
    if change is None or not y.size:
        return most
    size = np.abs(_wide(y))
    finite = np.isfinite(size)
    scale = size[finite].max(initial=0)
    tiny = np.finfo(
        np.float32 if y.dtype.name not in ("float64", "complex128") else np.float64
    ).tiny
    return 8 * most + change * (np.where(finite, size, 0) + 2.0**-3 * scale) + tiny


def _wide(y: Array) -> Array:
    return y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)


def differ(found: Sequence[Any], base: Values, bounds: list[Array], types: bool = True) -> str:
    """What is wrong with what was found, or nothing."""
    if len(found) != len(base):
        return f"{len(found)} results instead of {len(base)}"
    for k, (z, y, bound) in enumerate(zip(found, base, bounds, strict=True)):
        if z.shape != y.shape:
            if y.size and np.isinf(bound).all():
                continue  # rounding decides how many there are
            return f"result {k} has shape {z.shape} instead of {y.shape}"
        if types and z.dtype != y.dtype:
            return f"result {k} is {z.dtype} instead of {y.dtype}"
        with np.errstate(all="ignore"):
            bad = ~(_apart(y.astype(z.dtype) if not types else y, z) <= bound)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return f"result {k}{list(at)} is {z[at]!r} instead of {y[at]!r}, within {bound[at]:.3g}"
    return ""


def same_bits(found: Sequence[Any], base: Values) -> str:
    """Equal to the bit, any NaN counting as any other."""
    for k, (z, y) in enumerate(zip(found, base, strict=True)):
        if (z.shape, z.dtype) != (y.shape, y.dtype):
            return f"result {k} is {z.dtype}{z.shape} instead of {y.dtype}{y.shape}"
        if z.tobytes() != y.tobytes():
            parts = [(z.real, y.real), (z.imag, y.imag)] if y.dtype.kind == "c" else [(z, y)]
            for a, b in parts:
                a, b = np.atleast_1d(a), np.atleast_1d(b)
                if a.dtype.kind in "iub":
                    alike = a == b
                else:
                    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
                    sign = np.signbit(a.astype(np.float64)) == np.signbit(b.astype(np.float64))
                    alike = nan | ((a == b) & sign)
                if not alike.all():
                    at = tuple(int(i) for i in np.argwhere(~alike)[0])
                    return f"result {k}{list(at)} has other bits: {a[at]!r} instead of {b[at]!r}"
    return ""
