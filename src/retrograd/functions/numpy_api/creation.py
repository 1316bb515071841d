"""Numbers at even and at growing distances, positions, and applying functions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.errors import ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions.broadcasting import normal_axis
from retrograd.functions.creation import asarray, linspace, ones
from retrograd.functions.manipulation import expand_dims, moveaxis, stack, tril
from retrograd.ir import as_dtype, as_shape, float32, int64, product
from retrograd.tensor_type import Tensor


@respells
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """`base ** y` for num evenly spaced y from start to stop; differentiable in all three.

    A vector `[num]`; where the ends are arrays, a new axis of that size in their shape.
    `ShapeError` for a negative num or ends that do not broadcast.

    >>> import retrograd as rg
    >>> rg.logspace(0.0, 2.0, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    y = f.pow(base, linspace(start, stop, num, endpoint=endpoint, axis=axis))
    return y if dtype is None else f.astype(y, dtype)


@respells
def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """num numbers from start to stop of which each is the same multiple of the one before;
    differentiable in both, which have one sign or are complex.

    A vector `[num]`; where the ends are arrays, a new axis of that size in their shape.
    `ShapeError` for a negative num or ends that do not broadcast.

    >>> import retrograd as rg
    >>> [round(v, 3) for v in rg.geomspace(1.0, 1000.0, 4).tolist()]
    [1.0, 10.0, 100.0, 1000.0]
    """
    ratio = f.log(f.divide(stop, start))
    part: Any = linspace(f.multiply(ratio, 0), ratio, num, endpoint=endpoint, axis=axis)
    first = start if np.ndim(start) == 0 else expand_dims(start, axis)
    y = f.multiply(first, f.exp(part))
    return y if dtype is None else f.astype(y, dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float32) -> Tensor:
    """Ones on and below diagonal k of a matrix, zeros above.

    `[N, M]`, square by default. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    return tril(ones((N, N if M is None else M), dtype=dtype), k=k)


def indices(dimensions: Any, dtype: Any = int64, sparse: bool = False) -> Any:
    """For each axis of an array of the sizes `dimensions` the positions along it: `y[i]` counts
    along axis i. With `sparse` a tuple of arrays that broadcast to that.

    `[rank, *dimensions]`. `ShapeError` for a negative size.

    >>> import retrograd as rg
    >>> rg.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape: Any = as_shape(dimensions)
    numbers = as_dtype(dtype).dtype
    found: Any = np.indices(shape, sparse=sparse)  # type: ignore[call-overload]
    if sparse:
        return tuple(asarray(i.astype(numbers)) for i in found)
    return asarray(np.asarray(found).astype(numbers))


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """The results of a function of vectors, called for each row along an axis. `rg.vmap` does the
    same in one call of the function.

    `[..., n, ...]` to `[..., *result, ...]`. `AxisError` for an axis that arr does not have,
    `ShapeError` where there is no row, or results differ in shape.

    >>> import retrograd as rg
    >>> rg.apply_along_axis(rg.max, 1, rg.tensor([[1, 5], [7, 2]])).tolist()
    [5, 7]
    """
    x: Any = asarray(arr)
    at = normal_axis(axis, x.ndim, "apply_along_axis")
    rows = moveaxis(x, at, -1)
    lead = rows.shape[:-1]
    flat = rows.reshape((product(lead), rows.shape[-1]))
    if flat.shape[0] == 0:
        raise ShapeError(f"apply_along_axis {axis} of the shape {x.shape}: there is no row")
    found: Any = stack([asarray(func1d(flat[i], *args, **kwargs)) for i in range(flat.shape[0])])
    inner = found.shape[1:]
    found = found.reshape((*lead, *inner))
    source = tuple(range(len(lead), len(lead) + len(inner)))
    return moveaxis(found, source, tuple(range(at, at + len(inner)))) if inner else found


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    """A reduction `func(x, axis)` over one axis after another; axes that it drops are kept with
    size 1.

    The shape has as many axes as before. `ShapeError` where the function changes it otherwise.

    >>> import retrograd as rg
    >>> rg.apply_over_axes(rg.sum, rg.ones((2, 3)), [0, 1]).tolist()
    [[6.0]]
    """
    x: Any = asarray(a)
    for axis in np.atleast_1d(axes).tolist():
        found: Any = func(x, axis)
        if found.ndim == x.ndim - 1:
            found = expand_dims(found, normal_axis(axis, x.ndim, "apply_over_axes"))
        if found.ndim != x.ndim:
            raise ShapeError(f"apply_over_axes: a function made {found.shape} of {x.shape}")
        x = found
    return x
