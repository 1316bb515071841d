"""Edges of bins, histograms over several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.errors import ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions.counting import bincount, histogram
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import stack
from retrograd.functions.scans import diff
from retrograd.functions.sorting import searchsorted
from retrograd.tensor_type import Tensor

WAYS = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def histogram_bin_edges(
    x: Any, bins: Any = 10, range: tuple[float, float] | None = None, weights: Any = None
) -> Tensor:
    """The edges of the bins of a histogram; see `histogram`. `bins` may also name a way to choose
    their number ("auto", "fd", "sqrt", ...), which takes values that are known.

    `[bins + 1]`. `ShapeError` for a number of bins below 1 or a range that does not ascend.

    >>> import retrograd as rg
    >>> rg.histogram_bin_edges([0.0, 1.0, 4.0], 2).tolist()
    [0.0, 2.0, 4.0]
    """
    if isinstance(bins, str):
        values = asarray(x).value()
        bins = len(np.histogram_bin_edges(values, bins, range)) - 1
    return histogram(x, bins, range)[1]


@respells
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, tuple[Any, ...]]:
    """How many points fall into each cell of a grid, or the sum of their weights, as floats, and
    the edges along each axis. Points are the rows of `[n, d]`, or given by a list of d vectors.
    `bins` are as for `histogram`, for all axes or for each; a bin is half open, the last one
    closed.

    `[bins] * d`, and d vectors `[bins + 1]`. Gradients go to the weights. `ShapeError` for bins or
    a range that are not for each axis.

    >>> import retrograd as rg
    >>> rg.histogramdd(rg.tensor([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x: Any = stack(list(sample), axis=-1) if isinstance(sample, list | tuple) else asarray(sample)
    x = x.reshape((-1, 1)) if x.ndim == 1 else x
    if x.ndim != 2:
        raise ShapeError(f"histogramdd takes points as rows of a matrix, not the shape {x.shape}")
    d = x.shape[1]
    given = list(bins) if isinstance(bins, list | tuple) else [bins] * d
    ends = [None] * d if range is None else list(range)
    if len(given) != d or len(ends) != d:
        raise ShapeError(f"histogramdd over {d} axes with {len(given)} bins, {len(ends)} ranges")
    place: Any = None
    inside: Any = None
    edges, sizes = [], []
    for i, (b, r) in enumerate(zip(given, ends, strict=True)):
        column = x[:, i]
        edge = histogram(column, b, r)[1]
        n = edge.shape[0] - 1
        at = searchsorted(edge, column, side="right") - 1
        at = f.where(f.equal(column, edge[n]), n - 1, at)
        within = f.logical_and(f.greater_equal(at, 0), f.less(at, n))
        inside = within if inside is None else f.logical_and(inside, within)
        place = at if place is None else f.add(f.multiply(place, n), at)
        edges.append(edge)
        sizes.append(n)
    total = int(np.prod(sizes))
    place = f.where(inside, place, total)
    w = f.astype(f.where(inside, 1, 0), edges[0].dtype) if weights is None else asarray(weights)
    counts = bincount(place, w, length=total + 1)[:total].reshape(tuple(sizes))
    if density:
        counts = f.divide(counts, counts.sum())
        for i, edge in enumerate(edges):
            counts = f.divide(counts, diff(edge).reshape((-1,) + (1,) * (d - 1 - i)))
    return counts, tuple(edges)


@respells
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """How many points (x, y) fall into each cell of a grid, or the sum of their weights, as floats,
    and the edges along both axes. `bins` are a number or edges, for both axes or a pair; a vector
    of more than two are edges for both.

    `[bins, bins]` and two vectors `[bins + 1]`. Gradients go to the weights. `ShapeError` for x and
    y of different lengths.

    >>> import retrograd as rg
    >>> rg.histogram2d([0.0, 1.0], [0.0, 1.0], bins=2)[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if not isinstance(bins, int) and len(bins) not in (1, 2):
        bins = [asarray(bins)] * 2
    elif not isinstance(bins, int):
        bins = list(bins) * (2 // len(bins))
    counts, (first, second) = histogramdd([asarray(x), asarray(y)], bins, range, density, weights)
    return counts, first, second
