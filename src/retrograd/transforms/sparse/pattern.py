"""Which elements of the outputs of a graph depend on which elements of its inputs.

One walk in topological order. A *pattern* is a sparse matrix of booleans with a row for each
element of a node and a column for each element of the inputs. Ops say how the rows of their result
come from those of their operands; of an op that is not known here, every element depends on all
that its operands depend on. So a pattern has everything that is not zero, and perhaps more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Trait, TupleType, apply, reachable
from retrograd.ops.conv import Conv, framed
from retrograd.ops.elementwise import Cast, Elementwise, Select
from retrograd.ops.identity import Item, StopGradient
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import LogSumExp, Reduction
from retrograd.ops.scan import AxisScan
from retrograd.ops.sort import Sort
from retrograd.ops.windows import Windows, windows_of
from retrograd.runtime.backend import Array
from retrograd.transforms.sparse.known_values import KnownValues, shape_of, size_of

Pattern = Any  # a SciPy CSR array of booleans
Rule = Callable[[Node, Sequence[Pattern | None], KnownValues], Pattern]
RULES: dict[type, Rule] = {}  # of an op without one, that of its nearest base
MOST_PRODUCTS = 20_000_000  # of a contraction whose products are looked at one by one


def spreads(*kinds: type) -> Callable[[Rule], Rule]:
    """Enter a rule for classes of ops."""

    def enter(f: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, f))
        return f

    return enter


def walked(
    outputs: Sequence[Node], found: dict[Node, Any], values: KnownValues
) -> list[Pattern | None]:
    """The patterns of outputs, None where they depend on nothing, given those of what they are
    computed from, which is added to. That of a node of several results is a list of theirs."""
    for node in reachable(outputs, found.keys()):
        if node in found:
            continue
        if isinstance(node.prim, Item):
            several = found[node.inputs[0]]
            part = several[node.prim.index] if isinstance(several, list) else several
            found[node] = part if node.type.is_inexact else None
            continue
        operands = [found[x] for x in node.inputs]
        constant = isinstance(node.prim, StopGradient) or not node.type.is_inexact
        if constant or all(p is None for p in operands):
            found[node] = None
        else:
            found[node] = _rule(node)(node, operands, values)
    return [found[y] for y in outputs]


def _rule(node: Node) -> Rule:
    for kind in type(node.prim).__mro__:
        if kind in RULES:
            return RULES[kind]
    traits = node.prim.traits
    return passed_on if Trait.IDENTITY in traits else moved if Trait.VIEW in traits else everything


def union(present: Sequence[Pattern]) -> Pattern:
    total = present[0]
    for p in present[1:]:
        total = total + p
    return total


def everything(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Every element depends on all that the operands depend on."""
    from scipy import sparse

    if isinstance(node.type, TupleType):
        parts = [Node(Item(i), (node,), t) for i, t in enumerate(node.type.items)]
        return [everything(part, operands, values) for part in parts]
    given = [p for p in operands if p is not None]
    count = size_of(node)
    present = [sparse.csr_array(p.max(axis=0)) for p in given if p.shape[0]]
    if not present:
        return sparse.csr_array((count, given[0].shape[1]), dtype=bool)
    total = sparse.csr_array(union(present).reshape(1, -1))
    return total[np.zeros(count, np.int64)]


@spreads(Elementwise, Cast)
def elementwise(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on the same element of the operands; not where it is multiplied by what
    is zero there."""
    if Trait.PRODUCT not in node.prim.traits:
        return union([p for p in operands if p is not None])
    parts = []
    for p, other in zip(operands, reversed(node.inputs), strict=True):
        if p is None:
            continue
        where = values.support(other)
        if where is not None and not where.all():
            p = _only(p, np.broadcast_to(where, shape_of(node)).reshape(-1))
        parts.append(p)
    return union(parts)


def _only(p: Pattern, rows: Array) -> Pattern:
    """A pattern without the other rows."""
    from scipy import sparse

    return sparse.csr_array(sparse.dia_array((rows[None], [0]), shape=(len(rows),) * 2) @ p)


@spreads(Select)
def select(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Of a known condition the branch that is taken."""
    condition = values(node.inputs[0])
    branches = operands[1:]
    if condition is None:
        return union([p for p in branches if p is not None])
    taken = np.broadcast_to(condition, shape_of(node)).reshape(-1).astype(bool)
    return union(
        [_only(p, c) for p, c in zip(branches, (taken, ~taken), strict=True) if p is not None]
    )


@spreads(Windows)
def moved(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Rows of the operands in another order, found by moving their numbers. The same operation on
    an array of numbers says which row each element comes from."""
    from scipy import sparse

    columns = next(p.shape[1] for p in operands if p is not None)
    numbers: list[Any] = []
    rows: list[Pattern] = []
    start = 0
    for x, p in zip(node.inputs, operands, strict=True):
        given = values(x) if p is None and x.dtype.is_integer else None
        if given is not None:
            numbers.append(given)
            continue
        count = size_of(x)
        numbers.append(np.arange(start, start + count).reshape(shape_of(x)))
        rows.append(sparse.csr_array((count, columns), dtype=bool) if p is None else p)
        start += count
    source = apply(node, numbers).reshape(-1)
    return sparse.csr_array(sparse.vstack(rows, format="csr"))[source]


def joined(where: Array, size: int, p: Pattern) -> Pattern:
    """For each of so many places the union of the rows that go there."""
    from scipy import sparse

    flat = where.reshape(-1)
    ones = np.ones(len(flat), bool)
    return sparse.csr_array((ones, (flat, np.arange(len(flat)))), (size, len(flat))) @ p


def lines_of(shape: tuple[int, ...], axes: Sequence[int]) -> Array:
    """For each element the number of the line along `axes` that it lies on."""
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    return np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), shape)


@spreads(Reduction, LogSumExp)
def reduction(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    (p,) = operands
    return joined(lines_of(shape_of(node.inputs[0]), node.attrs["axes"]), size_of(node), p)


@spreads(Sort)
def along(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on the whole line along the axis."""
    line = lines_of(shape_of(node), (node.attrs["axis"],))
    count = int(line.max()) + 1 if line.size else 0
    total = union([p for p in operands if p is not None])
    return joined(line, count, total)[line.reshape(-1)]


@spreads(AxisScan)
def running(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on those of its line up to its own place."""
    from scipy import sparse

    axis, shape = node.attrs["axis"], shape_of(node)
    length, after = shape[axis], int(np.prod(shape[axis + 1 :]))
    if size_of(node) * length > MOST_PRODUCTS:
        return along(node, operands, values)
    half = np.triu if node.attrs["reverse"] else np.tril
    line = sparse.kron(half(np.ones((length, length), bool)), sparse.eye_array(after, dtype=bool))
    count = int(np.prod(shape[:axis]))
    link = sparse.csr_array(sparse.kron(sparse.eye_array(count, dtype=bool), line))
    return sparse.csr_array(link @ union([p for p in operands if p is not None]))


@spreads(DotGeneral)
def contraction(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on a row of one factor and a column of the other; where the other factor
    is zero anyway is left out."""
    prim: Any = node.prim
    a, b = node.inputs
    shapes = shape_of(a), shape_of(b)
    used = (
        (*prim.a_batch, *prim.a_contract),
        (*prim.b_batch, *prim.b_contract),
    )
    free = prim.free_axes(len(shapes[0]), len(shapes[1]))
    batch = [shapes[0][i] for i in prim.a_batch]
    summed = [shapes[0][i] for i in prim.a_contract]
    sizes = [*batch, *summed, *[shapes[0][i] for i in free[0]], *[shapes[1][j] for j in free[1]]]
    # Numbers of the elements of the factors and of the result in the space of all products.
    n, k, f = len(batch), len(summed), len(free[0])
    out = [*range(n), *range(n + k, len(sizes))]
    axes = (
        _places((*used[0], *free[0]), [*range(n + k), *range(n + k, n + k + f)]),
        _places((*used[1], *free[1]), [*range(n + k), *range(n + k + f, len(sizes))]),
    )
    parts = []
    products = int(np.prod(sizes, dtype=np.int64))
    for side in (0, 1):
        p = operands[side]
        if p is None:
            continue
        other = values.support(node.inputs[1 - side])
        if products > MOST_PRODUCTS:
            parts.append(_by_rows(p, shapes[side], axes[side], sizes, out))
            continue
        mine = _numbers(shapes[side], axes[side], sizes)
        where = _numbers(shape_of(node), out, sizes)
        if other is not None:
            there = np.broadcast_to(_spread(other, axes[1 - side], len(sizes)), sizes)
            mine, where = mine[there], where[there]
        parts.append(_linked(where, mine, (size_of(node), p.shape[0])) @ p)
    return union(parts)


@spreads(Conv)
def convolution(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each element depends on the window of x that it sees, in its group of channels, and on the
    kernel of its channel; of a factor that is known, its zeros are left out."""
    prim: Any = node.prim
    x, w = node.inputs
    y = shape_of(node)
    groups, own, kernel = int(prim.groups), shape_of(w)[1], shape_of(w)[2:]
    if not groups or int(np.prod([*y, own, *kernel], dtype=np.int64)) > MOST_PRODUCTS:
        return everything(node, operands, values)
    rank = prim.rank
    # The number of the element of x, from 1, that each product reads: [N, groups, own, *P, *K].
    numbers = np.arange(1, size_of(x) + 1).reshape(shape_of(x))
    full = framed(numbers, prim.low, prim.high, prim.x_dilation)
    seen = windows_of(full, kernel, prim.strides, prim.w_dilation)
    seen = seen.reshape(y[0], groups, own, *seen.shape[2:])
    seen = np.moveaxis(seen, 2, 2 + rank)[:, :, None]  # [N, groups, 1, *P, own, *K]
    space = (y[0], groups, y[1] // groups, *y[2:], own, *kernel)
    reads = np.broadcast_to(seen, space)
    kernels = np.arange(size_of(w)).reshape(groups, y[1] // groups, *[1] * rank, own, *kernel)
    weighs = np.broadcast_to(kernels, space)
    at = np.arange(size_of(node)).reshape(*space[: 3 + rank], *[1] * (1 + rank))
    where = np.broadcast_to(at, space)
    counts = reads > 0
    for side, source in ((0, reads - 1), (1, weighs)):
        known = values(node.inputs[side]) if operands[side] is None else None
        if known is not None:
            counts = counts & (known.reshape(-1)[np.maximum(source, 0)] != 0)
    parts = []
    for p, source in zip(operands, (reads - 1, weighs), strict=True):
        if p is not None:
            parts.append(_linked(where[counts], source[counts], (size_of(node), p.shape[0])) @ p)
    return union(parts)


@spreads(MatrixOp)
def matrices(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Each matrix of a stack depends on those in its place."""
    lead = shape_of(node.inputs[0])[:-2]
    nodes = (node, *node.inputs)
    if not lead or any(shape_of(x)[: len(lead)] != lead for x in nodes):
        return everything(node, operands, values)
    axes = [range(len(lead), x.type.rank) for x in nodes]
    lines = [lines_of(shape_of(x), own) for x, own in zip(nodes, axes, strict=True)]
    count = int(np.prod(lead))
    pairs = zip(lines[1:], operands, strict=True)
    total = union([joined(line, count, p) for line, p in pairs if p is not None])
    return total[lines[0].reshape(-1)]


def _places(axes: Sequence[int], space: Sequence[int]) -> list[int]:
    """For each axis of a factor its axis in the space of products."""
    found = dict(zip(axes, space, strict=True))
    return [found[i] for i in range(len(axes))]


def _spread(array: Array, space: Sequence[int], rank: int) -> Array:
    """An array with its axes where they belong in the space of products."""
    order = np.argsort(space)
    shape = [1] * rank
    for i in range(array.ndim):
        shape[space[i]] = array.shape[i]
    return array.transpose(order).reshape(shape)


def _numbers(shape: tuple[int, ...], space: Sequence[int], sizes: Sequence[int]) -> Array:
    """The number of the element that each product reads or adds to."""
    numbers = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return np.broadcast_to(_spread(numbers, space, len(sizes)), sizes)


def _linked(where: Array, source: Array, shape: tuple[int, int]) -> Pattern:
    from scipy import sparse

    ones = np.ones(where.size, bool)
    return sparse.csr_array((ones, (where.reshape(-1), source.reshape(-1))), shape)


def _by_rows(
    p: Pattern, shape: tuple[int, ...], space: Sequence[int], sizes: Sequence[int], out: list[int]
) -> Pattern:
    """The same without looking at each product: rows of the factor joined, then repeated."""
    summed = [i for i in range(len(shape)) if space[i] not in out]
    kept = [i for i in range(len(shape)) if i not in summed]
    lines = lines_of(shape, summed)
    each = joined(lines, int(np.prod([shape[i] for i in kept], dtype=np.int64)), p)
    row = np.arange(each.shape[0]).reshape([shape[i] for i in kept])
    places = [out.index(space[i]) for i in kept]
    target = [sizes[i] for i in out]
    rows = np.broadcast_to(_spread(row, places, len(out)), target)
    return each[rows.reshape(-1)]


def passed_on(node: Node, operands: Sequence[Pattern | None], values: KnownValues) -> Pattern:
    """Of ops whose result is their first operand."""
    x = operands[0]
    return everything(node, operands, values) if x is None else x
