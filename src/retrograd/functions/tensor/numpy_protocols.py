"""NumPy's functions on tensors: the functions of the same meaning, so that no history is lost.

What has no counterpart is done on arrays. That is refused where it would lose a gradient: where a
tensor requires one, and the result has floating elements.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, GradientError

_SAME = """
all any argmax argmin argsort argwhere astype bincount broadcast_arrays broadcast_to clip concat
count_nonzero cumprod cumsum cumulative_prod cumulative_sum diff digitize einsum expand_dims flip
full_like histogram imag isin kron linspace matrix_transpose max mean median meshgrid min moveaxis
nonzero ones_like outer percentile permute_dims prod quantile real repeat reshape roll searchsorted
sort squeeze stack std sum swapaxes take_along_axis tensordot tile tril triu unique_all
unique_counts unique_inverse unique_values unstack var where zeros_like
linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh
linalg.eigvals linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power
linalg.matrix_rank linalg.matrix_transpose linalg.multi_dot linalg.norm linalg.outer linalg.pinv
linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace
linalg.vecdot linalg.vector_norm
fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft
fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn
"""
# Functions of the same name and meaning: what comes by position comes in the same order, and what
# has the same name means the same.
SAME = frozenset(_SAME.split())
RENAMED = {"amax": "max", "amin": "min", "concatenate": "concat", "ddof": "correction"}


def called(
    space: Any, kind: type, function: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of NumPy's function where an argument is of a `kind` of tensors; the counterparts
    are in the namespace."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name in WRITTEN:
        return WRITTEN[name](space, *args, **options)
    own = RENAMED.get(name, name)
    if own not in SAME:
        return _on_arrays(name, kind, function, args, options)
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
        key, value = RENAMED.get(key, key), bound.arguments[key]
        if theirs.kind is Parameter.VAR_POSITIONAL:
            places.extend(value)
        elif value is theirs.default:
            continue
        elif key in parameters and parameters[key].kind is not Parameter.POSITIONAL_ONLY:
            named[key] = value
        elif i == len(places) < len(ours):
            places.append(value)
        else:
            raise DTypeError(
                f"np.{name} of a Tensor takes no {key}; use rg.{own}, which takes "
                f"({', '.join(parameters)}), or x.detach().numpy() for an array without a history"
            )
    return places, named


def _on_arrays(name: str, kind: Any, function: Any, args: Any, options: Any) -> Any:
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
            "write it in functions of retrograd, or use x.detach().numpy() for arrays without a "
            "history"
        )
    return result


def _has_floats(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_floats, x))
    return isinstance(x, float | complex) or getattr(x, "dtype", np.dtype(bool)).kind in "fc"


# -- functions whose meaning takes a line ----------------------------------------------------------
def _dot(space: Any, a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return space.multiply(a, b)
    return space.tensordot(a, b, axes=([np.ndim(a) - 1], [max(np.ndim(b) - 2, 0)]))


def _inner(space: Any, a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return space.multiply(a, b)
    return space.tensordot(a, b, axes=([np.ndim(a) - 1], [np.ndim(b) - 1]))


def _transpose(space: Any, a: Any, axes: Any = None) -> Any:
    return space.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else axes)


def _round(space: Any, a: Any, decimals: int = 0) -> Any:
    return space.round(a * 10**decimals) / 10**decimals if decimals else space.round(a)


def _trace(space: Any, a: Any, offset: int = 0) -> Any:
    first = tuple(range(2, a.ndim))
    return space.linalg.trace(space.permute_dims(a, (*first, 0, 1)), offset=offset)


def _diagonal(space: Any, a: Any, offset: int = 0) -> Any:
    first = tuple(range(2, a.ndim))
    return space.linalg.diagonal(space.permute_dims(a, (*first, 0, 1)), offset=offset)


def _take(space: Any, a: Any, indices: Any, axis: int | None = None) -> Any:
    return space.take(space.reshape(a, (-1,)) if axis is None else a, indices, axis=axis or 0)


def _split(space: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if np.ndim(indices_or_sections):
        n = ary.shape[axis]
        ends = [min(max(i + n if i < 0 else i, 0), n) for i in indices_or_sections]
        starts = [0, *ends]
        sizes = [max(b - a, 0) for a, b in zip(starts, [*ends, n], strict=True)]
        if sum(sizes) != n:
            raise DTypeError("np.split of a Tensor takes indices in ascending order")
        indices_or_sections = sizes
    return space.split(ary, indices_or_sections, axis=axis)


def _at_least(rank: int) -> Callable[..., Any]:
    def at_least(space: Any, *arrays: Any) -> Any:
        found = [_raised(space, x, rank) for x in arrays]
        return found[0] if len(found) == 1 else tuple(found)

    return at_least


def _raised(space: Any, x: Any, rank: int) -> Any:
    shape = np.shape(x)
    return space.reshape(x, (1,) * (rank - len(shape)) + shape) if len(shape) < rank else x


def _vstack(space: Any, tup: Any) -> Any:
    return space.concat([_raised(space, x, 2) for x in tup], axis=0)


def _hstack(space: Any, tup: Any) -> Any:
    found = [_raised(space, x, 1) for x in tup]
    return space.concat(found, axis=0 if np.ndim(found[0]) == 1 else 1)


WRITTEN: dict[str, Callable[..., Any]] = {
    "shape": lambda space, a: a.shape,
    "ndim": lambda space, a: a.ndim,
    "size": lambda space, a, axis=None: a.size if axis is None else a.shape[axis],
    "copy": lambda space, a: space.asarray(a, copy=True),
    "ravel": lambda space, a: space.reshape(a, (-1,)),
    "fliplr": lambda space, m: space.flip(m, axis=1),
    "flipud": lambda space, m: space.flip(m, axis=0),
    "dot": _dot,
    "split": _split,
    "take": _take,
    "inner": _inner,
    "transpose": _transpose,
    "round": _round,
    "around": _round,
    "trace": _trace,
    "diagonal": _diagonal,
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "vstack": _vstack,
    "hstack": _hstack,
}


# Where NumPy's name is not the one here. Others of its names are looked up as they are.
NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip


def applied(
    space: Any, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of a universal function as a tensor, by the function of the namespace."""
    name = NAMES.get(ufunc.__name__, ufunc.__name__)
    found = getattr(space, name, None) if name in space.__all__ else None
    if method != "__call__":
        raise DTypeError(
            f"np.{ufunc.__name__}.{method} of a Tensor: use the operations of retrograd, such as "
            "rg.sum, rg.cumsum or rg.outer, or x.detach().numpy() for an array without a history"
        )
    if options:
        raise DTypeError(
            f"np.{ufunc.__name__} of a Tensor takes no {', '.join(sorted(options))}: tensors are "
            "not written to, and an array has no place for their history. Write x = x + y instead "
            "of x += y, rg.where for a mask and .astype for a dtype, or use x.detach().numpy()"
        )
    if not callable(found):
        raise DTypeError(
            f"np.{ufunc.__name__} has no counterpart for a Tensor; use x.detach().numpy() for an "
            "array without a history"
        )
    return found(*inputs)
