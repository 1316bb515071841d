"""Functions given by samples: slopes, integrals, values between, convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import ArgumentError, DTypeError, OptionError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions import reductions, scans
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    listed_axes,
    normal_axis,
    one_axis,
    promote_to_float,
    rounded,
)
from retrograd.functions.convolution import conv
from retrograd.functions.manipulation import flip
from retrograd.functions.searching import flat
from retrograd.functions.sorting import argsort
from retrograd.ir import Dim, Node, bool_, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.complex import conj
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Concat, expand, pad, reshape, slice_axis
from retrograd.ops.sort import SearchSorted


@op_function
def gradient(
    x: ArrayLike,
    *varargs: ArrayLike,
    axis: Any = None,
    edge_order: int = 1,
    dim: Any = None,
    spacing: ArrayLike | None = None,
) -> Any:
    """The slopes of sampled values along the given axes, all by default: second-order central
    differences inside, and at the ends differences of `edge_order` 1 or 2. `varargs` are the
    distance of samples, for all axes or for each, or vectors of their coordinates.

    The shape of x; a tuple where there are several axes, and with `dim=` or `spacing=`, which are
    PyTorch's names, always. `spacing` is a number, or numbers or vectors in a list. Integers are
    taken as float32.
    `ArgumentError` for another number of distances, `ShapeError` for less than `edge_order + 1`
    samples or coordinates that do not fit, `OptionError` for another `edge_order`.

    >>> import retrograd as rg
    >>> rg.gradient([0.0, 1.0, 4.0, 9.0]).tolist()
    [1.0, 2.0, 4.0, 5.0]
    """
    if callable(x) and not hasattr(x, "__array__"):
        raise ArgumentError(
            "rg.gradient is NumPy's, of sampled values; the derivative of a function is "
            "rg.grad(f)(x)"
        )
    x = promote_to_float(x)
    always_several = dim is not None or spacing is not None
    axis = one_axis(axis, dim)
    if spacing is not None:
        if varargs:
            raise ArgumentError("gradient takes distances by place or as spacing=, not both")
        varargs = tuple(spacing) if isinstance(spacing, list | tuple) else (spacing,)
    axes = listed_axes(range(x.type.rank) if axis is None else axis, x.type.rank, "gradient")
    if edge_order not in (1, 2):
        raise OptionError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(f"gradient of {len(axes)} axes with {len(varargs)} distances")
    steps = [as_node(v, x.dtype) for v in varargs] or [full(1, x.type.with_shape(()))]
    if len(varargs) == 1 and len(axes) > 1:
        if steps[0].type.rank:
            raise ArgumentError("gradient of several axes takes coordinates for each of them")
        steps = steps * len(axes)
    steps = steps * len(axes) if not varargs else steps
    found = tuple(
        _slopes(x, a, rounded(h, x.dtype), edge_order) for a, h in zip(axes, steps, strict=True)
    )
    return found[0] if len(found) == 1 and not always_several else found


def _slopes(x: Node, axis: int, h: Node, edge_order: int) -> Node:
    n = x.shape[axis]
    if not isinstance(n, Dim) and n < edge_order + 1:
        raise ShapeError(
            f"gradient along axis {axis} of {x.shape}: edges of order {edge_order} take "
            f"{edge_order + 1} samples or more, not {n}"
        )
    if h.type.rank > 1 or (h.type.rank == 1 and h.shape != (n,)):
        raise ShapeError(f"gradient along {n} samples with distances {h.type}")

    def part(a: Any, b: Any) -> Node:
        return slice_axis(x, axis, a, b)

    if h.type.rank == 0:
        inner = (part(2, n) - part(0, n - 2)) / _like(h * 2, part(2, n), axis)
        first, last = part(1, 2) - part(0, 1), part(n - 1, n) - part(n - 2, n - 1)
        if edge_order == 2:
            first = part(0, 1) * -1.5 + part(1, 2) * 2 - part(2, 3) * 0.5
            last = part(n - 3, n - 2) * 0.5 - part(n - 2, n - 1) * 2 + part(n - 1, n) * 1.5
        return Concat(axis)(first / _like(h, first, axis), inner, last / _like(h, last, axis))
    gaps = slice_axis(h, 0, 1, n) - slice_axis(h, 0, 0, n - 1)
    a, b = slice_axis(gaps, 0, 0, n - 2), slice_axis(gaps, 0, 1, n - 1)
    middle = part(1, n - 1)
    weights = (-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b)))
    inner = sum_of(
        [_like(w, middle, axis) * p
         for w, p in zip(weights, (part(0, n - 2), middle, part(2, n)), strict=True)]
    )  # fmt: skip
    return Concat(axis)(_end(x, axis, gaps, edge_order, 0), inner,
                        _end(x, axis, gaps, edge_order, 1))  # fmt: skip


def sum_of(parts: Sequence[Node]) -> Node:
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total


def _end(x: Node, axis: int, gaps: Node, edge_order: int, last: int) -> Node:
    """The slope at the first or the last sample, of any distances."""
    n = x.shape[axis]

    def at(i: int) -> Node:
        return slice_axis(x, axis, n - 1 - i, n - i) if last else slice_axis(x, axis, i, i + 1)

    def gap(i: int) -> Node:
        k = n - 2 - i if last else i
        return slice_axis(gaps, 0, k, k + 1)

    sign = -1.0 if last else 1.0
    if edge_order == 1:
        return (at(1) - at(0)) * sign / _like(gap(0), at(0), axis)
    a, b = gap(0), gap(1)
    weights = (-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
    return sum_of([_like(w, at(0), axis) * at(i) for i, w in enumerate(weights)]) * sign


def _like(v: Node, x: Node, axis: int) -> Node:
    """A number, or a number for each place along an axis, for all of x."""
    others = [i for i in range(x.type.rank) if i != axis or v.type.rank == 0]
    return expand(v, x.shape, others)


@op_function
def trapezoid(
    y: ArrayLike,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    *,
    dim: int | None = None,
) -> Any:
    """The integral of sampled values along an axis by the trapezoidal rule: `sum((y[i] + y[i+1]) /
    2 (x[i+1] - x[i]))`, or with the distance dx.

    `[..., n, ...]` to `[..., ...]`. Integers are taken as float32. `ShapeError` where x does not
    fit, `AxisError` for an axis that y does not have.

    >>> import retrograd as rg
    >>> rg.trapezoid([1.0, 2.0, 3.0]).item()
    4.0
    """
    y = promote_to_float(y)
    axis = one_axis(axis, dim, -1)
    at = normal_axis(axis, y.type.rank, "trapezoid")
    n = y.shape[at]
    if n == 0:  # no trapezoid
        return reductions.sum(y, axis=at)
    both = slice_axis(y, at, 1, n) + slice_axis(y, at, 0, n - 1)
    if x is None:
        return f.multiply(f.multiply(reductions.sum(both, axis=at), 0.5), dx)
    places = as_node(x)
    if places.type.rank == 1:
        gaps = as_node(scans.diff(places))
        gaps = reshape(gaps, (*((1,) * at), gaps.shape[0], *((1,) * (y.type.rank - at - 1))))
    else:
        gaps = as_node(scans.diff(places, axis=axis if axis < 0 else at))
    return reductions.sum(f.multiply(f.multiply(both, 0.5), gaps), axis=at)


@op_function
def ediff1d(
    x: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Any:
    """Differences of neighbours in the flattened x, between `to_begin` and `to_end`.

    n elements give `[n - 1]`, and what is joined to that. `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.ediff1d([1, 2, 4], to_begin=-1).tolist()
    [-1, 1, 2]
    """
    row = flat(as_node(x))
    steps = as_node(scans.diff(row))
    sides = [None if v is None else flat(rounded(as_node(v, row.dtype), row.dtype))
             for v in (to_begin, to_end)]  # fmt: skip
    parts = [p for p in (sides[0], steps, sides[1]) if p is not None]
    return Concat(0)(*parts)


@op_function
def unwrap(
    p: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Any:
    """Phases without jumps: where neighbours along an axis differ by more than `discont` (half a
    period by default), whole periods are added to what follows, so that they do not.

    The shape of p; its gradient is that of a sum of p and constants. `AxisError` for an axis that p
    does not have.

    >>> import retrograd as rg
    >>> rg.unwrap([0.0, 3.0, -3.0]).tolist()
    [0.0, 3.0, 3.2832]
    """
    p = as_node(p)
    whole = p.dtype.is_integer and isinstance(period, int)
    p = p if whole else promote_to_float(p)
    at = normal_axis(axis, p.type.rank, "unwrap")
    if p.shape[at] == 0:
        return p
    steps = scans.diff(p, axis=at)
    limit = period / 2 if discont is None else discont
    if whole:
        high, odd = divmod(period, 2)
        low, on_edge = -high, odd == 0
    else:
        high, low, on_edge = period / 2, -period / 2, True
    turned = f.add(f.remainder(f.subtract(steps, low), period), low)
    if on_edge:
        edge = f.logical_and(f.equal(turned, low), f.greater(steps, 0))
        turned = f.where(edge, high, turned)
    correction = f.where(f.less(f.abs(steps), limit), 0, f.subtract(turned, steps))
    correction = f.stop_gradient(el.cast(as_node(correction), p.dtype))
    n = p.shape[at]
    added = as_node(scans.cumulative_sum(correction, axis=at))
    rest = slice_axis(p, at, 1, n) + el.cast(added, p.dtype)
    return Concat(at)(slice_axis(p, at, 0, 1), rest)


@op_function
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Any:
    """The piecewise linear function through the points (xp, fp), at x; xp ascends. Below and above
    it is `left` and `right`, by default the first and the last of fp; with a `period`, places are
    taken modulo it, and xp need not ascend.

    Differentiable in all arguments; at a point the slope is that of the piece to the right. The
    result has the shape of x. `ShapeError` where xp and fp are not vectors of one length, or empty.

    >>> import retrograd as rg
    >>> rg.interp([1.5, 9.0], [1.0, 2.0], [10.0, 20.0]).tolist()
    [15.0, 20.0]
    """
    at, places, values = _points(x, xp, fp)
    if period is not None:
        if period == 0:
            raise OptionError("interp: the period is not 0")
        at, places = (as_node(f.remainder(n, abs(period))) for n in (at, places))
        order = as_node(argsort(places))
        places, values = Gather(0)(places, order), Gather(0)(values, order)
        n = places.shape[0]
        first, last = slice_axis(places, 0, 0, 1), slice_axis(places, 0, n - 1, n)
        places = Concat(0)(last - abs(period), places, first + abs(period))
        values = Concat(0)(slice_axis(values, 0, n - 1, n), values, slice_axis(values, 0, 0, 1))
        left = right = None
    n = places.shape[0]
    ends = [Gather(0)(places, _fixed(i, at)) for i in (0, n - 1)]
    outer = [Gather(0)(values, _fixed(i, at)) for i in (0, n - 1)]
    given = [e if v is None else as_node(f.add(full(0, e.type), v))
             for v, e in zip((left, right), outer, strict=True)]  # fmt: skip
    y = outer[0]
    if n > 1:
        i = SearchSorted(True)(places, at) - 1
        i = el.min(el.max(i, full(0, i.type)), full(n - 2, i.type))
        x0, x1 = (Gather(0)(places, k) for k in (i, i + 1))
        y0, y1 = (Gather(0)(values, k) for k in (i, i + 1))
        wide = el.cast(x1 - x0, y0.dtype)
        wide = el.select(el.is_zero(wide), full(1, wide.type), wide)
        y = y0 + (y1 - y0) / wide * el.cast(at - x0, y0.dtype)
    y = el.select(el.eq(at, ends[1]), outer[1], y)
    y = el.select(at < ends[0], el.cast(given[0], y.dtype), y)
    return el.select(at > ends[1], el.cast(given[1], y.dtype), y)


def _fixed(i: Any, like: Node) -> Node:
    if isinstance(i, Dim):
        raise ShapeError(f"interp between {i + 1} points, a symbolic size")
    return full(i, like.type.with_dtype(int64))


def _points(x: Any, xp: Any, fp: Any) -> tuple[Node, Node, Node]:
    at, places = alike(x, xp, floating=True)
    values = promote_to_float(fp)
    dtype = alike(full(0, places.type.with_shape(())), full(0, values.type.with_shape(())))[0].dtype
    values = el.cast(values, dtype)
    at, places = (el.cast(n, dtype.real) for n in (at, places))
    if places.type.rank != 1 or places.shape != values.shape or places.shape == (0,):
        raise ShapeError(f"interp between points {places.type} and {values.type}: both are vectors "
                         "of one length, at least 1")  # fmt: skip
    return at, places, values


@op_function
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> Any:
    """The convolution of two vectors: `y[k] = sum_i a[i] v[k - i]`.

    `[n]` and `[m]` give `[n + m - 1]` in the mode "full", `[max(n, m)]` from its middle in "same",
    and where both overlap wholly `[max(n, m) - min(n, m) + 1]` in "valid". The dtypes are promoted.
    `ShapeError` for anything but vectors with elements, `OptionError` for another mode.

    >>> import retrograd as rg
    >>> rg.convolve([1, 2, 3], [0, 1]).tolist()
    [0, 1, 2, 3]
    """
    x, w = _vectors("convolve", a, v)
    if _length(w) > _length(x):
        x, w = w, x
    return _slid(x, as_node(flip(w)), mode, "convolve")


@op_function
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors: `y[k] = sum_i a[i + k] conj(v[i])`.

    `[n]` and `[m]` give `[max(n, m) - min(n, m) + 1]` in the mode "valid", where both overlap
    wholly, `[max(n, m)]` in "same", and `[n + m - 1]` in "full". The dtypes are promoted.
    `ShapeError` for anything but vectors with elements, `OptionError` for another mode.

    >>> import retrograd as rg
    >>> rg.correlate([1, 2, 3], [0, 1, 0.5]).tolist()
    [3.5]
    """
    x, w = _vectors("correlate", a, v)
    w = conj(w) if w.dtype.is_complex else w
    if _length(w) > _length(x):
        return flip(_slid(w, x, mode, "correlate"))
    return _slid(x, w, mode, "correlate")


def _length(x: Node) -> int:
    n = x.shape[0]
    if isinstance(n, Dim):
        raise ShapeError(f"a convolution of {x.type}, whose size is symbolic; see rg.conv")
    return n


def _vectors(what: str, a: Any, v: Any) -> list[Node]:
    nodes = alike(a, v)
    nodes = [reshape(n, (1,)) if n.type.rank == 0 else n for n in nodes]
    if any(n.type.rank != 1 or n.shape == (0,) for n in nodes):
        raise ShapeError(
            f"{what} takes vectors with elements, not {nodes[0].type}, {nodes[1].type}"
        )
    if nodes[0].dtype is bool_:
        raise DTypeError(f"{what} takes numbers, not booleans; cast them first")
    return nodes


def _slid(x: Node, w: Node, mode: str, what: str) -> Node:
    """`y[k] = sum_i x[i + k] w[i]`, x the longer one, zeros around it as the mode says."""
    n, m = _length(x), _length(w)
    if mode == "full":
        low = high = m - 1
    elif mode == "same":
        low, high = m // 2, m - 1 - m // 2
    elif mode == "valid":
        low = high = 0
    else:
        raise OptionError(f"{what}: mode is 'full', 'same' or 'valid', not {mode!r}")
    if x.dtype.is_float:
        y = as_node(conv(reshape(x, (1, 1, n)), reshape(w, (1, 1, m)), padding=[(low, high)]))
        return reshape(y, (y.shape[2],))
    x = pad(x, (low,), (high,))
    count = n + low + high - m + 1
    windows = Gather(0)(x, constant(np.add.outer(np.arange(count), np.arange(m))))
    return DotGeneral((1,), (0,))(windows, w)
