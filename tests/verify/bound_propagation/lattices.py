"""All boxes with corners on a lattice, and what a function gives for the lattice points inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.ir import DType, Node, TensorType
from retrograd.ops.leaf import input_node
from retrograd.verify.bound_propagation import rules
from retrograd.verify.bound_propagation.interval import Interval, Rectangle
from retrograd.verify.bound_propagation.propagation import interval_of

assert rules
Array = np.ndarray[Any, Any]


class Range(NamedTuple):
    """The least and the greatest value in each box, infinite where there is none; where NaN is."""

    low: Array
    high: Array
    nan: Array


def interval(low: Any, high: Any, nan: Any = False) -> Interval:
    return Interval(np.asarray(low, np.float64), np.asarray(high, np.float64), nan)


def rectangle(low: Any, high: Any) -> Rectangle:
    """Between the corners of complex arrays."""
    return Rectangle(interval(np.real(low), np.real(high)), interval(np.imag(low), np.imag(high)))


def found(op: Callable[..., Node], dtype: DType, *given: Any) -> Any:
    """What the rule of an op says of its inputs, all of one dtype."""
    return found_of([dtype] * len(given), op, *given)


def found_of(dtypes: Sequence[DType], op: Callable[..., Node], *given: Any) -> Any:
    """The same, each input of its own dtype."""
    nodes = [input_node(TensorType(d, x.shape)) for d, x in zip(dtypes, given, strict=True)]
    with np.errstate(all="ignore"):
        return interval_of(op(*nodes), given)


def found_of_same(op: Callable[..., Node], dtype: DType, x: Any) -> Any:
    """The same with one node as both inputs."""
    node = input_node(TensorType(dtype, x.shape))
    with np.errstate(all="ignore"):
        return interval_of(op(node, node), [x, x])


def boxes(*lattices: Sequence[float]) -> list[Interval]:
    """Every box between points of lattices, which grow."""
    pairs = [np.argwhere(np.triu(np.ones((len(v), len(v))))) for v in lattices]
    at = np.indices([len(p) for p in pairs]).reshape(len(pairs), -1)
    ends = [np.asarray(v, np.float64)[p[i]] for v, p, i in zip(lattices, pairs, at, strict=True)]
    return [Interval(e[:, 0].copy(), e[:, 1].copy()) for e in ends]


def ranges(f: Callable[..., Any], dtype: DType, *lattices: Sequence[float]) -> Range:
    """What a function of NumPy gives in these boxes."""
    axes = np.meshgrid(*[np.asarray(v, dtype.dtype) for v in lattices], indexing="ij")
    points = [x.ravel() for x in axes]
    with np.errstate(all="ignore"):
        y = np.asarray(f(*points)).astype(np.float64)
    inside = np.ones((len(y), 1), bool)
    for x, box in zip(points, boxes(*lattices), strict=True):
        wide = x.astype(np.float64)[:, None]
        inside = inside & (box.lower <= wide) & (wide <= box.upper)
    some = inside & ~np.isnan(y)[:, None]
    return Range(
        np.where(some, y[:, None], np.inf).min(0),
        np.where(some, y[:, None], -np.inf).max(0),
        np.asarray((inside & np.isnan(y)[:, None]).any(0)),
    )


def assert_holds(x: Interval, true: Range) -> None:
    assert (x.lower <= true.low).all()
    assert (x.upper >= true.high).all()
    assert (np.broadcast_to(x.nan, x.shape) >= true.nan).all()


def assert_tight(x: Interval, true: Range, share: float, where: Any = True) -> None:
    """No wider than that by a relative error, and without NaN that there is not."""
    with np.errstate(all="ignore"):
        low, high = (v - s * share * np.abs(v) for v, s in ((true.low, 1), (true.high, -1)))
    where = where & np.isfinite(low) & np.isfinite(high)
    assert (x.lower >= low)[where].all()
    assert (x.upper <= high)[where].all()
    assert (np.broadcast_to(x.nan, x.shape) <= true.nan)[where].all()
