"""Nodes as strided views of memory, and contractions as matrix products of such views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from retrograd.ir import Dim, Node, Shape, Trait, float32, float64, product
from retrograd.ops.matmul import DotGeneral, sums_along
from retrograd.ops.numerics.summation import PRODUCTS
from retrograd.ops.shape import Expand, Permute, Slice
from retrograd.ops.windows import Windows
from retrograd.passes.lowering.axis_groups import axis_groups
from retrograd.tuning import TUNING

# Up to where loops of a contraction's own, which read operands where they are, take less time than
# the routine, which first copies them; measured.
FEW = 7  # rows of the result, where rows of the matrix on the right are contiguous
FEW_STREAMED = 4  # rows of the result, where such a matrix is read along its columns, see `streams`
NEAR = 1 << 15  # bytes of such a matrix, which stays in the first-level cache
FAR = 1 << 21  # bytes of one that stays in no cache near by
FEW_FAR = 8  # rows of the result, where such a matrix is far away
FEW_TURNED = 11  # rows of the result, where they are not: loops read element by element
NEAR_TURNED = 1 << 16  # bytes of such a matrix
FEW_TURNED_FAR = 2  # rows of the result, where it is larger: many elements share a place in a cache
LITTLE = 1 << 12  # multiply-adds there
# Rows whose offsets are listed at once, and columns that need no room of their own.
SPREAD = 1 << 15
COLUMN_STEPS = (1, 2)  # between elements of a row of an image that are read where they lie
# Where all are 0, every contraction is by the routine that may be; where they are endless, none.
LIMITS = (
    "FEW", "FEW_FAR", "FEW_STREAMED", "NEAR", "FEW_TURNED", "FEW_TURNED_FAR", "NEAR_TURNED",
    "LITTLE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """Element `index` of the node is element `offset + sum(index * strides)` of `root`."""

    root: Node
    offset: int | Dim
    strides: Shape


def is_strided_view(node: Node) -> bool:
    """Whether the elements lie in memory where those of the operand do, at other strides, each
    once or all along an axis: windows overlap."""
    return Trait.STRIDED in node.prim.traits and not isinstance(node.prim, Windows)


def contiguous(shape: Shape) -> Shape:
    """The strides of an array in row-major order, in elements."""
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))


def view_of(node: Node, is_root: Callable[[Node], bool]) -> View | None:
    """The node as a view of the first root below it; None where its elements are not evenly
    spaced in memory."""
    chain = []
    while not is_root(node):
        if Trait.STRIDED not in node.prim.traits:
            return None
        chain.append(node)
        node = node.inputs[0]
    offset: int | Dim = 0
    strides = contiguous(node.shape)
    root = node
    for y in reversed(chain):
        x = y.inputs[0]
        if isinstance(y.prim, Permute):
            strides = tuple(strides[p] for p in y.attrs["perm"])
        elif isinstance(y.prim, Expand):
            rest, new = iter(strides), y.attrs["axes"]
            strides = tuple(0 if i in new else next(rest) for i in range(len(y.shape)))
        elif isinstance(y.prim, Slice):
            for start, stride in zip(y.attrs["starts"], strides, strict=True):
                offset = offset + start * stride
            strides = tuple(s * t for s, t in zip(strides, y.attrs["steps"], strict=True))
        elif isinstance(y.prim, Windows):
            last = strides[len(strides) - len(y.attrs["sizes"]) :]
            outs = [s * t for s, t in zip(last, y.attrs["strides"], strict=True)]
            inner = [s * t for s, t in zip(last, y.attrs["dilations"], strict=True)]
            strides = (*strides[: len(strides) - len(last)], *outs, *inner)
        else:
            reshaped = _reshaped(x.shape, strides, y.shape)
            if reshaped is None:
                return None
            strides = reshaped
    return View(root, offset, strides)


def _reshaped(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Strides after a reshape that needs no copy; None where it does."""
    found: list[int | Dim] = [0] * len(new)
    for outer, inner in axis_groups(new, shape):
        merged = merge([shape[i] for i in inner], [strides[i] for i in inner])
        if merged is None:
            return None
        for k, i in enumerate(outer):
            found[i] = merged[1] * product(new[j] for j in outer[k + 1 :])
    return tuple(found)


def merge(
    shape: Sequence[int | Dim], strides: Sequence[int | Dim]
) -> tuple[int | Dim, int | Dim] | None:
    """Several axes as one: its size and stride, or None where they are not evenly spaced."""
    size: int | Dim = 1
    stride: int | Dim = 1
    for d, s in reversed(list(zip(shape, strides, strict=True))):
        if d == 1:
            continue
        if size == 1:
            size, stride = d, s
        elif s == size * stride:
            size = size * d
        else:
            return None
    return size, stride


Axes = tuple[tuple[int, int], ...]  # sizes and strides


@dataclass(frozen=True, slots=True)
class Operand:
    """One matrix of a product: where it starts, its strides over batches, its leading size. Of one
    that is `spread`, the sizes and strides of the axes that make its rows, and its columns: a left
    one, or a right one whose columns are rows of an image."""

    view: View
    batch: Shape
    transposed: bool
    leading: int | Dim
    spread: tuple[Axes, Axes] | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """`y[batch] = a[batch] @ b[batch]`, row-major."""

    batch: Shape
    m: int | Dim
    n: int | Dim
    k: int | Dim
    a: Operand
    b: Operand


def wants_routine(node: Node) -> bool:
    """Whether the routine for matrix products is, for a contraction of these sizes, faster than
    loops of its own. Both give the same bits. A size that is not known counts as large."""
    if node.dtype not in (float32, float64) or sums_along(node):
        return False
    (a, b), prim = node.inputs, node.prim
    assert isinstance(prim, DotGeneral)
    a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
    summed = product(a.shape[i] for i in prim.a_contract)
    m, n = product(a.shape[i] for i in a_free), product(b.shape[j] for j in b_free)
    if slides(node):
        return True
    if n == 1:  # a vector times a matrix: nothing is read twice, so copying it pays nowhere
        return False
    size = summed * n * node.dtype.itemsize
    if not in_rows(node):
        few = FEW_TURNED if less(size, NEAR_TURNED) else FEW_TURNED_FAR
        return not (less(m, few) or less(m * summed * n, LITTLE))
    if isinstance(size, int) and size >= TUNING.streamed_bytes and less(summed, PRODUCTS.group + 1):
        return not less(m, FEW_STREAMED)
    # Sums of a length that is not known are mostly not so long that rows of them are far apart.
    near = less(size, FAR) or (isinstance(n, int) and isinstance(summed, Dim))
    return not (less(m, FEW + 1 if near else FEW_FAR) or less(size, NEAR))


def less(size: int | Dim, limit: int) -> bool:
    return isinstance(size, int) and size < limit


def in_rows(node: Node) -> bool:
    """Whether rows of the matrix on the right are contiguous in memory."""
    b, prim = node.inputs[1], node.prim
    assert isinstance(prim, DotGeneral)
    last = b.type.rank - 1
    if not b.shape or b.shape[-1] == 1 or last in (*prim.b_batch, *prim.b_contract):
        return False
    view = view_of(b, lambda x: not is_strided_view(x))
    return view is not None and view.strides[last] == 1


def as_product(node: Node, is_root: Callable[[Node], bool]) -> Product | None:
    """A contraction as a matrix product of views; None where an operand's layout forbids it. Sums
    are taken in the order in which the node lists its axes, as loops of its own would."""
    a, b = node.inputs
    prim = node.prim
    assert isinstance(prim, DotGeneral)
    a_view, b_view = view_of(a, is_root), view_of(b, is_root)
    if a_view is None or b_view is None:
        return None
    a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
    left = operand(a, a_view, prim.a_batch, a_free, prim.a_contract)
    right = operand(b, b_view, prim.b_batch, prim.b_contract, b_free)
    if left is None and right is not None and not right.transposed:
        left = spread_out(a, a_view, prim.a_batch, a_free, prim.a_contract, TUNING.listed_columns)
    elif left is not None and right is None and slides(node):
        right = spread_out(b, b_view, prim.b_batch, prim.b_contract, b_free)
    if left is None or right is None:
        return None
    return Product(
        tuple(a.shape[i] for i in prim.a_batch),
        product(a.shape[i] for i in a_free),
        product(b.shape[j] for j in b_free),
        product(a.shape[i] for i in prim.a_contract),
        left,
        right,
    )


def reads_windows(node: Node) -> bool:
    """Whether a contraction is a product whose left matrix can be windows that are not laid out in
    memory."""
    if not isinstance(_viewed(node.inputs[0]).prim, Windows) or not wants_routine(node):
        return False
    return as_product(node, _is_source) is not None


def slides(node: Node) -> bool:
    """Whether a contraction is a product whose right matrix can be windows that are not laid out in
    memory: its columns are vectors, each a part of a row of the image."""
    (a, b), prim = node.inputs, node.prim
    assert isinstance(prim, DotGeneral)
    if node.dtype not in (float32, float64) or not isinstance(_viewed(b).prim, Windows):
        return False
    a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
    view = view_of(b, _is_source)
    if view is None or not b_free or view.strides[b_free[-1]] not in COLUMN_STEPS:
        return False
    m, k = product(a.shape[i] for i in a_free), product(a.shape[i] for i in prim.a_contract)
    length = b.shape[b_free[-1]]
    if not all(isinstance(x, int) for x in (m, k, *(b.shape[j] for j in b_free))):
        return False
    if less(m, TUNING.windows_rows) or less(length, TUNING.windows_row):
        return False
    if not (0 < k <= PRODUCTS.group):
        return False
    return spread_out(b, view, prim.b_batch, prim.b_contract, b_free) is not None


def _viewed(x: Node) -> Node:
    """What a node is a view of, windows included."""
    while is_strided_view(x):
        (x,) = x.inputs
    return x


def _is_source(x: Node) -> bool:
    return Trait.STRIDED not in x.prim.traits


def reads_once(node: Node, position: int) -> bool:
    """Whether a contraction is by loops that read each element of an operand once: the other one
    is a vector."""
    other, prim = node.inputs[1 - position], node.prim
    assert isinstance(prim, DotGeneral)
    used = ((*prim.a_batch, *prim.a_contract), (*prim.b_batch, *prim.b_contract))[1 - position]
    free = prim.free(other.type.rank, used)
    return all(other.shape[i] == 1 for i in free) and not wants_routine(node)


def operand(
    x: Node, view: View, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Operand | None:
    """The matrix whose rows run over some axes and whose columns run over others."""
    r = merge([x.shape[i] for i in rows], [view.strides[i] for i in rows])
    c = merge([x.shape[i] for i in columns], [view.strides[i] for i in columns])
    if r is None or c is None or (r[0] != 1 and r[1] == 0) or (c[0] != 1 and c[1] == 0):
        return None
    across = tuple(view.strides[i] for i in batch)
    if c[1] == 1 or c[0] == 1:  # rows are contiguous
        if c[0] == 1 and r[1] == 1:
            return Operand(view, across, True, r[0])
        return Operand(view, across, False, c[0] if r[0] == 1 else r[1])
    if r[1] == 1 or r[0] == 1:
        return Operand(view, across, True, r[0] if c[0] == 1 else c[1])
    return None


def spread_out(
    x: Node, view: View, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int],
    most: int = SPREAD,
) -> Operand | None:  # fmt: skip
    """A matrix whose rows, or columns, are not evenly spaced, such as that of the windows of an
    image, or of the places of several: none where there are too many to list their offsets, or
    where nothing lies side by side, so that it had better be copied."""
    sizes, strides = x.shape, view.strides
    windows = any(isinstance(y.prim, Windows) for y in _below(x, view.root))
    if (
        not windows
        and _run([sizes[i] for i in columns], [strides[i] for i in columns]) < TUNING.listed_run
    ):
        return None
    found = []
    for axes in (rows, columns):
        numbers = []
        for i in axes:
            size, stride = sizes[i], strides[i]
            if isinstance(size, Dim) or isinstance(stride, Dim):
                return None
            numbers.append((size, stride))
        found.append(tuple(numbers))
    if product(n for n, _ in found[1]) > most:
        return None
    if sum((n - 1) * s for axes in found for n, s in axes) >= 1 << 31:
        return None
    across = tuple(strides[i] for i in batch)
    return Operand(view, across, False, 0, (found[0], found[1]))


def _run(sizes: Sequence[int | Dim], strides: Sequence[int | Dim]) -> int:
    """How many elements lie side by side along the last of some axes, as far as is known."""
    run = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if isinstance(size, Dim) or stride != run:
            break
        run *= size
    return run


def _below(x: Node, root: Node) -> Iterator[Node]:
    while x is not root:
        yield x
        (x,) = x.inputs
