"""Simplification of what moves or combines elements: shapes, reductions, contractions.

The same form as in `algebra`: each takes the node and its inputs and gives what may stand in its
place, or None. Movements are exact; contractions keep their products and the order in which these
are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrograd.ir import Dim, Node, product
from retrograd.ops.elementwise import add, mul
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.index import Gather
from retrograd.ops.matmul import DotGeneral, sums_along
from retrograd.ops.reduce import (
    LogSumExp,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from retrograd.ops.shape import (
    Concat,
    Expand,
    Flip,
    Pad,
    Permute,
    Reshape,
    Slice,
    expand,
    permute,
    reshape,
)
from retrograd.ops.windows import Windows
from retrograd.passes.algebra import Identities
from retrograd.passes.constants import is_full, like, splat
from retrograd.tuning import TUNING


def expand_of_expand(y: Node, x: Node) -> Node | None:
    """Repeat along all new axes at once."""
    if not isinstance(x.prim, Expand):
        return None
    kept = [i for i in range(y.type.rank) if i not in y.prim.axes]  # type: ignore[attr-defined]
    axes = {*y.prim.axes, *(kept[a] for a in x.prim.axes)}  # type: ignore[attr-defined]
    return Expand(y.shape, tuple(sorted(axes)))(x.inputs[0])


def reshape_of_expand(y: Node, x: Node) -> Node | None:
    """A number repeated is the same in any shape."""
    if not isinstance(x.prim, Expand) or x.inputs[0].shape:
        return None
    return expand(x.inputs[0], y.shape, tuple(range(y.type.rank)))


def permute_of_permute(y: Node, x: Node) -> Node | None:
    if not isinstance(y.prim, Permute) or not isinstance(x.prim, Permute):
        return None
    return permute(x.inputs[0], [x.prim.perm[p] for p in y.prim.perm])


def permute_of_expand(y: Node, x: Node) -> Node | None:
    """Reorder what is repeated, then repeat along the axes where they came to lie."""
    if not isinstance(y.prim, Permute) or not isinstance(x.prim, Expand):
        return None
    perm, new = y.prim.perm, x.prim.axes
    kept = [i for i in range(len(perm)) if i not in new]
    order = [kept.index(p) for p in perm if p not in new]
    axes = tuple(i for i, p in enumerate(perm) if p in new)
    return Expand(y.shape, axes)(permute(x.inputs[0], order))


def slice_of_slice(y: Node, x: Node) -> Node | None:
    """Take at once. With steps, only where sizes are known."""
    if not isinstance(y.prim, Slice) or not isinstance(x.prim, Slice):
        return None
    outer, within = y.prim, x.prim
    starts = tuple(
        a + s * t for a, s, t in zip(within.starts, outer.starts, within.steps, strict=True)
    )
    steps = tuple(s * t for s, t in zip(outer.steps, within.steps, strict=True))
    stops = tuple(a + _reach(n, s) for a, n, s in zip(starts, y.shape, steps, strict=True))
    if any(isinstance(n, Dim) and s > 1 for n, s in zip(y.shape, steps, strict=True)):
        return None
    return Slice(starts, stops, steps)(x.inputs[0])


def _reach(count: int | Dim, step: int) -> int | Dim:
    """How far `count` elements, `step` apart, extend."""
    return count if step == 1 else (count - 1) * step + 1 if count else 0


def slice_of_concat(y: Node, x: Node) -> Node | None:
    """A slice that is exactly one of the parts."""
    if not isinstance(x.prim, Concat) or not _plain(y):
        return None
    axis, starts = x.prim.axis, y.prim.starts  # type: ignore[attr-defined]
    at: int | Dim = 0
    for part in x.inputs:
        if at == starts[axis] and part.shape == y.shape:
            return part if not any(starts[:axis] + starts[axis + 1 :]) else None
        at = at + part.shape[axis]
    return None


def slice_of_pad(y: Node, x: Node) -> Node | None:
    """A slice that is exactly what was padded."""
    if not isinstance(x.prim, Pad) or not _plain(y) or any(x.prim.interior):
        return None
    inside = x.inputs[0]
    found = y.prim.starts == x.prim.low and y.shape == inside.shape  # type: ignore[attr-defined]
    return inside if found else None


def _plain(y: Node) -> bool:
    """Whether a slice takes neighbours."""
    return all(s == 1 for s in y.prim.steps)  # type: ignore[attr-defined]


def whole_slice(y: Node, x: Node) -> Node | None:
    full = y.shape == x.shape and _plain(y)
    return x if full and all(s == 0 for s in y.prim.starts) else None  # type: ignore[attr-defined]


def pad_of_nothing(y: Node, x: Node, value: Node) -> Node | None:
    p = y.prim
    widths = (*p.low, *p.high, *p.interior)  # type: ignore[attr-defined]
    return x if all(w == 0 for w in widths) else None


def flip_of_flip(y: Node, x: Node) -> Node | None:
    """Axes flipped twice are not flipped."""
    if not isinstance(y.prim, Flip) or not isinstance(x.prim, Flip):
        return None
    axes = tuple(sorted(set(y.prim.axes) ^ set(x.prim.axes)))
    return Flip(axes)(x.inputs[0]) if axes else x.inputs[0]


# -- reductions -----------------------------------------------------------------------------------


def reduce_nothing(y: Node, x: Node) -> Node | None:
    """Over an axis without elements: the value of the empty reduction."""
    axes: Sequence[int] = y.prim.axes  # type: ignore[attr-defined]
    empty: float = y.prim.empty  # type: ignore[attr-defined]
    return like(empty, y) if any(x.shape[a] == 0 for a in axes) else None


def reduce_no_axes(y: Node, x: Node) -> Node | None:
    """Over no axes: each element by itself. (A sum of one -0.0 is 0.0.)"""
    if y.prim.axes or (isinstance(y.prim, ReduceSum) and x.dtype.is_float):  # type: ignore[attr-defined]
        return None
    return x


def reduce_splat(y: Node, x: Node) -> Node | None:
    """A sum of zeros, a product of ones, the maximum of equal values."""
    if isinstance(y.prim, ReduceSum):
        return like(0, y) if is_full(x, 0.0) else None
    if isinstance(y.prim, ReduceProd):
        return like(1, y) if is_full(x, 1) else None
    value = splat(x)
    if value is None or any(isinstance(d, Dim) or d == 0 for d in x.shape):
        return None
    return like(value, y)


def reduce_repeated(y: Node, x: Node) -> Node | None:
    """The maximum of equal values is their value, and so on, where there are any."""
    if not isinstance(x.prim, Expand) or x.prim.axes != y.prim.axes:  # type: ignore[attr-defined]
        return None
    sizes = [x.shape[a] for a in x.prim.axes]
    return None if any(isinstance(d, Dim) or d == 0 for d in sizes) else x.inputs[0]


# -- contractions ---------------------------------------------------------------------------------


def dot_of_one(y: Node, a: Node, b: Node) -> Node | None:
    """A sum of one product is that product, which need not be stored to be read: the gradient by
    a weight of one sample is a column times a row. (A contraction starts from nothing, not from
    0.0, so the sign of zero is the same.)"""
    p = y.prim
    if not isinstance(p, DotGeneral) or y.dtype.is_complex:
        return None
    if any(a.shape[i] != 1 for i in p.a_contract):
        return None
    a_free, b_free = p.free_axes(a.type.rank, b.type.rank)
    n, k, rank = len(p.a_batch), len(a_free), y.type.rank
    a = permute(a, (*p.a_batch, *a_free, *p.a_contract))
    b = permute(b, (*p.b_batch, *b_free, *p.b_contract))
    column = reshape(a, y.shape[: n + k])
    row = reshape(b, (*y.shape[:n], *y.shape[n + k :]))
    wide = expand(column, y.shape, tuple(range(n + k, rank)))
    return mul(wide, expand(row, y.shape, tuple(range(n, n + k))))


def dot_of_permute(y: Node, a: Node, b: Node) -> Node | None:
    """Contract the axes where they lay before they were reordered.

    Possible where the axes that remain keep their order, as the result has them in that order.
    """
    if not isinstance(y.prim, DotGeneral) or not any(isinstance(x.prim, Permute) for x in (a, b)):
        return None
    p = y.prim
    a_free, b_free = p.free_axes(a.type.rank, b.type.rank)
    a, a_contract, a_batch = _before(a, p.a_contract, p.a_batch, a_free)
    b, b_contract, b_batch = _before(b, p.b_contract, p.b_batch, b_free)
    if (a, b) == y.inputs:
        return None
    better = DotGeneral(a_contract, b_contract, a_batch, b_batch)(a, b)
    return better if sums_along(better) == sums_along(y) else None


Axes = tuple[int, ...]


def _before(x: Node, contract: Axes, batch: Axes, free: Axes) -> tuple[Node, Axes, Axes]:
    """The operand and its axes without its permutation, where that may be left out."""
    if not isinstance(x.prim, Permute):
        return x, contract, batch
    perm = x.prim.perm
    home = [perm[i] for i in free]
    if home != sorted(home):
        return x, contract, batch
    return x.inputs[0], tuple(perm[i] for i in contract), tuple(perm[i] for i in batch)


def dot_of_gather(y: Node, a: Node, b: Node) -> Node | None:
    """Rows of a small table, read many times and then multiplied, as an embedding before a linear
    map: multiply the table, read rows of the product. Each is the same sum of the same products.
    """
    p, moved = y.prim, a
    if isinstance(a.prim, Permute):
        (a,) = a.inputs
    if not isinstance(a.prim, Gather) or not isinstance(p, DotGeneral):
        return None
    (table, index), last = a.inputs, a.type.rank - 1
    perm = moved.prim.perm if isinstance(moved.prim, Permute) else tuple(range(last + 1))
    of_rows = p.a_contract == (last,) and not p.a_batch and perm[last] == last
    if not of_rows or table.type.rank != 2 or a.prim.axis or a.prim.shared:
        return None
    sizes = (table.shape[0], *index.shape)
    if any(isinstance(d, Dim) for d in sizes):
        return None
    if TUNING.reads_of_table_rows * sizes[0] > product(index.shape):
        return None
    small = DotGeneral((1,), p.b_contract)(table, b)
    if sums_along(small) or sums_along(y):
        return None
    rest = range(last, y.type.rank)
    return permute(Gather(0)(small, index), (*perm[:last], *rest))


def permute_of_dot(y: Node, x: Node) -> Node | None:
    """A product transposed is the product of the operands in the other order.

    Only where nobody else reads `x`: the driver sees to that, as it would be computed twice.
    """
    if not isinstance(y.prim, Permute) or not isinstance(x.prim, DotGeneral):
        return None
    p, (a, b) = x.prim, x.inputs
    a_free, b_free = p.free_axes(a.type.rank, b.type.rank)
    n, k, m = len(p.a_batch), len(a_free), len(b_free)
    swapped = (*range(n), *range(n + k, n + k + m), *range(n, n + k))
    if y.prim.perm != swapped:
        return None
    better = DotGeneral(p.b_contract, p.a_contract, p.b_batch, p.a_batch)(b, a)
    return better if sums_along(better) == sums_along(x) else None


def permute_of_sum(y: Node, x: Node, read_once: Callable[[Node], bool]) -> Node | None:
    """A sum of products transposed is the sum of the products in the other order: the gradient by
    a weight that is used several times, transposed each time.

    Only where nobody else reads the parts of the sum, all of which are products or sums of these,
    and where left operands can be right ones, which the routine for products is more particular
    about.
    """
    if x.prim is not add:
        return permute_of_dot(y, x)
    moved: dict[Node, Node] = {}
    todo = [x]
    while todo:
        part = todo[-1]
        if part in moved:
            todo.pop()
            continue
        if not read_once(part):
            return None
        if part.prim is add:
            a, b = part.inputs
            if a in moved and b in moved:
                moved[part] = add(moved[a], moved[b])
            todo += [p for p in (a, b) if p not in moved]
            continue
        turned = permute_of_dot(y.with_inputs((part,)), part) if _may_turn(part) else None
        if turned is None:
            return None
        moved[part] = turned
    return moved[x]


def _may_turn(x: Node) -> bool:
    """Whether a node is a product whose left operand lies in memory as a right one has to: products
    are added along axes side by side, and it is no view of something else."""
    p = x.prim
    if not isinstance(p, DotGeneral):
        return False
    left = x.inputs[0]
    while isinstance(left.prim, Reshape):
        (left,) = left.inputs
    first = min(p.a_contract, default=0)
    beside = p.a_contract == tuple(range(first, first + len(p.a_contract)))
    return beside and not isinstance(left.prim, Permute | Expand | Slice | Windows)


# -- by op ----------------------------------------------------------------------------------------

# fmt: off
MOVEMENT = Identities()
MOVEMENT.hold(Expand, lambda y, x: x if not y.prim.axes else None, expand_of_expand)
MOVEMENT.hold(
    Reshape,
    lambda y, x: x if x.shape == y.shape else None,
    lambda y, x: reshape(x.inputs[0], y.shape) if isinstance(x.prim, Reshape) else None,
    reshape_of_expand,
)
MOVEMENT.hold(
    Permute,
    lambda y, x: x if y.prim.perm == tuple(range(y.type.rank)) else None,
    permute_of_permute,
    permute_of_expand,
)
MOVEMENT.hold(Slice, whole_slice, slice_of_slice, slice_of_concat, slice_of_pad)
MOVEMENT.hold(Pad, pad_of_nothing)
MOVEMENT.hold(Flip, lambda y, x: x if not y.prim.axes else None, flip_of_flip)
MOVEMENT.hold(Concat, lambda y, *parts: parts[0] if len(parts) == 1 else None)
MOVEMENT.hold(ReduceSum, reduce_nothing, reduce_no_axes, reduce_splat)
MOVEMENT.hold(ReduceProd, reduce_nothing, reduce_no_axes, reduce_splat)
MOVEMENT.hold(ReduceMax, reduce_no_axes, reduce_splat, reduce_repeated)
MOVEMENT.hold(ReduceMin, reduce_no_axes, reduce_splat, reduce_repeated)
MOVEMENT.hold(ReduceAny, reduce_nothing, reduce_no_axes, reduce_splat, reduce_repeated)
MOVEMENT.hold(ReduceAll, reduce_nothing, reduce_no_axes, reduce_splat, reduce_repeated)
MOVEMENT.hold(LogSumExp, reduce_nothing, reduce_no_axes)
MOVEMENT.hold(DotGeneral, dot_of_one, dot_of_permute, dot_of_gather)
MOVEMENT.hold(Alias, lambda y, x: x)
MOVEMENT.hold(StopGradient, lambda y, x: x if isinstance(x.prim, StopGradient) else None)
# fmt: on
