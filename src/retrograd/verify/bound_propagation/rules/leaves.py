"""Constants and counters, which are known, and what passes on its input."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from retrograd.ir import Node
from retrograd.ops.assume import Assume
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import Constant, Input, Iota, SizeOf
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.verify.bound_propagation.interval import (
    ConstantInterval,
    Interval,
    Rectangle,
    anything,
    flushed,
    known,
    rounded,
)
from retrograd.verify.bound_propagation.propagation import rule


def entered(node: Node, value: Any) -> Any:
    """What is given from outside: a backend may take subnormal numbers for zero."""
    if isinstance(value, Rectangle):
        return Rectangle(*[entered(node, part) for part in value])
    if not node.dtype.is_inexact:
        return value
    return flushed(value.lower, value.upper, node.dtype, value.nan)


# Of large constants: the weights of a graph that is bounded many times. As the graph goes, so do
# these; more bytes than this are not kept.
_KEPT: WeakKeyDictionary[Node, ConstantInterval] = WeakKeyDictionary()
LEAST_KEPT, MOST_KEPT = 1 << 12, 1 << 26


@rule(Constant)
def constant(node: Node) -> Any:
    found = _KEPT.get(node)
    if found is not None:
        return found
    value = _constant(node)
    if isinstance(value, Interval) and value.lower.nbytes >= LEAST_KEPT:
        value = ConstantInterval(*value)
        if 2 * (value.lower.nbytes + sum(x.lower.nbytes for x in _KEPT.values())) <= MOST_KEPT:
            _KEPT[node] = value
    return value


def _constant(node: Node) -> Any:
    value = entered(node, known(node.prim.value))  # type: ignore[attr-defined]
    shape = tuple(map(int, node.shape))
    if isinstance(value, Rectangle):
        return Rectangle(*[_filled(part, shape) for part in value])
    return _filled(value, shape)


def _filled(x: Interval, shape: tuple[int, ...]) -> Interval:
    if x.shape == shape:
        return x
    lower = np.broadcast_to(x.lower, shape)
    upper = lower if x.upper is x.lower else np.broadcast_to(x.upper, shape)
    return Interval(lower, upper, bool(np.any(x.nan)))


@rule(Iota)
def iota(node: Node) -> Any:
    value = known(node.prim.reference())
    if isinstance(value, Rectangle):
        return value
    size = node.prim.shape[node.prim.axis]  # type: ignore[attr-defined]
    exact = not node.dtype.is_inexact or int(size) <= 256
    return value if exact else rounded(_counted(node, 0), _counted(node, 0), node.dtype)


def _counted(node: Node, least: int) -> Any:
    axis, shape = node.prim.axis, tuple(map(int, node.shape))  # type: ignore[attr-defined]
    ones = [1] * len(shape)
    ones[axis] = -1
    return np.broadcast_to(np.arange(shape[axis], dtype=np.float64).reshape(ones), shape)


@rule(SizeOf)
def size_of(node: Node) -> Any:
    size = float(int(node.prim.size))  # type: ignore[attr-defined]
    return rounded(size, size, node.dtype) if node.dtype.is_float else known(node.prim.reference())


@rule(Input)
def input_(node: Node) -> Any:
    return anything(node.type)


@rule(StopGradient, Alias, RegionIn, RegionOut, Keep, Assume, After)
def same_value(node: Node, x: Any, *others: Any) -> Any:
    return x


@rule(Item)
def item(node: Node, values: Any) -> Any:
    return values[node.prim.index]  # type: ignore[attr-defined]
