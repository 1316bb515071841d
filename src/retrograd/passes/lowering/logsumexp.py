"""Sums of exponentials and their logarithms, scaled by the largest term so that none overflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Node, full, lookup
from retrograd.ops.elementwise import cast, exp, isfinite, keep_if, log
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.reduce import LogSumExp
from retrograd.ops.scan import LinearScan, LogCumSumExp, shifted, steady_top
from retrograd.ops.shape import expand
from retrograd.passes.lowering.rules import lowers


@lowers(LogSumExp)
def logsumexp(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`log(sum(exp(x - top))) + top`, top the finite maximum or zero, as the reference has it; half
    precision by way of float32."""
    (x,), axes = inputs, node.attrs["axes"]
    if any(x.shape[a] == 0 for a in axes):
        return full(float("-inf"), node.type)
    x = cast(x, accumulator_of(x.dtype))
    # The maximum over no elements is not defined, but has the value wanted here.
    highest = lookup("reduce_max")(axes)(x)
    top = keep_if(isfinite(highest), highest)
    total = lookup("reduce_sum")(axes)(exp(x - expand(top, x.shape, axes)))
    return cast(log(total) + top, node.dtype)


@lowers(LogCumSumExp)
def logcumsumexp(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`log(s) + top`, where top is `steady_top`, or zero while that is not finite, and s the sum of
    `exp(x - top)`, scaled down whenever top grows; half precision by way of float32."""
    (x,), axis, reverse = inputs, node.attrs["axis"], node.attrs["reverse"]
    x = cast(x, accumulator_of(x.dtype))
    first = steady_top(x, axis, reverse)
    top = keep_if(isfinite(first), first)
    before = shifted(top, axis, reverse, 0)
    total = LinearScan(axis, reverse)(exp(before - top), exp(x - top))
    return cast(log(total) + top, node.dtype)
