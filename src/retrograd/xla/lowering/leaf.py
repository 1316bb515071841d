"""Constants, counters and sizes; and ops that only steer differentiation."""

from __future__ import annotations

from typing import Any

from retrograd.ir import Node
from retrograd.ops.assume import Assume
from retrograd.ops.control import Custom
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import Constant, Iota, SizeOf
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(Constant)
def constant(t: JaxTrace, node: Node) -> Any:
    value = node.prim.value  # type: ignore[attr-defined]
    return t.jnp.asarray(value) if value.ndim else t.full(node, value)


@lowers(Iota)
def iota(t: JaxTrace, node: Node) -> Any:
    prim: Any = node.prim
    if node.dtype.kind in ("int", "uint") and node.dtype.itemsize >= 4:
        return t.lax.broadcasted_iota(node.dtype.dtype, node.shape, prim.axis)
    wide = t.lax.broadcasted_iota("int64", node.shape, prim.axis)
    return t.lax.convert_element_type(wide, node.dtype.dtype)


@lowers(SizeOf)
def size_of(t: JaxTrace, node: Node) -> Any:
    return t.jnp.asarray(node.prim.reference())


@lowers(Item)
def item(t: JaxTrace, node: Node, several: Any) -> Any:
    return several[node.prim.index]  # type: ignore[attr-defined]


@lowers(Custom)
def custom(t: JaxTrace, node: Node, *given: Any) -> Any:
    return list(given[node.prim.count :])  # type: ignore[attr-defined]


@lowers(StopGradient, Alias, Assume, Keep, RegionIn, RegionOut)
def same(t: JaxTrace, node: Node, x: Any) -> Any:
    return x


@lowers(After)
def after(t: JaxTrace, node: Node, x: Any, *others: Any) -> Any:
    """A barrier: what is computed from x is not merged with what was computed before the others."""
    return t.lax.optimization_barrier((x, *others))[0]
