"""Random arguments for the functions under NumPy's names, and comparing with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg

Array = np.ndarray[Any, Any]
SHAPES = [(), (0,), (1,), (4,), (2, 3), (1, 4), (2, 0), (2, 1, 3)]
# Few different values, so that there are equal ones.
POOL = np.array([0.0, -0.0, 0.25, -0.5, 1.0, -1.5, 2.5, 3.0, -7.0])
WILD = np.array([0.0, 0.5, -2.0, np.inf, -np.inf, np.nan])


def numbers(seed: int, shape: tuple[int, ...], dtype: str = "float64", wild: bool = False) -> Array:
    rng = np.random.default_rng(seed)
    pool = WILD if wild else POOL
    x = rng.choice(pool, shape)
    if dtype.startswith("complex"):
        x = np.asarray(x, complex)
        x.imag = rng.choice(pool, shape)
    return np.asarray(np.abs(x) if dtype.startswith("uint") else x).astype(dtype)


def agree(name: str, *args: Any, tolerance: float = 1e-13, **options: Any) -> None:
    """`rg.f` of tensors and `np.f` of tensors give what NumPy gives for arrays, or all three
    refuse."""
    function: Callable[..., Any] = getattr(np, name)
    tensors = [rg.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    what = f"{name}{args}{options}"
    with np.errstate(all="ignore"):
        try:
            right: Any = function(*args, **options)
        except (ValueError, TypeError, IndexError, ZeroDivisionError):
            right = None
        for f in (getattr(rg, name), function):
            if right is None:
                try:
                    f(*tensors, **options)
                except rg.RetrogradError:
                    continue
                raise AssertionError(f"{what} is not refused")
            same(f(*tensors, **options), right, what, tolerance)


def same(found: Any, right: Any, what: str, tolerance: float) -> None:
    if isinstance(right, list | tuple):
        assert len(found) == len(right), what
        for a, b in zip(found, right, strict=True):
            same(a, b, what, tolerance)
        return
    value, right = np.asarray(found), np.asarray(right)
    assert value.shape == right.shape, (what, value.shape, right.shape)
    kind = value.dtype.kind
    assert kind == right.dtype.kind or (kind, right.dtype.kind) == ("i", "u"), (what, value.dtype)
    loose = 3e-7 if value.dtype.itemsize < right.dtype.itemsize else tolerance
    np.testing.assert_allclose(value, right, loose, loose, err_msg=what)
