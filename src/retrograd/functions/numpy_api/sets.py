"""Arrays as sets. How many elements there are follows from values, so that these are known: outside
of traced functions, where `rg.unique_values(x, size=n)` is the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.errors import TraceError
from retrograd.functions import elementwise as f
from retrograd.functions.broadcasting import normal_axis, one_axis
from retrograd.functions.creation import asarray
from retrograd.functions.indexing import take
from retrograd.functions.manipulation import concat
from retrograd.functions.searching import isin
from retrograd.tensor_type import Tensor


def _vector(x: Any) -> Any:
    return asarray(x).reshape((-1,))


def _known(x: Any, what: str) -> Any:
    try:
        return x.value()
    except TraceError:
        raise TraceError(
            f"the size of the result of {what} depends on values, which are not known while a "
            "function is traced; rg.unique_values(x, size=n) takes it, rg.isin needs none"
        ) from None


@respells
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along an axis in that of
    their elements; and, as asked, where each occurs first, which of them each element is, and how
    often each occurs (int64). All NaN are one, unless `equal_nan` is False.

    `[k]`, or `[..., k, ...]`. Gradients go to the first of equal elements. `TraceError` in a traced
    function, where `unique_values` takes a `size`; `AxisError` for an axis that x does not have.

    >>> import retrograd as rg
    >>> rg.unique([3, 1, 3]).tolist()
    [1, 3]
    >>> rg.unique([3, 1, 3], return_counts=True)[1].tolist()
    [1, 2]
    """
    given: Any = asarray(x)
    axis = one_axis(axis, dim)
    at = None if axis is None else normal_axis(axis, given.ndim, "unique")
    found = np.unique(_known(given, "unique"), True, True, True, axis=at, equal_nan=equal_nan)
    _, index, inverse, counts = found
    row = given.reshape((-1,)) if at is None else given
    values = take(row, index, axis=at or 0)
    extra = [
        asarray(np.asarray(y, np.int64))
        for y, wanted in (
            (index, return_index), (inverse, return_inverse), (counts, return_counts)
        )
        if wanted
    ]  # fmt: skip
    return (values, *extra) if extra else values


def union1d(x1: Any, x2: Any) -> Tensor:
    """The distinct elements of both, in ascending order.

    A vector `[k]`; the dtypes are promoted. `TraceError` in a traced function.

    >>> import retrograd as rg
    >>> rg.union1d([3, 1], [2, 1]).tolist()
    [1, 2, 3]
    """
    return unique(concat([_vector(x1), _vector(x2)]))


def intersect1d(x1: Any, x2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that occur in both, in ascending order; with `return_indices`, also
    where each occurs first in the flattened x1 and x2 (int64).

    A vector `[k]`; gradients go to x1. `TraceError` in a traced function.

    >>> import retrograd as rg
    >>> rg.intersect1d([3, 1, 2], [2, 3]).tolist()
    [2, 3]
    """
    a, b = _vector(x1), _vector(x2)
    _, first, second = np.intersect1d(
        _known(a, "intersect1d"), _known(b, "intersect1d"), assume_unique, return_indices=True
    )
    values = take(a, first)
    if not return_indices:
        return values
    return values, *(asarray(np.asarray(i, np.int64)) for i in (first, second))


def setdiff1d(x1: Any, x2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements of x1 that do not occur in x2, in ascending order; those of x1 as they
    are, if they are distinct already (`assume_unique`).

    A vector `[k]`; gradients go to x1. `TraceError` in a traced function.

    >>> import retrograd as rg
    >>> rg.setdiff1d([3, 1, 2], [2]).tolist()
    [1, 3]
    """
    a = _vector(x1) if assume_unique else unique(x1)
    return a[isin(a, x2, invert=True)]


def setxor1d(x1: Any, x2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements that occur in one of both only, in ascending order.

    A vector `[k]`; the dtypes are promoted. `TraceError` in a traced function.

    >>> import retrograd as rg
    >>> rg.setxor1d([3, 1, 2], [2, 4]).tolist()
    [1, 3, 4]
    """
    a, b = ((_vector(x) if assume_unique else unique(x)) for x in (x1, x2))
    both = concat([a[isin(a, b, invert=True)], b[isin(b, a, invert=True)]])
    return both[f.astype(np.argsort(_known(both, "setxor1d"), stable=True), np.int64)]
