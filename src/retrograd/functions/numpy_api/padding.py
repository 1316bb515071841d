"""Padding by constants, by what is at the edges, and by what is beyond them in a mirror."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import elementwise as f
from retrograd.functions import reductions, sorting
from retrograd.functions.broadcasting import as_node, broadcast_to, rounded
from retrograd.functions.manipulation import pad as pad_constant
from retrograd.functions.searching import number_of
from retrograd.ir import Dim, Node, as_shape, float64, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Iota
from retrograd.ops.shape import Concat, flip, reshape, slice_axis

OF_EDGES: dict[str, Callable[..., Any]] = {"maximum": reductions.max, "minimum": reductions.min,
            "mean": reductions.mean, "median": sorting.median}  # fmt: skip
MODES = ("constant", "edge", "linear_ramp", *OF_EDGES, "reflect", "symmetric", "wrap", "empty")


@op_function
def pad(
    x: ArrayLike,
    /,
    pad_width: Any,
    mode: Any = "constant",
    *,
    value: ArrayLike = 0,
    constant_values: Any = None,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Any:
    """x with something around it; `pad_width` is (before, after) for each axis, or one pair or
    number for all, or a dict from axes to these.

    `mode` is "constant" (`value`, or NumPy's `constant_values` for each side), "edge" (the
    outermost elements), "reflect" and "symmetric" (mirrored at the outermost element, or beyond it;
    of `reflect_type` "odd", twice the edge less that), "wrap" (from the other end), "linear_ramp"
    (to `end_values`), "maximum", "minimum", "mean", "median" (of the `stat_length` elements next to
    the edge, all by default), or "empty" (zeros). Gradients go to where the elements came from.

    `[n, ...]` to `[before + n + after, ...]`; the dtype stays. `ShapeError` for a `pad_width` that
    has not a pair for each axis, `DTypeError` for a value that does not fit the dtype,
    `OptionError` for another mode.

    >>> import retrograd as rg
    >>> rg.pad([1, 2], (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    >>> rg.pad([1, 2, 3], (2, 0), mode="reflect").tolist()
    [3, 2, 1, 2, 3]
    """
    x = as_node(x)
    if mode not in MODES:
        raise OptionError(f"pad: mode is one of {', '.join(MODES)}, not {mode!r}")
    if reflect_type not in ("even", "odd"):
        raise OptionError(f"pad: reflect_type is 'even' or 'odd', not {reflect_type!r}")
    if isinstance(pad_width, dict):
        sides: list[Any] = [(0, 0)] * x.type.rank
        for axis, width in pad_width.items():
            sides[axis] = tuple(width) if isinstance(width, tuple | list) else (width, width)
        pad_width = sides
    widths = [as_shape(p) for p in _pairs(pad_width, x.type.rank, "pad_width")]
    if mode in ("constant", "empty") and constant_values is None:
        return pad_constant(x, widths, value=value)
    ends = _pairs(0 if constant_values is None else constant_values, x.type.rank, "values")
    ramps = _pairs(end_values, x.type.rank, "end_values")
    lengths = _pairs(stat_length, x.type.rank, "stat_length")
    for axis, (low, high) in enumerate(widths):
        if not (isinstance(low, Dim) or isinstance(high, Dim)) and low == high == 0:
            continue
        if mode in ("reflect", "symmetric", "wrap", "edge"):
            x = _from_within(x, axis, low, high, mode, reflect_type == "odd")
        elif mode == "linear_ramp":
            x = _ramp(x, axis, low, high, ramps[axis])
        elif mode == "constant":
            x = _around(x, axis, low, high, [_block(v, x, axis) for v in ends[axis]])
        else:
            x = _around(x, axis, low, high, _statistics(x, axis, OF_EDGES[mode], lengths[axis]))
    return x


def _pairs(given: Any, rank: int, what: str) -> list[tuple[Any, Any]]:
    """(before, after) of each axis, as NumPy broadcasts them."""
    if not isinstance(given, tuple | list):
        given = as_array(given).tolist() if hasattr(given, "__array__") else given
    if not isinstance(given, tuple | list):
        return [(given, given)] * rank
    rows = [tuple(p) if isinstance(p, tuple | list) else p for p in given]
    if not any(isinstance(p, tuple) for p in rows):
        rows = [tuple(rows)]
    rows = [p * 2 if len(p) == 1 else p for p in rows]
    rows = rows * rank if len(rows) == 1 else rows
    if len(rows) != rank or any(len(p) != 2 for p in rows):
        raise ShapeError(f"pad: {what} is (before, after) for each of {rank} axes, not {given}")
    return rows


def _from_within(x: Node, axis: int, low: Any, high: Any, mode: str, odd: bool) -> Node:
    """Each element of the result is one of x: at the place that a walk along the axis, mirrored or
    wrapped or stopped at its ends, comes to."""
    n = x.shape[axis]
    if n == 0:
        raise ShapeError(f"pad: axis {axis} of {x.shape} has no elements to {mode}")
    size = low + n + high
    place = Iota((size,), 0, int64)() - number_of(low, Iota((size,), 0, int64)())
    whole, zero = number_of(n, place), full(0, place.type)
    last = whole - 1
    if mode == "edge":
        return Gather(axis)(x, el.min(el.max(place, zero), last))
    if mode == "wrap":
        return Gather(axis)(x, el.mod(place, whole))
    period = el.max(last * 2, full(1, place.type)) if mode == "reflect" else whole * 2
    within = el.mod(place, period)
    mirrored = period - within if mode == "reflect" else period - 1 - within
    back = within > last
    y = Gather(axis)(x, el.select(back, mirrored, within))
    if not odd:
        return y
    # Mirrored at the last element, too, and every period as much higher as two walks across.
    first, end = (slice_axis(x, axis, i, i + 1) for i in (0, n - 1))
    first, end = (broadcast_to(e, y.shape) for e in (first, end))
    shape = tuple(size if i == axis else 1 for i in range(x.type.rank))

    def along(v: Node) -> Node:
        return broadcast_to(reshape(v, shape), y.shape)

    turns = along(el.cast(el.floor_div(place, period), x.dtype))
    if n == 1:
        return y
    return el.select(along(back), end + end - y, y) + turns * (end - first) * 2


def _block(value: Any, x: Node, axis: int) -> Node:
    """A value as a slice of x."""
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return broadcast_to(rounded(as_node(value, x.dtype), x.dtype), shape)


def _around(x: Node, axis: int, low: Any, high: Any, ends: Any) -> Node:
    def wide(end: Node, count: Any) -> Node:
        return broadcast_to(end, (*x.shape[:axis], count, *x.shape[axis + 1 :]))

    return Concat(axis)(wide(ends[0], low), x, wide(ends[1], high))


def _statistics(
    x: Node, axis: int, of: Callable[..., Any], lengths: tuple[Any, Any]
) -> tuple[Node, Node]:
    n = x.shape[axis]
    if n == 0:
        raise ShapeError(f"pad: axis {axis} of {x.shape} has no elements to take a statistic of")
    counts = [n if k is None else min(int(k), n) for k in lengths]
    parts = (slice_axis(x, axis, 0, counts[0]), slice_axis(x, axis, n - counts[1], n))
    wide = [el.cast(p, float64) if not x.dtype.is_inexact else p for p in parts]
    found = [of(p, axis=axis, keepdims=True) for p in wide]
    if x.dtype.is_integer:
        found = [f.round(y) for y in found]
    return tuple(el.cast(y, x.dtype) for y in found)  # type: ignore[return-value]


def _ramp(x: Node, axis: int, low: Any, high: Any, ends: tuple[Any, Any]) -> Node:
    """Steps of one size from the end value, which is the outermost, to the edge, which is not."""
    n = x.shape[axis]
    edges = (slice_axis(x, axis, 0, 1), slice_axis(x, axis, n - 1, n))
    sides = []
    for edge, end, count in zip(edges, ends, (low, high), strict=True):
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        wide = float64 if not x.dtype.is_inexact else x.dtype
        step = Iota(shape, axis, int64)()
        step = el.cast(step, wide) / el.cast(number_of(count, step), wide)
        outer = broadcast_to(rounded(as_node(end, wide), wide), shape)
        side = outer + step * (broadcast_to(el.cast(edge, wide), shape) - outer)
        sides.append(el.cast(el.floor(side) if x.dtype.is_integer else side, x.dtype))
    return Concat(axis)(sides[0], x, flip(sides[1], (axis,)))
