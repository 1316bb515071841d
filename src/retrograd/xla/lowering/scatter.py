"""Scatters: updates meet what is there, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.ir import Node
from retrograd.ops.index import ScatterAdd
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.xla.lowering.elementwise import in_float32
from retrograd.xla.lowering.index import layout, positions
from retrograd.xla.lowering.rules import JaxTrace, lowers


def scattered(
    t: JaxTrace, node: Node, scatter: Callable[..., Any], x: Any, index: Any, updates: Any
) -> Any:
    """One of JAX's scatters."""
    prim: Any = node.prim
    axis, shared, lax = prim.axis, prim.shared, t.lax
    at = positions(t, node, node.inputs[1], index, axis, x.shape[axis], shared)
    if x.size == 0 or updates.size == 0:
        return x
    windows, along, batch = layout(x.ndim, index.ndim, axis, shared)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=windows,
        inserted_window_dims=along,
        scatter_dims_to_operand_dims=along,
        operand_batching_dims=batch,
        scatter_indices_batching_dims=batch,
    )
    return scatter(
        x,
        lax.expand_dims(at, (at.ndim,)),
        updates,
        numbers,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


@lowers(ScatterAdd)
def scatter_add(t: JaxTrace, node: Node, x: Any, index: Any, updates: Any) -> Any:
    def added(x: Any, updates: Any) -> Any:
        return scattered(t, node, t.lax.scatter_add, x, index, updates)

    return in_float32(t, node, added, [x, updates])


@lowers(ScatterSet)
def scatter_set(t: JaxTrace, node: Node, x: Any, index: Any, updates: Any) -> Any:
    return scattered(t, node, t.lax.scatter, x, index, updates)


@lowers(ScatterMul)
def scatter_mul(t: JaxTrace, node: Node, x: Any, index: Any, updates: Any) -> Any:
    return scattered(t, node, t.lax.scatter_mul, x, index, updates)


@lowers(ScatterMax)
def scatter_max(t: JaxTrace, node: Node, x: Any, index: Any, updates: Any) -> Any:
    return scattered(t, node, t.lax.scatter_max, x, index, updates)


@lowers(ScatterMin)
def scatter_min(t: JaxTrace, node: Node, x: Any, index: Any, updates: Any) -> Any:
    return scattered(t, node, t.lax.scatter_min, x, index, updates)
