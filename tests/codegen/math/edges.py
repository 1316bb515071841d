"""Values of compiled functions at chosen points, and exact ones in units in the last place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np

from retrograd.codegen.emit.elementwise import ELEMENTWISE
from retrograd.codegen.math.term import Term, formula
from retrograd.ir import DType, float64
from tests.codegen.math.lanes import Functions, Write

Array = np.ndarray[Any, Any]
LANES = 4
mp = mpmath.mp


def values_of(writes: Sequence[Write], *arrays: Any, dtype: DType = float64) -> list[Array]:
    """Each function of the arrays, which have one length; written for `dtype`."""
    return _run(_compiled(tuple(writes), dtype, len(arrays)), *arrays)


def _compiled(writes: Sequence[Write], dtype: DType, count: int) -> Functions:
    return Functions(dtype, [dtype] * count, [(w, dtype) for w in writes], LANES)


def _run(program: Functions, *arrays: Any) -> list[Array]:
    given = [np.asarray(a, program.dtype.dtype) for a in arrays]
    size = given[0].size
    padded = [np.resize(a, -(-size // LANES) * LANES) for a in given]
    return [y[:size] for y in program(*padded)]


def values(names: Iterable[str], *arrays: Any, dtype: DType = float64) -> list[Array]:
    """The same of functions by name, which are compiled once."""
    return _run(_named(tuple(names), dtype, len(arrays)), *arrays)


@cache
def _named(names: tuple[str, ...], dtype: DType, count: int) -> Functions:
    def of(name: str) -> Write:
        return lambda at, x: ELEMENTWISE[name](at, *x)

    return _compiled([of(n) for n in names], dtype, count)


def formulas(
    fs: Iterable[Callable[..., Term]], *arrays: Any, dtype: DType = float64
) -> list[Array]:
    """The same of functions of terms."""

    def of(f: Callable[..., Term]) -> Write:
        return lambda at, x: formula(f)(at, *x)

    return values_of([of(f) for f in fs], *arrays, dtype=dtype)


def assert_ulps(
    found: Array, exact: Callable[..., Any], bound: float, *arrays: Any, height: float | None = None
) -> None:
    """Within so many units in the last place of the exact result; with a `height`, those of
    a result of at least that height, relative to it."""
    info = np.finfo(found.dtype)
    with mp.workdps(50):
        for y, *xs in zip(found, *arrays, strict=True):
            right = mp.mpf(exact(*(mp.mpf(float(x)) for x in xs)))
            if abs(right) > float(info.max):
                assert np.isinf(y), (xs, y, right)
                continue
            if height is None:
                size = max(abs(right), float(info.tiny))
                unit = mp.ldexp(1, int(mp.floor(mp.log(size, 2))) - info.nmant)
            else:
                unit = max(abs(right), height) * float(info.eps)
            far = float(abs(mp.mpf(float(y)) - right) / unit)
            assert far <= bound, f"of {xs}: {y!r}, not {right}: {far:.2f} ulp"


def around(*places: float, dtype: DType = float64) -> Array:
    """The places with three neighbours on both sides."""
    found = []
    for place in places:
        x = dtype.dtype.type(place)
        below = above = x
        found.append(x)
        for _ in range(3):
            below, above = np.nextafter(below, x.dtype.type(-np.inf)), np.nextafter(above, np.inf)
            found += [below, above]
    return np.array(found, dtype.dtype)
