"""Reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.xla.lowering.elementwise import in_float32
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(ReduceSum)
def reduce_sum(t: JaxTrace, node: Node, x: Any) -> Any:
    axes: tuple[int, ...] = node.prim.axes  # type: ignore[attr-defined]
    found = t.channels_last.get(node.inputs[0])
    if found is not None and 1 not in axes and len(axes) == x.ndim - 1:
        x, axes = found, tuple(range(x.ndim - 1))
    return in_float32(t, node, lambda wide: t.lax.reduce_sum(wide, axes), [x])


@lowers(ReduceProd)
def reduce_prod(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    return in_float32(t, node, lambda wide: t.lax.reduce_prod(wide, prim.axes), [x])


@lowers(ReduceMax)
def reduce_max(t: JaxTrace, node: Node, x: Any) -> Any:
    return _extremum(t, t.lax.reduce_max, node, x)


@lowers(ReduceMin)
def reduce_min(t: JaxTrace, node: Node, x: Any) -> Any:
    return _extremum(t, t.lax.reduce_min, node, x)


def _extremum(t: JaxTrace, reduce: Any, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    prim.infer(node.inputs[0].type)  # a symbolic axis may turn out empty
    return reduce(x, prim.axes)


@lowers(ReduceAny)
def reduce_any(t: JaxTrace, node: Node, x: Any) -> Any:
    return t.lax.reduce_or(x, node.prim.axes)  # type: ignore[attr-defined]


@lowers(ReduceAll)
def reduce_all(t: JaxTrace, node: Node, x: Any) -> Any:
    return t.lax.reduce_and(x, node.prim.axes)  # type: ignore[attr-defined]


@lowers(LogSumExp)
def logsumexp(t: JaxTrace, node: Node, x: Any) -> Any:
    lax, axes = t.lax, node.prim.axes  # type: ignore[attr-defined]

    def value(x: Any) -> Any:
        if x.size == 0:
            return lax.full(node.shape, -math.inf, x.dtype)
        top = lax.reduce_max(x, axes)
        top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0))
        kept = [i for i in range(x.ndim) if i not in axes]
        total = lax.reduce_sum(lax.exp(x - lax.broadcast_in_dim(top, x.shape, kept)), axes)
        return lax.log(total) + top

    return in_float32(t, node, value, [x])


@lowers(ArgMax)
def argmax(t: JaxTrace, node: Node, x: Any) -> Any:
    return _place(t, t.lax.argmax, node, x)


@lowers(ArgMin)
def argmin(t: JaxTrace, node: Node, x: Any) -> Any:
    return _place(t, t.lax.argmin, node, x)


def _place(t: JaxTrace, find: Any, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    prim.infer(node.inputs[0].type)
    return find(x, prim.axis, np.int64)
