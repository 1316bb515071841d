"""Convolutions as matrix products.

Forms, of which the cheapest for the sizes at hand is taken:

- *gathered*: the windows of x are multiplied by the weight. Where sizes are known and rows of the
  result not very short, they are read where x is, a panel at a time. Where many kernels lie side by
  side, they are read there too, element by element: the result has kernels last, and is turned.
  Otherwise they are laid out in memory (im2col), as `[n, c k, p]`, rows of the result side by side,
  in blocks that stay in the cache; or where the kernel is larger than the result, as in the
  gradient of a weight, `[n p, c k]`. Windows of one element, or one window alone, are x itself.
- *spread*: the weight is multiplied by x, and the products are added up where they belong (col2im).
  That is less work where x has fewer places than the result, as in the gradient of x.
- *unrolled*: with one channel in each group, a sum of slices, each times its weight, or, where
  elements of x lie apart, of x times each weight, added up where it belongs; and *correlated*, the
  gradient of that by the weight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograd.ir import Dim, DType, Node, Shape, float32, float64, product
from retrograd.ops.conv import Conv, has_more_places
from retrograd.ops.elementwise import cast
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Permute, Reshape, Slice, expand, flip, inverse, permute, reshape
from retrograd.ops.windows import span
from retrograd.passes.lowering.axis_groups import reshape_root
from retrograd.passes.lowering.contraction import Materialize, in_memory
from retrograd.passes.lowering.overlap_add import added, folded, unrolls
from retrograd.passes.lowering.rules import lowers
from retrograd.passes.lowering.strided_views import (
    as_product,
    less,
    reads_windows,
    slides,
    wants_routine,
)
from retrograd.passes.lowering.windows import (
    UNROLLED,
    framed,
    kept,
    places,
    reordered,
    typed,
    windows_over,
)
from retrograd.passes.movement import flip_of_flip
from retrograd.tuning import TUNING

NEAR = 1 << 19  # bytes of a matrix that stays in the cache while it is multiplied
LEAST_BLOCK = 64  # places of a block: enough for some vectors
LEAST_VECTOR = 16  # kernels side by side that make a vector
LEAST_COLUMNS = 32  # kernels side by side that fill the tiles of a product
TURNED = 2  # times as long as to lay out a number of a window does it take to turn one
LEAST_SUM = 1024  # products in a sum that pay for turning the result


@lowers(Conv)
def convolution(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """A convolution in the form that suits its sizes."""
    op, (x, w) = node.prim, inputs
    assert isinstance(op, Conv)
    if _unrolls(op, w.shape):
        apart = all(s == 1 for s in op.strides) and any(gap > 1 for gap in op.x_dilation)
        form = unrolled_spread if apart and unrolls(w.shape[2:], op.x_dilation) else unrolled
        return form(op, x, w, node.shape)
    if x.shape[0] == 1 and _few(node.shape[2:]) and _narrow(op, w.shape):
        return correlated(op, x, w, node.shape)
    if has_more_places(x.shape[2:], node.shape[2:]) and all(s == 1 for s in op.strides):
        return spread(op, x, w, node.shape, known)
    return gathered(op, x, w, node.shape, known)


def _unrolls(op: Conv, w: Shape) -> bool:
    return _few(w[2:]) and w[1] == 1 and _narrow(op, w)


def _narrow(op: Conv, w: Shape) -> bool:
    """Whether there are groups, with too few kernels in each for a product of matrices."""
    return op.groups != 1 and op.per_group(w[0]) in (1, 2)


def _few(sizes: Shape) -> bool:
    size = product(sizes)
    return isinstance(size, int) and size <= UNROLLED


def multiplied(dot: Callable[[Node, Node], Node], a: Node, b: Node) -> Node:
    """A contraction whose operands are copied where they could not be read."""
    for left in (a, Materialize()(a)):
        for right in (b, Materialize()(b)):
            y = dot(left, right)
            if not wants_routine(y) or as_product(y, in_memory) is not None:
                return y
    return y


# -- windows of x by the weight --------------------------------------------------------------------
def gathered(op: Conv, x: Node, w: Node, shape: Shape, known: dict[Any, Node]) -> Node:
    """Lay out the windows of x, multiply by the weight."""
    wide = framed(x, op.low, op.high, op.x_dilation)
    source = kept(x, known) if wide is x else Materialize()(wide)
    kernel, places = w.shape[2:], shape[2:]
    windows = windows_over(source, kernel, op.strides, op.w_dilation)
    plain = isinstance(windows.prim, Reshape)
    if plain:  # nothing to lay out
        windows = windows_over(wide, kernel, op.strides, op.w_dilation)
    blocks = op.groups, op.per_group(w.shape[0]), w.shape[1]
    rows = _larger(kernel, places)
    y = (_by_rows if rows else _by_samples)(windows, plain, w, blocks, op.rank)
    return reshape(y, shape)


def _larger(kernel: Shape, places: Shape) -> bool:
    """Whether the kernel has more elements than the result has places, as far as is known."""
    k, p = product(kernel), product(places)
    return k > p if isinstance(k, int) and isinstance(p, int) else isinstance(k, Dim)


Blocks = tuple["int | Dim", "int | Dim", "int | Dim"]  # groups, and in each: kernels, channels


def merged(x: Node, sizes: Sequence[int]) -> Node:
    """x with runs of as many axes as `sizes` says made one each. Where x is a permutation that
    keeps the runs together, they are merged below it: memory is read as it lies."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    runs = [tuple(range(at, at + n)) for at, n in zip(starts, sizes, strict=True)]
    if isinstance(x.prim, Permute):
        perm = x.attrs["perm"]
        below = [tuple(perm[i] for i in run) for run in runs]
        if all(b == tuple(range(b[0], b[0] + len(b))) for b in below):
            order = sorted(range(len(runs)), key=lambda i: below[i])
            base = merged(x.inputs[0], [sizes[i] for i in order])
            return permute(base, inverse(order))
    return reshape(x, tuple(product(x.shape[i] for i in run) for run in runs))


def split(x: Node, axis: int, blocks: tuple[int | Dim, int | Dim]) -> Node:
    """Channels as groups and channels of a group; of one group, x itself."""
    if blocks[0] == 1:
        return x
    return reshape(x, (*x.shape[:axis], *blocks, *x.shape[axis + 1 :]))


def _by_samples(windows: Node, plain: bool, w: Node, blocks: Blocks, rank: int) -> Node:
    """`y[n, g, o, p] = w[g, o, c k] windows[n, g, c k, p]`: a product for each sample and group,
    and each block of the places p if all of them would not stay in the cache."""
    groups, kernels, channels = blocks
    there = None if plain else _where_x_is(windows, w, blocks, rank)
    if there is not None:
        return there
    turned = _by_places(windows, w, rank) if groups == 1 and not plain else None
    if turned is not None:
        return turned
    n, _, *places = windows.shape[: 2 + rank]
    kernel = () if plain else w.shape[2:]
    parts = _blocks(product(w.shape[1:]), tuple(places), w.dtype)
    lead = 1 if groups == 1 else 2  # [n, g], then c, block, *p, *k
    own = (groups, channels)[2 - lead :]
    axes = (n, *own, parts, _quotient(places[0], parts), *places[1:], *kernel)
    first, inner = lead + 2, range(lead + 2 + rank, len(axes))
    columns = permute(
        reshape(windows, axes),
        (0, lead + 1, *range(1, lead + 1), *inner, *range(first, first + rank)),
    )
    if not plain:
        columns = Materialize()(columns)
    columns = merged(columns, (*(1,) * (lead + 1), 1 + len(kernel), rank))
    matrix = merged(split(w, 0, (groups, kernels)), (*(1,) * lead, 1 + rank))
    y = _each_sample(matrix, columns, 2)  # [n, block, g, o, p]
    if parts != 1:
        y = permute(y, (0, *range(2, lead + 2), 1, lead + 2))
    return reshape(y, (n, w.shape[0], *places))


def _where_x_is(windows: Node, w: Node, blocks: Blocks, rank: int) -> Node | None:
    """The same with windows that are read where x lies, where sizes are known: a product for each
    sample, or one for all, if a sample has few places."""
    groups, kernels, channels = blocks
    n, _, *places = windows.shape[: 2 + rank]
    kernel = w.shape[2:]
    if groups == 1 and less(product(places), TUNING.windows_columns):
        inner = (1, *range(2 + rank, 2 + 2 * rank))
        columns = permute(windows, (*inner, 0, *range(2, 2 + rank)))
        y = DotGeneral(tuple(range(1, 2 + rank)), tuple(range(1 + rank)))(w, columns)  # [o, n, *p]
        return permute(y, (1, 0, *range(2, 2 + rank))) if slides(y) else None
    lead = 0 if groups == 1 else 1
    own = (groups, channels)[1 - lead :]
    columns = reshape(windows, (n, *own, *places, *kernel)) if lead else windows
    first = 2 + lead  # of the places
    inner = (lead + 1, *range(first + rank, first + 2 * rank))
    columns = permute(columns, (*range(lead + 1), *inner, *range(first, first + rank)))
    matrix = split(w, 0, (groups, kernels))
    matrix = expand(matrix, (n, *matrix.shape), (0,))
    batch = tuple(range(lead + 1))
    a = tuple(range(lead + 2, lead + 3 + rank))
    b = tuple(range(lead + 1, lead + 2 + rank))
    y = DotGeneral(a, b, batch, batch)(matrix, columns)  # [n, g, o, *p]
    return reshape(y, (n, w.shape[0], *places)) if slides(y) else None


def _quotient(size: int | Dim, parts: int) -> int | Dim:
    return size if parts == 1 else size // parts


def _blocks(height: int | Dim, places: Shape, dtype: DType) -> int:
    """Into how many blocks of rows to divide the places, so that the windows of one stay in the
    cache; 1 where that is not possible or not known."""
    size = product(places)
    rows = places[0]
    if not (isinstance(height, int) and isinstance(size, int) and isinstance(rows, int)):
        return 1
    for parts in range(1, rows + 1):
        if rows % parts == 0 and height * (size // parts) * dtype.itemsize <= NEAR:
            return parts if size // parts >= LEAST_BLOCK and dtype.is_float else 1
    return 1


def _each_sample(matrix: Node, columns: Node, samples: int = 1) -> Node:
    """`y[n, g, i, j] = matrix[g, i, k] columns[n, g, k, j]`, with or without axes g, and with as
    many axes n as there are `samples`."""
    last, n = columns.type.rank - 2, columns.shape[:samples]
    batch = tuple(range(last))

    def dot(left: Node, right: Node) -> Node:
        each = expand(left, (*n, *left.shape), tuple(range(samples)))
        return DotGeneral((last + 1,), (last,), batch, batch)(each, right)

    return multiplied(dot, matrix, columns)


def _by_rows(windows: Node, plain: bool, w: Node, blocks: Blocks, rank: int) -> Node:
    """`y[g, o, n, p] = w[g, o, c k] windows[n, p, g, c k]`, then samples in front."""
    groups, kernels, channels = blocks
    rows = permute(windows, (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank)))
    if _turns(w, kernels):
        turned = _turned_rows(rows, plain, w, rank) if groups == 1 else None
        if groups != 1 and not plain:
            turned = _turned_groups(windows, w, blocks, rank)
        if turned is not None:
            return turned
    if not plain:
        rows = Materialize()(rows)
    rows = split(rows, 1 + rank, (groups, channels))
    matrix = split(w, 0, (groups, kernels))
    lead = 0 if groups == 1 else 1
    a = tuple(range(lead + 1, matrix.type.rank))
    b = tuple(range(1 + rank + lead, rows.type.rank))
    batch = ((), ()) if groups == 1 else ((0,), (1 + rank,))
    y = multiplied(DotGeneral(a, b, *batch), matrix, rows)  # [g, o, n, *p]
    return permute(y, (lead + 1, *range(lead + 1), *range(lead + 2, y.type.rank)))


def _turns(w: Node, kernels: int | Dim) -> bool:
    """Whether sums are so long, and kernels of a group so many, that it pays to have these side by
    side in the result, and to turn that; as far as is known."""
    summed = product(w.shape[1:])
    if not (isinstance(kernels, int) and isinstance(summed, int)):
        return False
    if kernels < LEAST_VECTOR or w.dtype not in (float32, float64):
        return False
    return max(LEAST_SUM, kernels) <= summed <= TUNING.listed_columns


def _turned_rows(rows: Node, plain: bool, w: Node, rank: int) -> Node:
    """`y[n, p, o] = rows[n, p, c k] w[c k, o]`, then o in front of p. With o in vectors nothing of
    the rows need lie side by side."""
    n, *places = rows.shape[: 1 + rank]
    right = _columns(w)
    a, b = tuple(range(1 + rank, rows.type.rank)), tuple(range(right.type.rank - 1))
    y = DotGeneral(a, b)(rows, right)  # [n, *p, o]
    if plain or not reads_windows(y):  # both lie in memory
        left = rows if plain else Materialize()(rows)
        count = product((n, *places))
        left = reshape(left, (count, *left.shape[1 + rank :]))
        few = isinstance(count, int) and isinstance(w.shape[0], int) and count < w.shape[0]
        if plain and few and not less(count, LEAST_VECTOR):
            # To turn the places is less work than to turn the kernels.
            y = multiplied(DotGeneral(tuple(range(1, w.type.rank)), b), w, _columns(left))
            return permute(reshape(y, (w.shape[0], n, *places)), (1, 0, *range(2, 2 + rank)))
        y = multiplied(DotGeneral(tuple(range(1, left.type.rank)), b), left, right)
    y = reshape(y, (n, *places, w.shape[0]))
    return permute(y, (0, 1 + rank, *range(1, 1 + rank)))


def _turned_groups(windows: Node, w: Node, blocks: Blocks, rank: int) -> Node | None:
    """The same of several groups: `y[g, n, p, o] = windows[g, n, p, c k] w[g, c k, o]`, unless the
    windows would have to be laid out in memory."""
    groups, kernels, channels = blocks
    n, _, *places = windows.shape[: 2 + rank]
    apart = reshape(windows, (n, groups, channels, *windows.shape[2:]))
    rows = permute(apart, (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)))
    right = permute(split(w, 0, (groups, kernels)), (0, *range(2, 3 + rank), 1))
    a, b = tuple(range(2 + rank, 3 + 2 * rank)), tuple(range(1, 2 + rank))
    y = DotGeneral(a, b, (0,), (0,))(rows, Materialize()(right))  # [g, n, *p, o]
    if not reads_windows(y):
        return None
    y = permute(y, (1, 0, 2 + rank, *range(2, 2 + rank)))
    return reshape(y, (n, w.shape[0], *places))


def _columns(w: Node) -> Node:
    """The weight as `[c, *k, o]`, in memory."""
    return Materialize()(permute(w, (*range(1, w.type.rank), 0)))


def _by_places(windows: Node, w: Node, rank: int) -> Node | None:
    """`y[n, p, o] = windows[n, p, c k] w[c k, o]`, then o in front of p: windows are read where x
    lies, and the result is turned instead. None where that does not pay, or cannot be."""
    kernels, size = w.shape[0], product(w.shape[1:])
    count = product((windows.shape[0], *windows.shape[2 : 2 + rank]))
    if not (isinstance(kernels, int) and isinstance(size, int) and isinstance(count, int)):
        return None
    if kernels < LEAST_COLUMNS or count * size < TURNED * kernels * (count + size):
        return None
    axes = (1, *range(2 + rank, 2 + 2 * rank))
    rows = permute(windows, (0, *range(2, 2 + rank), *axes))
    left, right = tuple(range(1 + rank, 2 + 2 * rank)), tuple(range(1 + rank))
    y = DotGeneral(left, right)(rows, _columns(w))
    return permute(y, (0, 1 + rank, *range(1, 1 + rank))) if reads_windows(y) else None


# -- x by the weight, spread -----------------------------------------------------------------------
def spread(op: Conv, x: Node, w: Node, shape: Shape, known: dict[Any, Node]) -> Node:
    """Multiply x by the weight, add the products up where they belong.

    With strides of 1, element s of x comes to place `s * x_dilation + k * w_dilation` less the
    reach of the kernel that is not padded, k counting the flipped kernel.
    """
    kernel, places = w.shape[2:], x.shape[2:]
    groups, own, channels = op.groups, op.per_group(w.shape[0]), w.shape[1]
    spatial = tuple(range(2, 2 + op.rank))
    if any(k != 1 for k in kernel):
        flipped = flip(w, spatial)
        w = flip_of_flip(flipped, w) or flipped
    lead = 0 if groups == 1 else 1
    matrix = split(reordered(w, (0, *spatial, 1)), 0, (groups, own))
    matrix = merged(matrix, (*(1,) * lead, 1 + op.rank, 1))
    columns = merged(split(x, 1, (groups, channels)), (*(1,) * lead, 1, 1, op.rank))
    z = _each_sample(matrix, columns)
    spans, sizes = _reach(op, kernel, places)
    if unrolls(kernel, op.x_dilation):
        size = math.prod(_numbers(kernel))
        parts = [_part(z, k, size, (x.shape[0], w.shape[0], *places)) for k in range(size)]
        y = added(parts, kernel, sizes, op.x_dilation, op.w_dilation)
    else:
        y = reshape(z, (x.shape[0], w.shape[0], *kernel, *places))
        y = permute(y, (0, 1, *(a + op.rank for a in spatial), *spatial))
        y = folded(y, sizes, op.x_dilation, op.w_dilation, known)
    return _cut(op, y, shape, spans, sizes)


def _reach(op: Conv, kernel: Shape, places: Shape) -> tuple[Shape, Shape]:
    """How far a kernel reaches, and all kernels together that begin at places of x."""
    spans = tuple(span(k, gap) for k, gap in zip(kernel, op.w_dilation, strict=True))
    sizes = (span(d, gap) + s - 1 for d, gap, s in zip(places, op.x_dilation, spans, strict=True))
    return spans, tuple(sizes)


def _cut(op: Conv, y: Node, shape: Shape, spans: Shape, sizes: Shape) -> Node:
    """What the padding leaves of the products that were added up."""
    low = tuple(a - s + 1 for a, s in zip(op.low, spans, strict=True))
    high = tuple(d - a - s for d, a, s in zip(shape[2:], low, sizes, strict=True))
    return framed(y, low, high, (1,) * op.rank)


def _part(z: Node, k: int, size: int, shape: Shape) -> Node:
    """What place k of the kernel contributes: every `size`th row of each product."""
    axis = z.type.rank - 2
    first = 0 if z.shape[axis] == 0 else k  # of no rows, a slice begins with the axis
    starts = tuple(first if i == axis else 0 for i in range(z.type.rank))
    steps = tuple(size if i == axis else 1 for i in range(z.type.rank))
    sizes = tuple(d // size if i == axis else d for i, d in enumerate(z.shape))
    rows = typed(Slice(starts, z.shape, steps), (z,), z.type.with_shape(sizes))
    return reshape(rows, shape)


# -- one channel in each group ---------------------------------------------------------------------
def unrolled(op: Conv, x: Node, w: Node, shape: Shape) -> Node:
    """The sum over the places of the kernel, each a slice of x times its weights."""
    wide = accumulator_of(x.dtype)
    groups, own = op.groups, op.per_group(w.shape[0])
    domain = (shape[0], groups, own, *shape[2:])
    others = (0, *range(3, len(domain)))
    total = None
    weights = _elements(w)
    for part in _slices(op, x, w.shape[2:], shape[2:]):
        weight = expand(reshape(next(weights), (groups, own)), domain, others)
        term = cast(expand(part, domain, (2,)), wide) * cast(weight, wide)
        total = term if total is None else total + term
    assert total is not None
    return reshape(cast(total, x.dtype), shape)


def _slices(op: Conv, x: Node, kernel: Shape, outs: Shape) -> Iterator[Node]:
    """For each place of the kernel what all windows have there. Where windows are `s` apart, x is
    first laid out as s parts of every `s`th element, in which that lies side by side."""
    sizes = _numbers(kernel)
    if all(s == 1 for s in op.strides) or math.prod(sizes) < 2 * math.prod(op.strides):
        source = framed(x, op.low, op.high, op.x_dilation)
        if source is not x:
            source = Materialize()(source)
        yield from places(source, sizes, op.strides, op.w_dilation, outs)
        return
    spans, axes = _reach(op, kernel, outs)[0], range(2, 2 + op.rank)
    lengths = [p + (k - 1) // s for p, k, s in zip(outs, spans, op.strides, strict=True)]
    needed = [n * s for n, s in zip(lengths, op.strides, strict=True)]
    high = [b + n - d for b, n, d in zip(op.high, needed, op.full(x.shape), strict=True)]
    source = framed(x, op.low, tuple(high), op.x_dilation)
    pairs = [d for pair in zip(lengths, op.strides, strict=True) for d in pair]
    source = reshape(source, (*x.shape[:2], *pairs))
    order = (0, 1, *(2 * a - 1 for a in axes), *(2 * a - 2 for a in axes))
    source = Materialize()(permute(source, order))  # [n, c, *s, *lengths]
    for place in itertools.product(*(range(k) for k in sizes)):
        moves = [
            divmod(i * gap, s) for i, gap, s in zip(place, op.w_dilation, op.strides, strict=True)
        ]
        starts = (0, 0, *(r for _, r in moves), *(first for first, _ in moves))
        stops: list[int | Dim] = [r + 1 for _, r in moves]
        stops += [first + p for (first, _), p in zip(moves, outs, strict=True)]
        part = Slice(starts, (*x.shape[:2], *stops), (1,) * len(starts))
        ones = (1,) * op.rank
        y = typed(part, (source,), source.type.with_shape((*x.shape[:2], *ones, *outs)))
        yield reshape(y, (*x.shape[:2], *outs))


def unrolled_spread(op: Conv, x: Node, w: Node, shape: Shape) -> Node:
    """The same where elements of x lie apart, as in the gradient of every second place: each place
    of the kernel, flipped, times x, added up where it belongs."""
    wide, places = accumulator_of(x.dtype), x.shape[2:]
    groups, own, kernel = op.groups, op.per_group(w.shape[0]), w.shape[2:]
    domain = (shape[0], groups, own, *places)
    others = (0, *range(3, len(domain)))
    source = cast(expand(x, domain, (2,)), wide)
    parts = []
    for element in reversed(list(_elements(w))):
        weight = cast(expand(reshape(element, (groups, own)), domain, others), wide)
        parts.append(reshape(source * weight, (shape[0], w.shape[0], *places)))
    spans, sizes = _reach(op, kernel, places)
    y = added(parts, kernel, sizes, op.x_dilation, op.w_dilation)
    return _cut(op, cast(y, x.dtype), shape, spans, sizes)


def correlated(op: Conv, x: Node, w: Node, shape: Shape) -> Node:
    """One sample, few places and many groups, as in the gradient of the weight of such a
    convolution: for each group and place a sum over channels and kernel, read where they are."""
    groups, own, channels = op.groups, op.per_group(w.shape[0]), w.shape[1]
    kernel, places, rank = w.shape[2:], shape[2:], op.rank
    given = reshape(reshape_root(x, ()), (groups, channels, *x.shape[2:]))
    source = Materialize()(framed(given, op.low, op.high, op.x_dilation))
    windows = windows_over(source, kernel, op.strides, op.w_dilation)  # [g, c, *p, *k]
    windows = permute(windows, (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank)))
    domain = (groups, own, *places, channels, *kernel)
    windows = reshape(windows, domain) if own == 1 else expand(windows, domain, (1,))
    weight = expand(split(w, 0, (groups, own)), domain, tuple(range(2, 2 + rank)))
    wide = accumulator_of(x.dtype)
    terms = cast(windows, wide) * cast(weight, wide)
    total = ReduceSum(tuple(range(2 + rank, len(domain))))(terms)
    return reshape(cast(total, x.dtype), shape)


def _numbers(sizes: Shape) -> list[int]:
    return [k for k in sizes if isinstance(k, int)]


def _elements(w: Node) -> Iterator[Node]:
    """`w[:, 0, k]` for each k in row-major order."""
    size = math.prod(_numbers(w.shape[2:]))
    flat = reshape(w, (w.shape[0], size))
    for k in range(size):
        yield Slice((0, k), (w.shape[0], k + 1), (1, 1))(flat)
