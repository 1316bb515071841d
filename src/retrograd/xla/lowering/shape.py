"""Movement of elements."""

from __future__ import annotations

from operator import index
from typing import Any

from retrograd.ir import Node
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice, SliceSet
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(Expand)
def expand(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    kept = [i for i in range(len(prim.shape)) if i not in prim.axes]
    return t.lax.broadcast_in_dim(x, prim.shape, kept)


@lowers(Reshape)
def reshape(t: JaxTrace, node: Node, x: Any) -> Any:
    return t.lax.reshape(x, node.shape)


@lowers(Permute)
def permute(t: JaxTrace, node: Node, x: Any) -> Any:
    return t.lax.transpose(x, node.prim.perm)  # type: ignore[attr-defined]


def ends(prim: Any, taken: Any) -> list[int]:
    """Where a slice that takes so many elements stops."""
    steps = zip(prim.starts, prim.steps, taken, strict=True)
    return [index(a) if n == 0 else index(a) + (n - 1) * s + 1 for a, s, n in steps]


@lowers(Slice)
def slice_(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    if node.type.size == 0:
        return t.full(node, 0)
    return t.lax.slice(x, prim.starts, ends(prim, node.shape), prim.steps)


@lowers(SliceSet)
def slice_set(t: JaxTrace, node: Node, x: Any, value: Any) -> Any:
    """In place where steps are 1; otherwise the value is spread out, and chosen where it lies."""
    prim: Any = node.prim
    if value.size == 0:
        return x
    if all(s == 1 or n == 1 for s, n in zip(prim.steps, value.shape, strict=True)):
        return t.lax.dynamic_update_slice(x, value, prim.starts)
    stops = ends(prim, value.shape)
    widths = [
        (lo, d - hi, s - 1)
        for lo, hi, s, d in zip(prim.starts, stops, prim.steps, x.shape, strict=True)
    ]
    here = t.lax.pad(t.lax.full(value.shape, True), False, widths)
    spread = t.lax.pad(value, t.lax.full((), 0, x.dtype), widths)
    return t.lax.select(here, spread, x)


@lowers(Pad)
def pad(t: JaxTrace, node: Node, x: Any, value: Any) -> Any:
    prim: Any = node.prim
    if x.size == 0:  # nothing lies between no elements
        return t.lax.broadcast_in_dim(value, node.shape, ())
    widths = list(zip(prim.low, prim.high, prim.interior, strict=True))
    return t.lax.pad(x, value, widths)


@lowers(Flip)
def flip(t: JaxTrace, node: Node, x: Any) -> Any:
    return t.lax.rev(x, node.prim.axes)  # type: ignore[attr-defined]


@lowers(Concat)
def concat(t: JaxTrace, node: Node, *xs: Any) -> Any:
    return t.lax.concatenate(xs, node.prim.axis)  # type: ignore[attr-defined]
