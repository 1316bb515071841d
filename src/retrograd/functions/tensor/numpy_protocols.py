"""NumPy's functions on tensors: the functions of the same meaning, so that no history is lost.

What has no counterpart is done on arrays. That is refused where it would lose a gradient: where a
tensor requires one, and the result has floating elements.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

import numpy as np

from retrograd.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    OptionError,
    ShapeError,
    TraceError,
)

_SAME = """
all allclose any append apply_along_axis apply_over_axes argmax argmin argpartition argwhere
array_equal array_equiv array_split astype atleast_1d atleast_2d atleast_3d average bincount block
broadcast_to choose clip column_stack compress convolve corrcoef correlate count_nonzero cov cumprod
cumsum cumulative_prod cumulative_sum delete diag diag_indices_from diagflat diff digitize dsplit
dstack ediff1d einsum expand_dims extract flatnonzero flip fliplr flipud geomspace gradient
histogram2d histogram_bin_edges histogramdd hsplit hstack imag insert interp intersect1d iscomplex
iscomplexobj isclose isin isneginf isposinf isreal isrealobj ix_ kron lexsort logspace
matrix_transpose max mean median min moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum
nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar nonzero pad
partition percentile permute_dims piecewise poly polyadd polyder polydiv polyfit polyint polymul
polysub polyval prod ptp quantile ravel ravel_multi_index real real_if_close repeat resize roll
rollaxis roots rot90 searchsorted select setdiff1d setxor1d sinc sort_complex squeeze std sum
swapaxes tensordot tile trapezoid tril tril_indices_from trim_zeros triu triu_indices_from union1d
unique unique_all unique_counts unique_inverse unique_values unravel_index unstack unwrap vander var
vsplit vstack
linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh
linalg.eigvals linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power
linalg.matrix_transpose linalg.multi_dot linalg.norm linalg.outer linalg.pinv linalg.slogdet
linalg.solve linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace
linalg.vecdot linalg.vector_norm
fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft
fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn
"""
# What code calls that wants NumPy's arrays, as SciPy does with the gradients that it is given.
# Tensors with a history stay tensors.
CONVERSIONS = frozenset({"atleast_1d", "atleast_2d", "atleast_3d"})
# What an element counts as that a mask, `where=`, leaves out; those of None need an `initial=`.
UNSELECTED = {
    "sum": 0, "prod": 1, "any": False, "all": True, "mean": 0, "var": 0, "std": 0,
    "max": None, "min": None, "amax": None, "amin": None,
}  # fmt: skip
STARTED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
# Functions of the same name and meaning: what comes by position comes in the same order, and what
# has the same name means the same.
SAME = frozenset(_SAME.split())
RENAMED = {"amax": "max", "amin": "min", "ddof": "correction"}
# Arguments that say how a result is to be computed, not which it is.
HOW = frozenset({"casting", "kind", "optimize", "order", "overwrite_input", "subok"})


def called(
    space: Any, kind: type, function: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of NumPy's function where an argument is of a `kind` of tensors; the counterparts
    are in the namespace."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name in IN_PLACE and isinstance(args[0] if args else None, kind):
        raise ArgumentError(
            f"np.{name} writes to its argument, behind the back of gradients; write "
            f"{IN_PLACE[name]}"
        )
    if options.get("out") is not None:
        raise DTypeError(f"np.{name} of a Tensor takes no out; {NO_PLACE}")
    if name in CONVERSIONS and (arrays := constants(space, args)):
        return function(*map(np.array, arrays))  # copies, which may be written to
    if args and name in UNSELECTED and {"where", "initial"} & options.keys():
        return _selected(space, RENAMED.get(name, name), *args, **options)
    if name in WRITTEN:
        return WRITTEN[name](space, *args, **options)
    own = RENAMED.get(name, name)
    if own not in SAME:
        return _on_arrays(space, name, kind, function, args, options)
    for part in own.split("."):
        space = getattr(space, part)
    places, named = _translated(name, own, function, space, args, options)
    return space(*places, **named)


def _translated(
    name: str, own: str, function: Any, counterpart: Any, args: Any, options: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of NumPy's function as those of its counterpart."""
    bound = signature(function).bind(*args, **options)
    parameters = signature(counterpart).parameters
    ours = [p for p in parameters.values() if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    places: list[Any] = []
    named: dict[str, Any] = {}
    for i, (key, theirs) in enumerate(bound.signature.parameters.items()):
        if key not in bound.arguments:
            continue
        value = bound.arguments[key]
        key = key if key in parameters else RENAMED.get(key, key)
        if theirs.kind is Parameter.VAR_POSITIONAL:
            places.extend(value)
        elif theirs.kind is Parameter.VAR_KEYWORD:
            named.update({k: v for k, v in value.items() if k not in HOW})
        elif value is theirs.default:
            continue
        elif key in parameters and parameters[key].kind is not Parameter.POSITIONAL_ONLY:
            named[key] = value
        elif i == len(places) < len(ours):
            places.append(value)
        elif key not in HOW:
            raise DTypeError(
                f"np.{name} of a Tensor takes no {key}; use rg.{own}, which takes "
                f"({', '.join(parameters)}), or x.detach().numpy() for an array without a history"
            )
    return places, named


def _on_arrays(space: Any, name: str, kind: Any, function: Any, args: Any, options: Any) -> Any:
    """The function itself, of arrays."""
    tensors = []

    def array(x: Any) -> Any:
        if isinstance(x, kind):
            tensors.append(x)
            return x.value()
        if isinstance(x, list | tuple):
            return type(x)(map(array, x)) if type(x) in (list, tuple) else x
        return x

    result = function(*map(array, args), **{k: array(x) for k, x in options.items()})
    lost = result is None or _has_floats(result)  # what returns nothing has written to an array
    if lost and any(x.requires_grad for x in tensors):
        raise GradientError(
            f"np.{name} has no counterpart for a Tensor, and its result would lose the gradient: "
            f"write it in functions of retrograd{near_miss(name, space)}, or use "
            "x.detach().numpy() for arrays without a history"
        )
    return result


def _has_floats(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_floats, x))
    return isinstance(x, float | complex) or getattr(x, "dtype", np.dtype(bool)).kind in "fc"


def near_miss(name: str, space: Any) -> str:
    """The names most like one, in brackets, for an error message."""
    near = get_close_matches(name.rpartition(".")[2], space.__all__, 2, 0.7)
    return f" (such as {' or '.join('rg.' + n for n in near)})" if near else ""


# -- functions whose meaning takes a line ----------------------------------------------------------
def _selected(
    space: Any, name: str, a: Any, axis: Any = None, *args: Any, where: Any = True,
    initial: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """A reduction of the elements that a mask selects, and of an initial value."""
    a, where = space.asarray(a), space.asarray(where)
    if name in ("mean", "var", "std"):
        placed = {"dtype": args[0]} if args else {}
        dtype = (options | placed).pop("dtype", None)
        a = a if dtype is None else space.astype(a, dtype)
        options.pop("dtype", None)
        return _moment(space, name, a, axis, where, options)
    left_out = UNSELECTED[name]
    if left_out is None and initial is None:
        raise ArgumentError(f"np.{name} with a mask wants an initial value, as it may be empty")
    chosen = space.where(where, a, initial if left_out is None else left_out)
    chosen = space.astype(chosen, a.dtype)
    if left_out is None and chosen.size == 0:  # of no elements there is the initial value
        one = np.broadcast_to(np.zeros((), bool), chosen.shape)
        shape = getattr(one, name)(axis, *args, initial=False, **options).shape
        return space.full(shape, initial, dtype=a.dtype)
    found = getattr(np, name)(chosen, axis, *args, **options)
    if initial is None:
        return found
    return space.astype(getattr(space, STARTED[name])(found, initial), found.dtype)


def _moment(space: Any, name: str, a: Any, axis: Any, where: Any, options: Any) -> Any:
    """The mean, variance or deviation of the elements that a mask selects."""
    less = options.pop("ddof", options.pop("correction", 0))
    keepdims = options.pop("keepdims", False)
    if options:
        raise DTypeError(f"np.{name} of a Tensor takes no {', '.join(options)} beside where")
    count = np.sum(space.broadcast_to(where, a.shape), axis, keepdims=True)
    found = np.sum(space.where(where, a, 0), axis, keepdims=True) / count
    if name != "mean":
        squares = space.square(space.abs(a - found))
        found = np.sum(space.where(where, squares, 0), axis, keepdims=True)
        found = found / space.maximum(count - less, 0)
        found = space.sqrt(found) if name == "std" else found
    if keepdims:
        return found
    axes = tuple(range(a.ndim)) if axis is None else axis
    return space.squeeze(found, axes)


def _joined(name: str) -> Callable[..., Any]:
    """`concat` and `stack`, which have no dtype."""

    def call(
        space: Any, arrays: Any, axis: int | None = 0, out: None = None, *, dtype: Any = None,
        casting: Any = "same_kind",
    ) -> Any:  # fmt: skip
        if dtype is None:
            return getattr(space, name)(arrays, axis=axis)
        nodes, wanted = [space.asarray(a) for a in arrays], np.dtype(dtype)
        for x in nodes:
            if not np.can_cast(np.dtype(str(x.dtype)), wanted, casting):
                raise DTypeError(f"np.{name} of {x.dtype} as {wanted} is not {casting}")
        return getattr(space, name)([space.astype(x, dtype) for x in nodes], axis=axis)

    return call


def _like(name: str) -> Callable[..., Any]:
    def call(
        space: Any, x: Any, *value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
        shape: Any = None, device: Any = None, fill_value: Any = None,
    ) -> Any:  # fmt: skip
        value = value if fill_value is None else (fill_value,)
        if len(value) > (name == "full_like"):  # by position
            *value, dtype = value  # type: ignore[assignment]
        dtype = x.dtype if dtype is None else dtype
        shape = x.shape if shape is None else shape
        return getattr(space, name.removesuffix("_like"))(shape, *value, dtype=dtype)

    return call


def _meshgrid(
    space: Any, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    vectors = [space.reshape(space.asarray(x), (-1,)) for x in xi]
    if not sparse:
        return space.meshgrid(*vectors, indexing=indexing)
    grid = [space.reshape(v, (1,) * i + v.shape + (1,) * (len(xi) - 1 - i))
            for i, v in enumerate(vectors)]  # fmt: skip
    return tuple(space.swapaxes(x, 0, 1) if indexing == "xy" and len(xi) > 1 else x for x in grid)


def _reshape(space: Any, a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    if order not in ("C", "F", "A"):
        raise OptionError(f"np.reshape: order is 'C', 'F' or 'A', not {order!r}")
    if order != "F":  # a tensor has no order in memory that 'A' could look at
        return space.reshape(a, shape, copy=copy)
    backwards = (shape,) if isinstance(shape, int) else tuple(shape)[::-1]
    return _transpose(space, space.reshape(_transpose(space, a), backwards))


def _take_along_axis(space: Any, arr: Any, indices: Any, axis: int | None = -1) -> Any:
    if axis is None:
        arr, axis = space.reshape(space.asarray(arr), (-1,)), 0
    return space.take_along_axis(arr, indices, axis)


def _svd(
    space: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:  # fmt: skip
    if not compute_uv:
        return space.linalg.svdvals(a)
    return space.linalg.svd(a, full_matrices=full_matrices)


def _matrix_rank(
    space: Any, A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> Any:
    if A.ndim < 2:  # of a vector, whether it is not zero
        return space.astype(space.any(A != 0), space.int64)
    if tol is None:
        return space.linalg.matrix_rank(A, rtol=rtol)
    found = space.linalg.svdvals(A) > space.expand_dims(space.asarray(tol), -1)
    return space.count_nonzero(found, axis=-1)


def _inner(space: Any, a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return space.multiply(a, b)
    return space.tensordot(a, b, axes=([np.ndim(a) - 1], [np.ndim(b) - 1]))


def _transpose(space: Any, a: Any, axes: Any = None) -> Any:
    return space.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else axes)


def _round(space: Any, a: Any, decimals: int = 0) -> Any:
    if decimals == 0:
        return space.round(a)
    if not a.dtype.is_inexact:
        if decimals > 0:
            return a
        step = 10**-decimals
        return space.astype(space.round(a.astype(space.float64) / step) * step, a.dtype)
    if decimals < 0:
        return space.round(a / 10**-decimals) * 10**-decimals
    return space.round(a * 10**decimals) / 10**decimals


def _last(space: Any, a: Any, axis1: int, axis2: int) -> Any:
    """An array with two axes moved to the end."""
    return space.moveaxis(a, (axis1, axis2), (-2, -1))


def _trace(
    space: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    return space.linalg.trace(_last(space, a, axis1, axis2), offset=offset, dtype=dtype)


def _diagonal(space: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return space.linalg.diagonal(_last(space, a, axis1, axis2), offset=offset)


def _take(
    space: Any, a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Any:
    return space.take(a, indices, axis=axis, mode=mode)


def _split(space: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if np.ndim(indices_or_sections):
        return list(space.array_split(ary, indices_or_sections, axis))
    return list(space.split(ary, indices_or_sections, axis=axis))


def _sorted(name: str) -> Callable[..., Any]:
    def call(
        space: Any, a: Any, axis: int | None = -1, kind: Any = None, order: None = None, *,
        stable: Any = None,
    ) -> Any:  # fmt: skip
        a, axis = (space.reshape(a, (-1,)), -1) if axis is None else (a, axis)
        if a.dtype.is_complex:
            parts = [space.imag(a), space.real(a)]
            found = space.lexsort(parts, axis=axis)
            return space.take_along_axis(a, found, axis=axis) if name == "sort" else found
        return getattr(space, name)(a, axis=axis)

    return call


def _cross(
    space: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
    axis: int | None = None,
) -> Any:  # fmt: skip
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (space.moveaxis(space.asarray(x), k, -1) for x, k in ((a, axisa), (b, axisb)))
    return space.moveaxis(space.cross(a, b), -1, axisc)


def _angle(space: Any, z: Any, deg: bool = False) -> Any:
    return space.rad2deg(space.angle(z)) if deg else space.angle(z)


def _vdot(space: Any, a: Any, b: Any, /) -> Any:
    a, b = (space.reshape(space.asarray(x), (-1,)) for x in (a, b))
    return space.tensordot(space.conj(a), b, axes=1)


def _outer(space: Any, a: Any, b: Any) -> Any:
    a, b = (space.reshape(space.asarray(x), (-1,)) for x in (a, b))
    if a.dtype == b.dtype == space.bool:
        return space.logical_and(a[:, None], b[None, :])
    return space.outer(a, b)


def _where(space: Any, condition: Any, *choices: Any) -> Any:
    return space.where(condition, *choices) if choices else space.nonzero(condition)


def _histogram(
    space: Any, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if isinstance(bins, str):
        bins = space.histogram_bin_edges(a, bins, range).shape[0] - 1
    return space.histogram(a, bins, range, weights, bool(density))


def _linspace(
    space: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    y = space.linspace(start, stop, num, dtype=dtype, endpoint=endpoint, axis=axis)
    if not retstep:
        return y
    gaps = num - 1 if endpoint else num
    return y, space.divide(space.subtract(stop, start), gaps) if gaps > 0 else float("nan")


def _qr(space: Any, a: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return space.linalg.qr(a).R
    return space.linalg.qr(a, mode=mode)


def _lstsq(space: Any, a: Any, b: Any, rcond: float | None = None) -> tuple[Any, ...]:
    found = space.linalg.lstsq(a, b, rcond)
    m, n = a.shape if hasattr(a, "shape") else np.shape(a)
    residuals = space.reshape(found.residuals, (-1,))
    try:
        short = m <= n or int(found.rank) < n
    except TraceError:  # what is traced has full rank, as nearly all have
        short = False
    return found.solution, residuals[:0] if short else residuals, found.rank, found.singular_values


def _parts(name: str) -> Callable[..., list[Any]]:
    return lambda space, *args, **options: list(getattr(space, name)(*args, **options))


def _windows(space: Any, x: Any, window_shape: Any, axis: Any = None, **options: Any) -> Any:
    shape = tuple(np.atleast_1d(window_shape).tolist())
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    for size, at in zip(shape, axes, strict=True):
        at = at % (x.ndim if x.ndim else 1)
        count = x.shape[at] - size + 1
        if count < 1:
            raise ShapeError(f"a window of {size} along axis {at} of the shape {x.shape}")
        places = np.add.outer(np.arange(count), np.arange(size))
        x = space.moveaxis(space.take(x, places, axis=at), at + 1, -1)
    return x


_SORTS = "sort argsort"


def _broadcast_arrays(space: Any, *args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Next to tensors there may be what is no number, such as the None of `plt.bar`."""
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple([
        space.broadcast_to(x, shape)
        if hasattr(x, "__array_namespace__") or np.asarray(x).dtype.kind in "biufc"
        else np.broadcast_to(np.asarray(x), shape)
        for x in args
    ])  # fmt: skip


WRITTEN: dict[str, Callable[..., Any]] = {
    "broadcast_arrays": _broadcast_arrays,
    "shape": lambda space, a: a.shape,
    "ndim": lambda space, a: a.ndim,
    "size": lambda space, a, axis=None: a.size if axis is None else a.shape[axis],
    "copy": lambda space, a, order="K", subok=False: space.asarray(a, copy=True),
    **{f"{name}_like": _like(f"{name}_like") for name in ("full", "ones", "zeros")},
    "empty_like": _like("zeros_like"),
    "concatenate": _joined("concat"),
    "concat": _joined("concat"),
    "stack": _joined("stack"),
    "meshgrid": _meshgrid,
    "reshape": _reshape,
    "take_along_axis": _take_along_axis,
    "fix": lambda space, x: space.trunc(x),
    "dot": lambda space, a, b: space.dot(a, b),
    "vdot": _vdot,
    "inner": _inner,
    "outer": _outer,
    "cross": _cross,
    "where": _where,
    "angle": _angle,
    "i0": lambda space, x: space.special.i0(x),
    **{name: _sorted(name) for name in _SORTS.split()},
    "split": _split,
    "array_split": _parts("array_split"),
    "hsplit": _parts("hsplit"),
    "vsplit": _parts("vsplit"),
    "dsplit": _parts("dsplit"),
    "take": _take,
    "transpose": _transpose,
    "round": _round,
    "around": _round,
    "trace": _trace,
    "diagonal": _diagonal,
    "histogram": _histogram,
    "linspace": _linspace,
    "linalg.lstsq": _lstsq,
    "linalg.qr": _qr,
    "linalg.svd": _svd,
    "linalg.matrix_rank": _matrix_rank,
    "lib.stride_tricks.sliding_window_view": _windows,
}

NO_PLACE = (
    "tensors are not written to, and an array has no place for their history. Write x = x + y "
    "instead of x += y, rg.where for a mask, or use x.detach().numpy()"
)
# What writes to its first argument, and what to write instead.
IN_PLACE = {
    "copyto": "x = rg.where(mask, y, x) or x.at[...].set(y)",
    "fill_diagonal": "x = x.at[rg.diag_indices_from(x)].set(value)",
    "place": "x = rg.where(mask, value, x)",
    "put": "x = rg.reshape(rg.reshape(x, (-1,)).at[indices].set(values), x.shape)",
    "put_along_axis": "x = rg.put_along_axis(x, indices, values, axis)",
    "putmask": "x = rg.where(mask, value, x)",
}


# -- universal functions ---------------------------------------------------------------------------
# Where NumPy's name is not the one here. Others of its names are looked up as they are, then those
# of SciPy among the special functions.
NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "degrees": "rad2deg", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "power": "pow", "radians": "deg2rad", "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip
REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any", "logaddexp": "logsumexp", "fmax": "nanmax", "fmin": "nanmin",
}  # fmt: skip
ACCUMULATED = {
    "add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin",
    "logaddexp": "logcumsumexp",
}  # fmt: skip
# `x.at[key]` has these methods.
UPDATES = frozenset(("add", "subtract", "multiply", "divide", "power", "maximum", "minimum"))


def _matrix(name: str, x: Any) -> None:
    if np.ndim(x) < 2:
        raise ShapeError(f"np.{name} takes a matrix, or a stack of them, not {np.shape(x)}")


def _matvec(space: Any, x1: Any, x2: Any) -> Any:
    _matrix("matvec", x1)
    return space.squeeze(space.matmul(x1, space.expand_dims(x2, -1)), -1)


def _vecmat(space: Any, x1: Any, x2: Any) -> Any:
    _matrix("vecmat", x2)
    return space.squeeze(space.matmul(space.expand_dims(space.conj(x1), -2), x2), -2)


PRODUCTS = {"matvec": _matvec, "vecmat": _vecmat}


def applied(
    space: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of a universal function as a tensor, by the function of the namespace."""
    given = {k: v for k, v in options.items() if k not in HOW and not _is_default(k, v)}
    if method != "__call__":
        return _by_method(space, ufunc, method, inputs, given)
    name = ufunc.__name__
    if "out" in given and not any(isinstance(y, space.Tensor) for y in given["out"]):
        where = options.get("where", True)
        if arrays := constants(space, [*inputs, where]):
            return ufunc(*arrays[:-1], **options | {"where": arrays[-1]})
    dtype = given.pop("dtype", None)
    if given:
        raise DTypeError(f"np.{name} of a Tensor takes no {', '.join(sorted(given))}: {NO_PLACE}")
    found = _counterpart(space, ufunc)
    if found is None and (arrays := constants(space, inputs)):
        return _as_tensors(space, ufunc(*arrays, **options))
    if found is None:
        raise DTypeError(
            f"np.{name} has no counterpart for a Tensor with a history{near_miss(name, space)}: "
            "use x.detach(), or give its derivative by rg.custom_vjp around rg.pure_callback"
        )
    if dtype is not None:
        inputs = tuple(space.astype(space.asarray(x), dtype) for x in inputs)
    return found(*inputs)


def constants(space: Any, inputs: Sequence[Any]) -> list[Any]:
    """Operands with arrays in place of tensors, where all are known and have no history: nothing is
    lost then where NumPy computes, or an array is written to as by `a += x`. Empty otherwise."""
    tensors = [x for x in inputs if isinstance(x, space.Tensor)]
    if any(x.requires_grad for x in tensors):
        return []
    try:
        return [np.asarray(x) if isinstance(x, space.Tensor) else x for x in inputs]
    except TraceError:
        return []


def _as_tensors(space: Any, result: Any) -> Any:
    """What NumPy computed of tensors; what is no number stays as it is."""
    if isinstance(result, tuple):
        return tuple(_as_tensors(space, x) for x in result)
    return space.asarray(result) if np.asarray(result).dtype.kind in "biufc" else result


def _is_default(key: str, value: Any) -> bool:
    return (value is None and key != "axis") or (key == "where" and value is True)


def _counterpart(space: Any, ufunc: Any) -> Callable[..., Any] | None:
    name = ufunc.__name__
    if name in PRODUCTS:
        return lambda *inputs: PRODUCTS[name](space, *inputs)
    own = NAMES.get(name, name)
    if getattr(np, name, None) is ufunc and own in space.__all__:
        found: Any = getattr(space, own)
        return found if callable(found) else None
    for module in ("scipy.special", "scipy.special._ufuncs"):  # the first may hold wrappers
        theirs = getattr(sys.modules.get(module), name, None)
        if theirs is ufunc and name in space.special.__all__:
            return getattr(space.special, name)
    return None


def _by_method(
    space: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """`ufunc.reduce`, `accumulate` and `outer`, where there is a function that does the same."""
    name = ufunc.__name__
    if method == "outer" and ufunc.nin == 2 and not options:
        x, y = (space.asarray(v) for v in inputs)
        return applied(space, ufunc, "__call__", (space.reshape(x, x.shape + (1,) * y.ndim), y), {})
    of = {"reduce": REDUCED, "accumulate": ACCUMULATED}.get(method, {})
    unknown = set(options) - {"axis", "dtype", *(["keepdims"] if method == "reduce" else [])}
    if name in of and not unknown and len(inputs) <= 2:
        axis = inputs[1] if len(inputs) == 2 else options.get("axis", 0)
        keys = {"axis": axis} | ({"keepdims": True} if options.get("keepdims") else {})
        x = space.asarray(inputs[0])
        if not x.ndim and method == "reduce" and axis in (0, -1):  # which NumPy allows
            keys["axis"] = None
        x = x if options.get("dtype") is None else space.astype(x, options["dtype"])
        return getattr(space, of[name])(x, **keys)
    if method == "at":
        update = {"maximum": "max", "minimum": "min"}.get(name, name)
        how = f"x = x.at[indices].{update}(values)" if name in UPDATES else "x.at[indices].set"
        raise ArgumentError(f"np.{name}.at writes to its argument; write {how}")
    if unknown & {"out", "where", "initial"}:
        raise DTypeError(
            f"np.{name}.{method} of a Tensor takes no {', '.join(sorted(unknown))}: {NO_PLACE}"
        )
    if method in ("reduce", "accumulate") and ufunc.nin == 2 and not unknown:
        if arrays := constants(space, inputs):
            return space.asarray(getattr(ufunc, method)(*arrays, **options))
        axis = inputs[1] if len(inputs) == 2 else options.get("axis", 0)
        if isinstance(axis, int) and options.get("dtype") is None:
            return _folded(space, ufunc, method, inputs[0], axis, options.get("keepdims", False))
    near = "rg.segment_sum" if method == "reduceat" else "rg.sum, rg.cumsum, rg.outer or rg.scan"
    raise DTypeError(
        f"np.{name}.{method} of a Tensor: use operations of retrograd, such as {near}, or "
        "x.detach().numpy() for an array without a history"
    )


def _folded(space: Any, ufunc: Any, method: str, x: Any, axis: int, keepdims: bool) -> Any:
    """`ufunc.reduce` and `accumulate` slice by slice, as NumPy defines them."""
    first, *rest = space.unstack(x, axis=axis)  # of none NumPy has the identity, without a history
    results = [first]
    for part in rest:
        results.append(applied(space, ufunc, "__call__", (results[-1], part), {}))
    if method == "accumulate":
        return space.stack(results, axis=axis)
    return space.expand_dims(results[-1], axis) if keepdims else results[-1]
