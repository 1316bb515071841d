"""What several nodes compute together, more tightly than one after the other.

A node by itself does not know that its inputs depend on one input. Of these it is known: each
pattern gives the input x that the node is a function of, and what the node can be for that; both
enclosures hold, so what is in both does.

    softmax       `1 / (1 + sum over j of exp(x_j - x_i))`, without the maximum that is subtracted
    log_softmax   the logarithm of that
    centred       `x - mean(x)`: (1 - 1/n) x_i less the others over n
    norm          the root of a sum of squares, without the scale that keeps it from overflowing
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops import elementwise as el
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import Constant
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import Expand, Reshape
from retrograd.verify.bound_propagation.interval import Interval, accumulator, widened
from retrograd.verify.bound_propagation.propagation import PATTERNS
from retrograd.verify.bound_propagation.rules.arithmetic import FUNCTION, QUOTIENT
from retrograd.verify.bound_propagation.rules.contraction import additions, summed

Pattern = tuple[Node, Callable[[Interval], Interval | None]]


def spread(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """What an `expand` repeats, and along which axes; past an axis of size 1 that was kept."""
    prim = node.prim
    if not isinstance(prim, Expand):
        return None
    found = inner = node.inputs[0]
    while isinstance(inner.prim, Reshape):
        inner = inner.inputs[0]
        found = inner if inner.shape == node.inputs[0].shape else found
    return found, prim.axes


def reduced(node: Node, kind: Any, axes: tuple[int, ...]) -> Node | None:
    """What a reduction over these axes reduces."""
    prim = node.prim
    found = isinstance(prim, kind) and prim.axes == axes
    return node.inputs[0] if found else None


def shifted(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """The x of `x - max(x)`, and the axes."""
    if node.op != el.sub.name or (around := spread(node.inputs[1])) is None:
        return None
    (top, axes), x = around, node.inputs[0]
    if top.op == el.select.name and top.inputs[0].op == el.isfinite.name:
        top = top.inputs[1]
    if isinstance(top.prim, StopGradient):
        top = top.inputs[0]
    return (x, axes) if reduced(top, ReduceMax, axes) is x else None


def is_bounded(x: Interval, most: float) -> bool:
    finite = np.isfinite(x.lower).all() and np.isfinite(x.upper).all()
    return bool(finite and x.nan is False and x.lower.size and (x.size < most / 4).all())


def softmax_of(node: Node) -> Pattern | None:
    e = node.inputs[0]
    around = spread(node.inputs[1])
    if around is None or e.op != el.exp.name or reduced(around[0], ReduceSum, around[1]) is not e:
        return None
    found = shifted(e.inputs[0])
    if found is None or found[1] != around[1]:
        return None
    x, axes = found
    return x, lambda value: _softmax(node, value, axes)


def _rest(x: Interval, axes: tuple[int, ...]) -> tuple[Any, Any, Any, Any]:
    """Exponentials of both ends, and of all others together at most and at least."""
    top = np.max(x.upper, axis=axes, keepdims=True)
    low, high = np.exp(x.lower - top), np.exp(x.upper - top)
    count = math.prod(x.shape[i] for i in axes)
    sums = [e.sum(axis=axes, keepdims=True) for e in (low, high)]
    share = 4 * (count + 4) * 2.0**-52
    most = np.maximum(sums[1] - high, 0) + share * sums[1]
    least = np.maximum(sums[0] - low - share * sums[0], 0)
    return low, high, most, least


def _units(x: Interval, axes: tuple[int, ...], node: Node) -> Any:
    """The relative error of a quotient of exponentials: of their arguments, which are no larger
    than what the exponential of is not 0, of them, of the sum."""
    added = additions(math.prod(x.shape[i] for i in axes), len(axes)) + 1
    apart = np.max(x.upper, axis=axes, keepdims=True) - np.min(x.lower, axis=axes, keepdims=True)
    far = float(np.minimum(apart, 800.0).max(initial=0.0))
    return 2 * (32 + added + QUOTIENT + 2 * far)


def _softmax(node: Node, x: Interval, axes: tuple[int, ...]) -> Interval | None:
    kind = accumulator(node.dtype)
    if not is_bounded(x, kind.most):
        return None
    low, high, most, least = _rest(x, axes)
    with np.errstate(all="ignore"):
        ends = low / (low + most), high / (high + least)
    ends = np.where(np.isnan(ends[0]), 0.0, ends[0]), np.where(np.isnan(ends[1]), 1.0, ends[1])
    return widened(*ends, node.dtype, _units(x, axes, node))


def log_softmax_of(node: Node) -> Pattern | None:
    centre, around = node.inputs[0], spread(node.inputs[1])
    if around is None or around[0].op != el.log.name:
        return None
    e = reduced(around[0].inputs[0], ReduceSum, around[1])
    if e is None or e.op != el.exp.name or e.inputs[0] is not centre:
        return None
    found = shifted(centre)
    if found is None or found[1] != around[1]:
        return None
    x, axes = found
    return x, lambda value: _log_softmax(node, value, axes)


def _log_softmax(node: Node, x: Interval, axes: tuple[int, ...]) -> Interval | None:
    kind = accumulator(node.dtype)
    if not is_bounded(x, min(kind.most, 1e300)):
        return None
    top = np.max(x.upper, axis=axes, keepdims=True)
    _, _, most, least = _rest(x, axes)
    with np.errstate(all="ignore"):
        worst = -np.logaddexp(0.0, np.log(most) - (x.lower - top))
        best = -np.logaddexp(0.0, np.log(least) - (x.upper - top))
    count = math.prod(x.shape[i] for i in axes)
    apart = np.max(x.upper, axis=axes, keepdims=True) - np.min(x.lower, axis=axes, keepdims=True)
    units = 2 * additions(count, len(axes)) + 66 + 8 * (apart + math.log(max(count, 1)))
    return widened(worst, best, node.dtype, 16, False, units * kind.eps)


def centred_of(node: Node) -> Pattern | None:
    x, around = node.inputs[0], spread(node.inputs[1])
    if around is None or around[0].op != el.div.name:
        return None
    total, count = around[0].inputs
    if isinstance(count.prim, Expand):
        count = count.inputs[0]
    if reduced(total, ReduceSum, around[1]) is not x or not isinstance(count.prim, Constant):
        return None
    axes, n = around[1], math.prod(int(x.shape[i]) for i in around[1])
    value = count.prim.value
    if value.ndim or float(value) != n:
        return None
    return x, lambda given: _centred(node, given, axes, n)


def _centred(node: Node, x: Interval, axes: tuple[int, ...], n: int) -> Interval | None:
    kind = accumulator(node.dtype)
    if not is_bounded(x, kind.most / max(n, 1)):
        return None
    lows, highs = (v.sum(axis=axes, keepdims=True) for v in (x.lower, x.upper))
    low = x.lower - (highs - x.upper + x.lower) / n
    high = x.upper - (lows - x.lower + x.upper) / n
    size = x.size + 2 * x.size.sum(axis=axes, keepdims=True) / n
    added = additions(n, len(axes)) + 2 + 2 * QUOTIENT
    return summed(low, high, size, n, node.dtype, added=added)


def norm_of(node: Node) -> Pattern | None:
    """`2^k sqrt(sum((2^-k x)^2))`, where the root of 0 is guarded."""
    scale, root = node.inputs
    if root.op != el.select.name or root.inputs[2].op != el.sqrt.name:
        return None
    guard, zero, _ = root.inputs
    if guard.op != el.eq.name or not _is_zero(zero) or not _is_zero(guard.inputs[1]):
        return None
    total, chosen = guard.inputs[0], root.inputs[2].inputs[0]
    if (
        chosen.op != el.select.name
        or chosen.inputs[0] is not guard
        or chosen.inputs[2] is not total
    ):
        return None
    if not isinstance(total.prim, ReduceSum):
        return None
    square = total.inputs[0]
    if square.op != el.mul.name or square.inputs[0] is not square.inputs[1]:
        return None
    part, axes = square.inputs[0], total.prim.axes
    if part.op != el.mul.name or (around := spread(part.inputs[1])) is None:
        return None
    inverse = around[0]
    if around[1] != axes or {scale.op, inverse.op} != {el.exp2.name}:
        return None
    back = inverse.inputs[0]
    if back.op != el.neg.name or back.inputs[0] is not scale.inputs[0]:
        return None
    return part.inputs[0], lambda value: _norm(node, value, axes)


def _is_zero(x: Node) -> bool:
    return isinstance(x.prim, Constant) and not x.prim.value.any()


def _norm(node: Node, x: Interval, axes: tuple[int, ...]) -> Interval | None:
    kind = accumulator(node.dtype)
    n = math.prod(x.shape[i] for i in axes)
    if not is_bounded(x, math.sqrt(kind.most / max(n, 1)) / 1e3) or n == 0:
        return None
    inner = np.where(
        (x.lower <= 0) & (x.upper >= 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper))
    )
    low, high = (np.sqrt((v * v).sum(axis=axes)) for v in (inner, x.size))
    least = math.sqrt(kind.tiny) * 1e3 * math.sqrt(n)  # whose squares are lost
    low, high = np.where(low < least, 0.0, low), high + np.where(high < least, least, 0.0)
    return widened(low, high, node.dtype, n + 8 * QUOTIENT + 8 + 4 * FUNCTION)


def _either(*finders: Callable[[Node], Pattern | None]) -> Callable[[Node], Pattern | None]:
    def of(node: Node) -> Pattern | None:
        return next((p for p in (f(node) for f in finders) if p is not None), None)

    return of


PATTERNS[el.div.name] = softmax_of
PATTERNS[el.sub.name] = _either(log_softmax_of, centred_of)
PATTERNS[el.mul.name] = norm_of
