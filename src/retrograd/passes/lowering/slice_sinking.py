"""Nodes at one place along some axes.

What the gradient of pooling is made of is picked from below, so that it is computed for each place
of a window and not laid out for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.ir import Dim, Node, Shape, entering, full, product
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import Constant, Iota
from retrograd.ops.shape import Expand, Permute, Reshape, Slice, expand, permute, reshape
from retrograd.passes.lowering.windows import kept, typed

DEPTH = 5  # nodes that are looked through: few, as each is made again for each place

Places = tuple[int, ...]
Rule = Callable[[Node, Places, Places, dict[Any, Node], int], Node | None]
PICKED: dict[str, Rule] = {}
picks = entering(PICKED)


def sink_slice(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int = DEPTH
) -> Node:
    """x at one place along some axes, which are dropped: what is below it at that place, where
    there is a rule; else a slice of x in memory."""
    rule = PICKED.get(x.op)
    found = rule(x, axes, place, known, depth - 1) if rule is not None and depth else None
    return _sliced(kept(x, known), axes, place) if found is None else found


def _sliced(x: Node, axes: Places, place: Places) -> Node:
    starts: list[int | Dim] = [0] * x.type.rank
    stops = list(x.shape)
    for axis, i in zip(axes, place, strict=True):
        starts[axis], stops[axis] = i, i + 1
    y = Slice(tuple(starts), tuple(stops), (1,) * x.type.rank)(x)
    return reshape(y, _without(x.shape, axes))


def _without(shape: Shape, axes: Places) -> Shape:
    return tuple(d for i, d in enumerate(shape) if i not in axes)


@picks(Permute)
def _pick_permuted(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    perm = x.attrs["perm"]
    y = sink_slice(x.inputs[0], tuple(perm[a] for a in axes), place, known, depth)
    left = [p for a, p in enumerate(perm) if a not in axes]
    rest = sorted(left)
    return permute(y, [rest.index(p) for p in left])


@picks(Expand)
def _pick_expanded(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    new = x.attrs["axes"]
    old = [i for i in range(x.type.rank) if i not in new]
    below = [(old.index(a), i) for a, i in zip(axes, place, strict=True) if a in old]
    y = x.inputs[0]
    if below:
        y = sink_slice(y, tuple(a for a, _ in below), tuple(i for _, i in below), known, depth)
    left = [i for i in range(x.type.rank) if i not in axes]
    shape = _without(x.shape, axes)
    return expand(y, shape, [k for k, i in enumerate(left) if i in new])


@picks(el.select, el.eq)
def _pick_elementwise(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    args = [sink_slice(a, axes, place, known, depth) for a in x.inputs]
    return typed(x.prim, args, x.type.with_shape(args[0].shape))


@picks(Constant)
def _pick_constant(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    value = x.attrs["value"]
    if value.size != 1:
        return None
    return full(value.reshape(())[()], x.type.with_shape(_without(x.shape, axes)))


@picks(Iota)
def _pick_iota(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    axis, shape = x.attrs["axis"], _without(x.shape, axes)
    if axis in axes:
        return full(place[axes.index(axis)], x.type.with_shape(shape))
    return Iota(shape, axis - sum(a < axis for a in axes), x.dtype)()


@picks(Reshape)
def _pick_reshaped(
    x: Node, axes: Places, place: Places, known: dict[Any, Node], depth: int
) -> Node | None:
    """Where the axes are the last ones and one axis below."""
    (y,) = x.inputs
    lead = x.type.rank - len(axes)
    sizes = x.shape[lead:]
    if axes != tuple(range(lead, x.type.rank)) or y.shape != (*x.shape[:lead], product(sizes)):
        return None
    flat = 0
    for size, i in zip(sizes, place, strict=True):
        assert isinstance(size, int)
        flat = flat * size + i
    return sink_slice(y, (lead,), (flat,), known, depth)
