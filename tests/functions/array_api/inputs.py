"""Arguments for property tests of the array API: shapes with 0 and 1, dtypes, values, layouts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import retrograd as rg

Array = np.ndarray[Any, Any]
Draw = Any  # what hypothesis hands to a composite strategy
Shape = tuple[int, ...]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
FLOATING = FLOATS + COMPLEX
NUMERIC = INTEGERS + FLOATS + COMPLEX
ALL = ("bool", *NUMERIC)
# Dtypes that the standard promotes with one another.
MIXED = [(a, b) for a in INTEGERS for b in INTEGERS if "uint64" not in (a, b) or a[0] == b[0]]
MIXED += [(a, b) for a in FLOATING for b in FLOATING] + [("bool", "bool")]
POOL = [0.0, -0.0, 0.25, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 7.0, -1e3, 1e-3]
WILD = [*POOL, np.inf, -np.inf, np.nan]


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument: what NumPy is given, and how a tensor of it comes about."""

    array: Array
    base: Array
    key: tuple[slice, ...]
    axes: tuple[int, ...]
    sliced: bool

    def tensor(self) -> Any:
        """The view itself, with its steps in memory, or the same view of a tensor."""
        if not self.sliced:
            return rg.asarray(self.array)
        return rg.permute_dims(rg.asarray(self.base)[self.key], self.axes)


def shapes(least: int = 0, most: int = 3, sizes: Sequence[int] = (0, 1, 2, 3, 4)) -> Any:
    return st.lists(st.sampled_from(sizes), min_size=least, max_size=most).map(tuple)


def numbers(seed: int, shape: Shape, dtype: str, wild: bool = False) -> Array:
    """Few different values, so that there are equal ones; the ends of the dtype among integers."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        ends = np.iinfo(dtype)
        whole = [0, 1, 2, 3, 5] + ([ends.min, ends.max] if wild else [])
        whole += [-1, -2, -7] if kind == "i" else []
        return np.asarray(rng.choice(np.array(whole, dtype), shape), dtype)
    pool = WILD if wild and kind == "f" else POOL
    x = rng.choice(np.array(pool), shape)
    if kind == "c":
        x = x + 1j * rng.choice(np.array(pool), shape)
    return np.asarray(x, dtype)


@st.composite
def inputs(draw: Draw, dtypes: Sequence[str], shape: Any = None, wild: bool = False) -> Input:
    """An array of one of the dtypes, with steps of 1, 2, -1 or -2 along axes that may be permuted;
    `shape` is a shape or a strategy of shapes."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes()) if shape is None else shape
    shape = shape if isinstance(shape, tuple) else draw(shape)
    seed = draw(st.integers(0, 2**16))
    steps = [draw(st.sampled_from((1, -1, 2, -2))) for _ in shape]
    axes = draw(st.permutations(range(len(shape))))
    order = [int(i) for i in np.argsort(axes)]  # of the axes of the base
    wide = tuple(shape[order[i]] * abs(steps[i]) for i in range(len(shape)))
    base = numbers(seed, wide, dtype, wild)
    key = tuple(slice(None, None, s) for s in steps)
    view = base[key].transpose(axes) if shape else base
    assert view.shape == shape
    return Input(view, base, key, tuple(axes), draw(st.booleans()))


@st.composite
def broadcasting(draw: Draw, count: int, shape: Shape | None = None) -> list[Shape]:
    """Shapes that broadcast together."""
    whole = draw(shapes()) if shape is None else shape
    found = []
    for _ in range(count):
        kept = whole[draw(st.integers(0, len(whole))) :] if draw(st.booleans()) else whole
        found.append(tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in kept))
    return found


@st.composite
def axis_of(draw: Draw, x: Input, none: bool = True, several: bool = False) -> Any:
    """An axis from either end, None, or several axes."""
    n = x.array.ndim
    if n == 0 or (none and draw(st.integers(0, 3)) == 0):
        return None
    if several and draw(st.booleans()):
        chosen = draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n))
        return tuple(a - n * draw(st.booleans()) for a in chosen)
    return draw(st.integers(-n, n - 1))


def compare(found: Any, right: Any, what: Any, scale: float = 64) -> None:
    """Equal structure, dtype, shape; values equal, or within `scale` units of the dtype."""
    if isinstance(right, (tuple, list)):
        assert len(found) == len(right), what
        for a, b in zip(found, right, strict=True):
            compare(a, b, what, scale)
        return
    assert isinstance(found, rg.Tensor), (what, type(found))
    value, right = found.numpy(), np.asarray(right)
    assert value.dtype == right.dtype, (what, value.dtype, right.dtype)
    assert value.shape == right.shape == found.shape, (what, value.shape, right.shape)
    if right.dtype.kind in "fc" and right.size:
        eps = float(np.finfo(right.dtype).eps) * scale
        finite = np.abs(right[np.isfinite(right)])
        atol = eps * float(finite.max(initial=1e-3))
        np.testing.assert_allclose(value, right, rtol=eps, atol=atol, err_msg=str(what))
    else:
        np.testing.assert_array_equal(value, right, err_msg=str(what))
