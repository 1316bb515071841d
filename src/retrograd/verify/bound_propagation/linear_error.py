"""How far rounding may move the value of a node from that of its operation on the values it was
given, `|computed - exact| <= error`, on any backend; sums as `rules/contraction.py` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Trait
from retrograd.ops import elementwise as el
from retrograd.ops.conv import Conv
from retrograd.ops.elementwise import Cast
from retrograd.ops.index import ScatterAdd
from retrograd.ops.matmul import BilinearOp, DotGeneral
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.ops.reduce import LogSumExp, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import Expand
from retrograd.ops.windows import Fold
from retrograd.verify.bound_propagation.interval import Interval, accumulator, format_of
from retrograd.verify.bound_propagation.rules.contraction import additions, in_any_order

Array = np.ndarray[Any, Any]
FUNCTION = 16  # units in the last place, see `rules/arithmetic.py`
QUOTIENT = 3
EXACT = frozenset({Trait.VIEW, Trait.IDENTITY, Trait.UNROUNDED, Trait.DETERMINED})
SUMS = (CumSum, Fold, ReduceSum, ScatterAdd)
ADDITIVE = frozenset({el.add.name, el.neg.name, el.sub.name})


def magnitudes(node: Node, sizes: Sequence[Array]) -> Array:
    """The sum of the magnitudes that a linear or bilinear operation adds up, for each element."""
    with np.errstate(all="ignore"):
        f = in_any_order(node.prim) if isinstance(node.prim, BilinearOp) else node.prim.reference
        found = np.asarray(f(*sizes), np.float64)
    return np.where(np.isnan(found), np.inf, found) * (1 + 1e-9)


def _count(shape: Iterable[Any]) -> int:
    """How many elements a shape has, whose sizes are numbers."""
    return math.prod(int(d) for d in shape)


def added(node: Node) -> int:
    """How many numbers are added up for one element."""
    prim = node.prim
    if isinstance(prim, DotGeneral):
        return _count(node.inputs[0].shape[i] for i in prim.a_contract)
    if isinstance(prim, Conv):
        return _count(node.inputs[1].shape[1:])
    if node.op in (el.add.name, el.sub.name):
        return 2
    size = max((_count(x.shape) for x in node.inputs), default=1)
    if isinstance(prim, ReduceSum):
        return size // max(_count(node.shape), 1)
    return size if isinstance(prim, SUMS) else 1


def roundings(node: Node) -> int:
    """How many roundings each of these goes through at most, that of its product included."""
    prim, terms = node.prim, added(node)
    if isinstance(prim, DotGeneral):
        return additions(terms, len(prim.a_contract), PRODUCTS) + 1
    if isinstance(prim, Conv):
        return additions(terms, 1 + prim.rank, PRODUCTS) + 1
    if isinstance(prim, LogSumExp):
        return additions(added_terms(node), len(prim.axes)) + 1
    if isinstance(prim, ReduceSum):
        return additions(terms, len(prim.axes)) + 1
    return terms


def is_exact(node: Node) -> bool:
    """Whether an operation rounds nothing."""
    return not node.dtype.is_float or bool(EXACT & node.prim.traits)


def rounding_error(node: Node, given: Sequence[Interval], result: Interval) -> Any:
    """The error of a node of a floating dtype; 0 of one that rounds nothing."""
    if is_exact(node):
        return 0.0
    kind, sums = format_of(node.dtype), accumulator(node.dtype)
    with np.errstate(all="ignore"):
        size = result.size
        if isinstance(node.prim, (BilinearOp, *SUMS)):
            n = roundings(node)
            sizes = [x.size if p.dtype.is_float else x.lower.astype(p.dtype.dtype)
                     for x, p in zip(given, node.inputs, strict=True)]  # fmt: skip
            total = magnitudes(node, sizes)
            half = (
                0.51 if n * sums.eps < 0.02 else 1.0
            )  # n roundings by half a unit, and their square
            return half * n * sums.eps * total + kind.eps * size + added(node) * kind.tiny
        if isinstance(node.prim, Cast):
            source = node.inputs[0].dtype
            exact = source.is_float and format_of(source).eps >= kind.eps and not source.is_half
            return 0.0 if exact else kind.eps * size + kind.tiny
        if isinstance(node.prim, LogSumExp):
            reach = np.max(given[0].upper, initial=-np.inf) - np.min(given[0].lower, initial=np.inf)
            return kind.eps * (size + 4 * FUNCTION + 2 * math.log(added_terms(node)) * FUNCTION
                               + 2 * roundings(node) + 2 * reach)  # fmt: skip
        ulps = 1 if Trait.ROUNDED_ONCE in node.prim.traits else FUNCTION
        if Trait.DIVISION in node.prim.traits and node.op != el.rsqrt.name:
            ulps = QUOTIENT
        return ulps * kind.eps * size + ulps * kind.tiny


def added_terms(node: Node) -> int:
    x = node.inputs[0]
    return max(_count(x.shape) // max(_count(node.shape), 1), 1)


def softmax_error(program: Node, x: Interval, axes: Sequence[int], result: Interval) -> Any:
    """That of `exp(x - m) / sum(exp(x - m))` or, of a difference, its logarithm, as computed."""
    kind = accumulator(program.dtype)
    own = format_of(program.dtype)
    n = _count(x.shape[a] for a in axes)
    added = additions(n, len(axes)) + 1
    with np.errstate(all="ignore"):
        high = np.max(x.upper, axis=tuple(axes), keepdims=True)
        low = np.min(x.lower, axis=tuple(axes), keepdims=True)
        reach = high - low
        size = result.size
        if program.op == el.sub.name:
            share = 4 * reach + 4 * FUNCTION + 2 * added + 2 * FUNCTION * math.log(max(n, 2))
            return own.eps * (share + 2 * size) + own.tiny
        share = own.eps * (4 * reach + 4 * FUNCTION + 2 * QUOTIENT) + 2 * added * kind.eps
        # exp(share) - 1, where the share is small
        error = np.where(share < 0.5, 2 * share, np.inf) * np.minimum(size, 1.0)
        return np.where(np.isfinite(reach), error, np.inf) + 8 * n * own.tiny


def node_error(node: Node, source: Any, value: Callable[[Node], Interval], result: Interval) -> Any:
    """The error of a node of a graph that was rewritten: of what stands for nodes of the program
    that of these, of what only helps none."""
    if node in source.helping:
        return 0.0
    program = source.program.get(node, node)
    if is_exact(program):
        return 0.0
    if program is not node:
        spread = next((x for x in _before(node) if isinstance(x.prim, LogSumExp)), None)
        if spread is not None:
            axes = spread.prim.axes  # type: ignore[attr-defined]
            return softmax_error(program, value(spread.inputs[0]), axes, result)
        if node.op == el.mul.name and program.op == el.mul.name:
            return gelu_error(node, value(node.inputs[0]), result)
    return rounding_error(program, [value(x) for x in program.inputs], result)


def gelu_error(node: Node, x: Interval, result: Interval) -> Any:
    """That of gelu as it is written: a few units, and what is left of the rounding of a root."""
    kind = format_of(node.dtype)
    return 8 * kind.eps * (np.minimum(x.size, 1.0) + result.size) + kind.tiny


def _before(node: Node) -> list[Node]:
    """What a node reads, through a difference and an axis that was spread."""
    found = list(node.inputs)
    for _ in range(3):
        passed = [y for y in found if y.op == el.sub.name or isinstance(y.prim, Expand)]
        found += [x for y in passed for x in y.inputs]
    return found
