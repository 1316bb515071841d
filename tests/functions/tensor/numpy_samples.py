"""Random calls of NumPy's functions: shapes without axes and without elements, steps of any sign,
every dtype, axes that are not there, and options by position and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
SHAPES: list[tuple[int, ...]] = [
    (), (0,), (1,), (3,), (4,), (2, 3), (3, 3), (0, 3), (3, 0), (1, 1), (2, 1, 3), (2, 2, 2),
    (2, 0, 2),
]  # fmt: skip
DTYPES = [
    *["float64"] * 4, "float32", "int64", "int32", "uint8", "int8", "bool", "complex128",
    "complex64", "float16",
]  # fmt: skip
ABSENT: Any = object()


class Draw:
    """What a call is made of."""

    def __init__(self, seed: list[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def any_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def maybe(self, value: Any, p: float = 0.5) -> Any:
        return value if self.chance(p) else ABSENT

    def array(self, shape: Any = None, dtype: Any = None, wild: bool = True) -> Array:
        """In any order in memory; `wild` ones have NaN and infinities now and then."""
        shape = self.any_of(SHAPES) if shape is None else shape
        dtype = np.dtype(self.any_of(DTYPES) if dtype is None else dtype)
        way = int(self.rng.integers(4))
        if not shape or way == 0:
            return self._values(shape, dtype, wild)
        if way == 1:
            return self._values(shape, dtype, wild)[tuple(slice(None, None, -1) for _ in shape)]
        if way == 2:
            return self._values(shape[::-1], dtype, wild).T
        spread = self._values(tuple(2 * n for n in shape), dtype, wild)
        return spread[tuple(slice(None, None, 2) for _ in shape)]

    def _values(self, shape: Any, dtype: Any, wild: bool) -> Array:
        if dtype.kind in "bui":
            low = -4 if dtype.kind == "i" else 0
            return self.rng.integers(low, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
        x = self.rng.normal(size=shape) * 1.5
        x = np.round(x) if self.chance(0.3) else x
        if wild and self.chance(0.15):
            x = np.where(self.rng.random(shape) < 0.3, self.any_of([np.nan, np.inf, -np.inf, 0]), x)
        if dtype.kind == "c":
            x = x + 1j * self.rng.normal(size=shape)
        return np.asarray(x).astype(dtype)

    def real(self, shape: Any = None, dtype: Any = None) -> Array:
        return self.array(shape, "float64" if dtype is None else dtype, wild=False)

    def axis(self, x: Array, *, none: bool = True, several: bool = False) -> Any:
        if self.chance(0.05):
            return x.ndim  # which is not there
        known: list[Any] = [None] * none + list(range(-x.ndim, x.ndim))
        if several and x.ndim >= 2:
            known += [(0, -1), (1, 0), ()]
        return self.any_of(known) if known else 0

    def length(self, x: Array, axis: Any) -> int:
        if axis is None:
            return x.size
        return x.shape[axis] if -x.ndim <= axis < x.ndim else 1

    def flag(self) -> bool:
        return bool(self.rng.integers(2))


def options(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not ABSENT}


Sample = Callable[[Draw, str], Arguments]
SAMPLES: dict[str, Sample] = {}


def of(names: str) -> Callable[[Sample], Sample]:
    def register(sample: Sample) -> Sample:
        SAMPLES.update(dict.fromkeys(names.split(), sample))
        return sample

    return register


@of("""sum prod any all max min mean std var nansum nanprod nanmax nanmin nanmean nanstd nanvar
    median nanmedian count_nonzero""")
def reduction(d: Draw, name: str) -> Arguments:
    x = d.array()
    given = options(
        axis=d.maybe(d.axis(x, several=True), 0.7), keepdims=d.maybe(d.flag(), 0.4),
        ddof=d.maybe(d.flag() + 0, 0.3) if name.endswith(("std", "var")) else ABSENT,
    )  # fmt: skip
    if name in ("sum", "prod", "nansum", "nanprod"):
        given |= options(dtype=d.maybe(d.any_of(["float64", "float32", "complex128"]), 0.2))
    if name in ("sum", "prod", "max", "min", "any", "all", "mean", "std", "var") and d.chance(0.2):
        given |= {"where": d.rng.random(x.shape) < 0.6}
        given |= {"initial": -1} if name in ("max", "min") else {}
    return (x,), given


@of("argmax argmin nanargmax nanargmin ptp")
def position(d: Draw, name: str) -> Arguments:
    x = d.array()
    return (x,), options(axis=d.maybe(d.axis(x)), keepdims=d.maybe(d.flag(), 0.3))


@of("cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod")
def running(d: Draw, name: str) -> Arguments:
    x = d.array()
    begin = d.maybe(True, 0.3) if name.startswith("cumulative") else ABSENT
    return (x,), options(axis=d.maybe(d.axis(x)), include_initial=begin)


@of("sort argsort")
def sorting(d: Draw, name: str) -> Arguments:
    x = d.array(wild=name == "sort")
    return (x,), options(axis=d.maybe(d.axis(x)), stable=True)


@of("quantile percentile nanquantile nanpercentile")
def quantile(d: Draw, name: str) -> Arguments:
    x = d.real(dtype=d.any_of(["float64", "float32", "int64", "uint8"]))
    q = d.rng.random(d.any_of([1, 2])) if d.chance(0.5) else float(d.rng.random())
    methods = """linear lower higher nearest midpoint inverted_cdf averaged_inverted_cdf hazen
        closest_observation interpolated_inverted_cdf weibull median_unbiased normal_unbiased"""
    return (x, q * 100 if "percent" in name else q), options(
        axis=d.maybe(d.axis(x, several=True)), keepdims=d.maybe(True, 0.3),
        method=d.maybe(d.any_of(methods.split()), 0.7),
    )  # fmt: skip


@of("flip rot90 fliplr flipud roll")
def turning(d: Draw, name: str) -> Arguments:
    x = d.array()
    if name == "flip":
        return (x,), options(axis=d.maybe(d.axis(x, several=True)))
    if name == "rot90":
        turns = int(d.rng.integers(-5, 6))
        return (x,), options(k=d.maybe(turns), axes=d.maybe((1, 0), 0.3))
    if name == "roll":
        axis = d.axis(x, several=True)
        one = not isinstance(axis, tuple) or d.chance(0.5)
        shift = int(d.rng.integers(-7, 8)) if one else tuple(range(-1, len(axis) - 1))
        return (x, shift), {"axis": axis}
    return (x,), {}


@of("""squeeze expand_dims moveaxis swapaxes rollaxis transpose matrix_transpose ravel reshape
    resize repeat tile broadcast_to unstack split array_split hsplit vsplit dsplit""")
def shaping(d: Draw, name: str) -> Arguments:
    x = d.array()
    axis, size = d.axis(x, none=False), x.ndim
    if name == "squeeze":
        return (x,), options(axis=d.maybe(d.axis(x, several=True)))
    if name == "expand_dims":
        return (x, d.any_of([(0, -1), *range(-size - 1, size + 1)])), {}
    if name in ("moveaxis", "swapaxes", "rollaxis"):
        return (x, axis, d.axis(x, none=False)), {}
    if name == "transpose":
        return (x, *([] if d.chance(0.3) else [tuple(d.rng.permutation(size).tolist())])), {}
    if name == "ravel":
        return (x,), options(order=d.maybe(d.any_of("CF"), 0.4))
    if name == "reshape":
        shape = d.any_of([(-1,), (x.size,), (1, -1), (2, -1), (0, -1), (x.size, 1), -1])
        return (x, shape), options(order=d.maybe(d.any_of("CF"), 0.3))
    if name == "resize":
        return (x, d.any_of([(2, 3), (0,), 5])), {}
    if name == "repeat":
        axis = d.axis(x)
        times = d.rng.integers(0, 3, d.length(x, axis)) if d.chance(0.5) else d.any_of([0, 1, 3])
        return (x, times), {"axis": axis}
    if name == "tile":
        return (x, d.any_of([2, (2, 1), (0,), (1, 2, 1), ()])), {}
    if name == "broadcast_to":
        return (x, d.any_of([(2, *x.shape), (3, 3)])), {}
    if name.endswith("split"):
        parts = d.any_of([2, 1, 3, [1], [1, 2], [0, 5], [-1], []])
        return (x, parts), options(axis=d.maybe(axis)) if name[0] in "sa" else {}
    return (x,), {"axis": axis} if name == "unstack" else {}


@of("concatenate concat stack vstack hstack dstack column_stack append")
def joining(d: Draw, name: str) -> Arguments:
    shape = d.any_of(SHAPES)
    parts = [d.array(shape) for _ in range(int(d.rng.integers(1, 4)))]
    if name == "append":
        other = d.array(shape if d.chance(0.6) else None)
        return (parts[0], other), options(axis=d.maybe(d.axis(parts[0])))
    if name in ("concatenate", "concat", "stack"):
        axis = d.axis(parts[0], none=name != "stack")
        real = all(x.dtype.kind != "c" for x in parts)
        dtype = d.maybe({"dtype": "float64", "casting": "unsafe"}, 0.2 * real)
        return (parts,), options(axis=d.maybe(axis)) | ({} if dtype is ABSENT else dtype)
    return (parts,), {}


@of("diff ediff1d gradient trapezoid unwrap")
def slopes(d: Draw, name: str) -> Arguments:
    x = d.array()
    axis = d.maybe(d.axis(x, none=False))
    if name == "diff":
        times = d.maybe(int(d.rng.integers(0, 4)))
        return (x,), options(n=times, axis=axis, append=d.maybe(x, 0.2))
    if name == "ediff1d":
        return (x,), options(to_end=d.maybe(np.ones(2, x.dtype), 0.3))
    if name == "gradient":
        step = [0.5] if d.chance(0.5) else []
        axes = d.maybe(d.axis(x, several=True))
        return (x, *step), options(axis=axes, edge_order=d.maybe(2, 0.3))
    if name == "trapezoid":
        x = d.real(dtype=d.any_of(["float64", "int64", "complex128"]))
        return (x,), options(dx=d.maybe(0.5), axis=d.maybe(d.axis(x, none=False)))
    return (x,), options(axis=axis, period=d.maybe(2.0, 0.3))


@of("where select choose compress extract take take_along_axis insert delete")
def choosing(d: Draw, name: str) -> Arguments:
    x = d.array()
    mask, axis = d.rng.random(x.shape) < 0.5, d.axis(x)
    size = d.length(x, axis)
    if name == "where":
        other = d.array(x.shape if d.chance(0.5) else ())
        return (mask if d.chance(0.7) else d.array(x.shape), x, other), {}
    if name == "select":
        return ([mask, ~mask], [x, d.array(x.shape)]), options(default=d.maybe(1, 0.4))
    if name == "choose":
        choices = [x, d.array(x.shape), d.array(x.shape)]
        return (d.rng.integers(0, 3, x.shape), choices), options(mode=d.maybe("wrap", 0.3))
    if name == "compress":
        return (d.rng.random(max(size - d.flag(), 0)) < 0.5, x), {"axis": axis}
    if name == "extract":
        return (mask, x), {}
    if name in ("insert", "delete"):
        at = d.any_of([0, slice(0, 1), [0] if size else [], [0, -1] if size else []])
        return ((x, at, 1) if name == "insert" else (x, at)), {"axis": axis}
    if name == "take":
        low, high = (-size, size) if size and d.chance(0.8) else (-9, 9)
        index = d.rng.integers(low, high, d.any_of([(), (2,), (2, 2), (0,)]))
        mode = d.maybe(d.any_of(["raise", "wrap", "clip"]))
        return (x, index), options(axis=d.maybe(axis, 0.8), mode=mode)
    shape = [2 * bool(size)] if axis is None else list(x.shape)
    if axis is not None and -x.ndim <= axis < x.ndim:
        shape[axis] = 2 * bool(size)
    return (x, d.rng.integers(-size, max(size, 1), shape)), {"axis": axis}


@of("searchsorted digitize interp bincount histogram histogramdd")
def counting(d: Draw, name: str) -> Arguments:
    edges = np.sort(d.real((int(d.rng.integers(0, 5)),)))
    if name == "searchsorted":
        return (edges, d.real()), options(side=d.maybe("right"))
    if name == "digitize":
        edges = edges[::-1] if d.chance(0.4) else edges
        x = d.real(dtype=d.any_of(["float64", "int32", "float32"]))
        return (x, edges), options(right=d.maybe(True))
    if name == "interp":
        places = np.arange(1.0, 2 + d.rng.integers(4))
        return (d.real(), places, d.real(places.shape)), options(left=d.maybe(-1.0, 0.3))
    if name == "bincount":
        x = d.rng.integers(0, 5, int(d.rng.integers(1, 5)))
        weights = d.maybe(d.rng.random(x.shape), 0.4)
        return (x,), options(weights=weights, minlength=d.maybe(7, 0.3))
    if name == "histogramdd":
        return (d.real((5, 2)),), options(bins=d.maybe((2, 3)), density=d.maybe(True, 0.3))
    x = d.real()
    return (x,), options(
        bins=d.maybe(d.any_of([3, 1, [-1.0, 0.0, 2.0], "auto", "sturges", "fd"])),
        range=d.maybe((-1, 2), 0.3), weights=d.maybe(d.rng.random(x.shape), 0.2),
        density=d.maybe(True, 0.2),
    )  # fmt: skip


@of("unique union1d intersect1d setdiff1d setxor1d isin")
def sets(d: Draw, name: str) -> Arguments:
    x = d.array(dtype=d.any_of(["float64", "int64", "bool", "uint8", "complex128"]))
    if name == "unique":
        asked = {f"return_{what}": d.maybe(True, 0.3) for what in ("index", "inverse", "counts")}
        return (x,), options(**asked, axis=d.maybe(d.axis(x), 0.3), equal_nan=d.maybe(False, 0.2))
    other = d.array(dtype=x.dtype)
    return (x, other), options(invert=d.maybe(True, 0.3)) if name == "isin" else {}


@of("""dot vdot inner outer kron tensordot linalg.matmul linalg.vecdot linalg.tensordot cross
    convolve correlate einsum cov corrcoef""")
def products(d: Draw, name: str) -> Arguments:
    m = int(d.rng.integers(0, 4))
    if name in ("convolve", "correlate"):
        dtype = d.any_of(["float64", "int64", "complex128"])
        rows = [d.real((int(d.rng.integers(0, 5)),), dtype) for _ in range(2)]
        return tuple(rows), options(mode=d.maybe(d.any_of(["full", "same", "valid"])))
    if name == "cross":
        shape = d.any_of([(3,), (2, 3), (3, 3)])
        return (d.array(shape), d.array(shape)), options(axis=d.maybe(-1, 0.2))
    if name == "linalg.vecdot":
        return tuple(d.array(d.any_of([(m,), (2, m), (1, m)])) for _ in range(2)), {}
    if name == "einsum":
        text, *shapes = d.any_of([
            ("ij,jk->ik", (2, m), (m, 3)), ("ij,ij", (2, m), (2, m)), ("ii->i", (m, m)),
            ("...i,i->...", (2, 2, m), (m,)), ("ij->", (2, m)), ("i,j", (m,), (2,)),
            ("i,i,i", (m,), (m,), (m,)),
        ])  # fmt: skip
        return (text, *(d.array(s, wild=False) for s in shapes)), {}
    if name in ("kron", "outer"):
        return (d.array(), d.array()), {}
    if name in ("cov", "corrcoef"):
        x = d.real(d.any_of([(3,), (2, 3), (3, 1)]))
        return (x,), options(rowvar=d.maybe(False, 0.3))
    a = d.array(d.any_of([(m,), (2, m), (2, 2, m), ()]))
    b = d.array(d.any_of([(m,), (m, 2), (2, m, 3), ()]))
    axes = d.any_of([0, 1, 2, ([-1], [0])]) if "tensordot" in name else ABSENT
    return (a, b), options(axes=axes)


@of("tril triu diag diagflat diagonal trace linalg.diagonal linalg.trace vander")
def diagonals(d: Draw, name: str) -> Arguments:
    offset = d.maybe(int(d.rng.integers(-3, 4)))
    if name == "vander":
        x = d.array((int(d.rng.integers(0, 4)),))
        return (x,), options(N=d.maybe(int(d.rng.integers(0, 5))), increasing=d.maybe(True))
    x = d.array(d.any_of([(2, 3), (3, 3), (0, 3), (2, 2, 2)])) if name[:3] == "tri" else d.array()
    if name in ("tril", "triu", "diag", "diagflat"):
        return (x,), options(k=offset)
    others = {} if "." in name else {"axis1": d.maybe(-1, 0.2), "axis2": d.maybe(0, 0.2)}
    return (x,), options(offset=offset, **others)


@of("""linalg.det linalg.slogdet linalg.inv linalg.pinv linalg.cond linalg.matrix_rank linalg.norm
    linalg.vector_norm linalg.svdvals linalg.svd linalg.cholesky linalg.solve linalg.lstsq
    linalg.matrix_power""")
def matrices(d: Draw, name: str) -> Arguments:
    name = name.removeprefix("linalg.")
    shapes = [(3, 3), (2, 2), (1, 1), (2, 3), (3, 2), (2, 2, 2), (0, 0), (0, 2, 2), (4,), ()]
    dtype = d.any_of(["float64", "float32", "int64", "bool", "complex128"])
    x = d.real(d.any_of(shapes), dtype)
    if name in ("norm", "vector_norm"):
        order = d.any_of([None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc", 0, 3])
        return (x,), options(
            ord=d.maybe(order, 0.8), axis=d.maybe(d.axis(x, several=True)),
            keepdims=d.maybe(True, 0.3),
        )  # fmt: skip
    if name == "cholesky":
        x = d.real(d.any_of([(3, 3), (2, 2, 2), (0, 0)]))
        return (x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]),), {}
    if name == "solve":
        return (x, d.real((x.shape[-1] if x.ndim else 1,))), {}
    if name == "lstsq":
        return (x, d.real((x.shape[0] if x.ndim else 1,))), {}
    if name == "matrix_power":
        return (x, int(d.rng.integers(-2, 4))), {}
    return (x,), {"compute_uv": False} if name == "svd" else {}


@of("""fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.fftn fft.ifftn fft.rfftn
    fft.irfftn fft.fftshift fft.ifftshift""")
def transforms(d: Draw, name: str) -> Arguments:
    x = d.array(d.any_of([s for s in SHAPES if s]), wild=False)
    if "shift" in name:
        return (x,), {"axes": d.axis(x, several=True)}
    if name.endswith(("2", "n")):
        return (x,), options(axes=d.maybe((-1,), 0.4))
    return (x,), options(
        n=d.maybe(int(d.rng.integers(0, 6))), axis=d.maybe(d.axis(x, none=False)),
        norm=d.maybe(d.any_of(["ortho", "forward", "backward"])),
    )  # fmt: skip


@of("""clip round nan_to_num angle real imag isreal iscomplex isneginf isposinf nonzero argwhere
    flatnonzero shape ndim size copy ones_like zeros_like full_like meshgrid ix_ isclose array_equal
    array_equiv pad""")
def others(d: Draw, name: str) -> Arguments:
    x = d.array()
    if name == "clip":
        limits = [d.any_of([-1, None, 0.5]), d.any_of([1, 2.5, None])]
        return (d.real(dtype=d.any_of(["float64", "int64", "int8"])), *limits), {}
    if name == "round":
        x = d.real(dtype=d.any_of(["float64", "int64"]))
        return (x,), options(decimals=d.maybe(int(d.rng.integers(-2, 4))))
    if name == "nan_to_num":
        return (x,), options(nan=d.maybe(1.0, 0.3), posinf=d.maybe(5.0, 0.3))
    if name == "angle":
        return (x,), options(deg=d.maybe(True))
    if name.endswith("_like"):
        value = [2] if name == "full_like" else []
        return (x, *value), options(dtype=d.maybe("int32", 0.3), shape=d.maybe((2, 2), 0.3))
    if name == "meshgrid":
        return (x, d.array()), options(indexing=d.maybe("ij"), sparse=d.maybe(True, 0.4))
    if name == "ix_":
        return (d.array((2,), "int64"), d.array((2,), d.any_of(["bool", "int64"]))), {}
    if name.startswith(("isc", "array_")) and name != "iscomplex":
        other = d.array(x.shape if d.chance(0.7) else None) if d.chance(0.5) else x.copy()
        return (x, other), options(equal_nan=d.maybe(True)) if name != "array_equiv" else {}
    if name == "pad":
        modes = """constant edge linear_ramp maximum mean minimum reflect symmetric wrap"""
        return (d.real(), d.any_of([1, (1, 2), 0])), {"mode": d.any_of(modes.split())}
    return (x,), {}
