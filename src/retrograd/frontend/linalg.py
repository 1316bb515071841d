"""Products of matrices and tensors."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from retrograd.errors import DTypeError, ShapeError
from retrograd.frontend.broadcasting import (
    as_node,
    broadcast_shapes,
    broadcast_to,
    keep_dims,
    listed_axes,
    normal_axes,
    normal_axis,
)
from retrograd.frontend.conversion import promote
from retrograd.frontend.elementwise import ArrayLike
from retrograd.frontend.function import function
from retrograd.frontend.manipulation import positions
from retrograd.frontend.reductions import root
from retrograd.ir import Node, bool_, float32, full
from retrograd.ops import elementwise as el
from retrograd.ops import reduce
from retrograd.ops.control import StopGradient
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import permute, reshape


def _operands(what: str, *values: ArrayLike) -> list[Node]:
    if not values:
        raise ShapeError(f"{what} needs at least one operand")
    nodes = [as_node(v) for v in values]
    dtype = nodes[0].dtype
    for n in nodes[1:]:
        dtype = promote(dtype, n.dtype)
    if dtype is bool_:
        raise DTypeError(f"{what} takes numbers, not booleans; cast them first")
    return [el.cast(n, dtype) for n in nodes]


@function
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Matrix product of the last two axes; leading axes are stacks and broadcast.

    A vector on the left is a row, on the right a column, and its axis is dropped from the result:
    `[..., n, k] @ [..., k, m] -> [..., n, m]`, `[k] @ [k, m] -> [m]`, `[n, k] @ [k] -> [n]`.
    """
    a, b = _operands("matmul", x1, x2)
    if a.type.rank == 0 or b.type.rank == 0:
        raise ShapeError(f"matmul takes vectors and matrices, not {a.type} and {b.type}; use *")
    k = a.shape[-1]
    if k != b.shape[-2 if b.type.rank > 1 else 0]:
        raise ShapeError(
            f"matmul of {a.type} and {b.type}: the last axis of the first has the size {k}, the "
            f"{'second to last' if b.type.rank > 1 else 'only'} axis of the second "
            f"{b.shape[-2 if b.type.rank > 1 else 0]}"
        )
    if b.type.rank <= 2:  # one matrix for every row of a
        return DotGeneral((a.type.rank - 1,), (max(b.type.rank - 2, 0),))(a, b)
    if a.type.rank == 1:
        y = matmul(reshape(a, (1, k)), b)
        return reshape(y, (*y.shape[:-2], y.shape[-1]))
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_to(n, (*lead, *n.shape[-2:])) for n in (a, b))
    batch = tuple(range(len(lead)))
    return DotGeneral((len(lead) + 1,), (len(lead),), batch, batch)(a, b)


@function
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2) -> Any:
    """Sum of products over axes: the last `axes` of x1 with the first of x2, or two lists."""
    a, b = _operands("tensordot", x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.type.rank, b.type.rank):
            raise ShapeError(f"tensordot over {axes} axes of {a.type} and {b.type}")
        left: Any = range(a.type.rank - axes, a.type.rank)
        right: Any = range(axes)
    elif isinstance(axes, tuple | list) and len(axes) == 2:
        left, right = axes
    else:
        raise ShapeError(f"tensordot's axes are a number or two lists of axes, not {axes!r}")
    i = listed_axes(left, a.type.rank, "tensordot")
    j = listed_axes(right, b.type.rank, "tensordot")
    if [a.shape[p] for p in i] != [b.shape[p] for p in j]:
        raise ShapeError(f"tensordot of {a.type} and {b.type}: axes {i} and {j} differ in size")
    return DotGeneral(i, j)(a, b)


@function
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Any:
    """Sum of products along one axis; the others broadcast."""
    a, b = _operands("vecdot", x1, x2)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    return reduce.ReduceSum((normal_axis(axis, len(shape), "vecdot"),))(a * b)


@function
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """All products of the elements of two vectors."""
    a, b = _operands("outer", x1, x2)
    if a.type.rank != 1 or b.type.rank != 1:
        raise ShapeError(f"outer takes vectors, not {a.type} and {b.type}")
    return DotGeneral((), ())(a, b)


@function
def vector_norm(
    x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: int | float = 2
) -> Any:
    """`sum(|x|**ord)**(1/ord)` over axes; the maximum of |x| for inf, the minimum for -inf.

    The Euclidean norm is scaled by the largest element, so squares neither overflow nor underflow,
    and the gradient at 0 is 0.
    """
    x = as_node(x)
    x = x if x.dtype.is_float else el.cast(x, float32)
    axes = normal_axes(axis, x.type.rank, "vector_norm")
    return keep_dims(_norm(el.abs(x), axes, ord), x.shape, axes, keepdims)


def _norm(size: Node, axes: tuple[int, ...], order: float) -> Node:
    if not axes:
        return size
    if order == float("inf"):
        return reduce.ReduceMax(axes)(size)
    if order == float("-inf"):
        return reduce.ReduceMin(axes)(size)
    if order == 0:
        return reduce.ReduceSum(axes)(el.cast(el.ne(size, full(0, size.type)), size.dtype))
    if order == 1:
        return reduce.ReduceSum(axes)(size)
    if order == 2:
        return euclidean(size, axes)
    powers = el.pow(size, full(order, size.type))
    total = reduce.ReduceSum(axes)(powers)
    exponent = full(1 / order, total.type)
    return el.pow(total, exponent) if order < 0 else root(lambda x: el.pow(x, exponent), total)


def euclidean(x: Node, axes: tuple[int, ...]) -> Node:
    """The Euclidean norm over axes, without overflow of squares."""
    if any(x.shape[a] == 0 for a in axes):
        return reduce.ReduceSum(axes)(x)
    # Dividing by the largest element changes nothing but the rounding, so it takes no part in the
    # gradient: the norm is homogeneous.
    top = StopGradient()(reduce.ReduceMax(axes)(el.abs(x)))
    usable = el.isfinite(top) & (top > 0)
    scale = el.select(usable, top, full(1, top.type))
    scaled = x / reduce.ReduceSum(axes).back(scale, x)
    return scale * root(el.sqrt, reduce.ReduceSum(axes)(scaled * scaled))


@function
def einsum(subscripts: str, /, *operands: ArrayLike) -> Any:
    """Einstein summation: `einsum("ij,jk->ik", a, b)`.

    Letters name axes; one that is missing behind `->` is summed over, one that repeats within an
    operand is its diagonal, `...` stands for axes that broadcast. Without `->` the result has the
    letters that occur once, in alphabetical order. Operands are contracted from left to right.
    """
    if not isinstance(subscripts, str):
        raise ShapeError(f'einsum takes subscripts such as "ij,jk->ik" first, not {subscripts!r}')
    nodes = _operands("einsum", *operands)
    terms, result = _parse(subscripts, nodes)
    nodes = [_diagonal(n, t) for n, t in zip(nodes, terms, strict=True)]
    terms = [_once(t) for t in terms]
    y, names = nodes[0], terms[0]
    for i in range(1, len(nodes)):
        needed = set(result).union(*terms[i + 1 :])
        y, names = _pair(y, names, nodes[i], terms[i], needed)
    gone = tuple(i for i, c in enumerate(names) if c not in result)
    y, names = reduce.reduce_sum(y, gone), [c for c in names if c in result]
    return permute(y, [names.index(c) for c in result])


def _parse(subscripts: str, nodes: Sequence[Node]) -> tuple[list[list[str]], list[str]]:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(nodes):
        raise ShapeError(f"einsum {subscripts!r} names {len(parts)} operands, not {len(nodes)}")
    if arrow and set(right.replace("...", "")) - set(left):
        raise ShapeError(f"einsum {subscripts!r}: the result names an axis no operand has")
    spread = [n.type.rank - len(p.replace("...", "")) for p, n in zip(parts, nodes, strict=True)]
    widest = max((s for p, s in zip(parts, spread, strict=True) if "..." in p), default=0)
    dots = [f"{i}" for i in range(widest)]
    terms = []
    for part, node, extra in zip(parts, nodes, spread, strict=True):
        if (extra != 0 and "..." not in part) or extra < 0:
            raise ShapeError(f"einsum {subscripts!r}: {part!r} does not fit {node.type}")
        terms.append(_letters(part, dots[widest - extra :], subscripts))
    sizes: dict[str, Any] = {}
    for term, node in zip(terms, nodes, strict=True):
        for c, d in zip(term, node.shape, strict=True):
            if sizes.setdefault(c, d) != d:
                raise ShapeError(f"einsum {subscripts!r}: axis {c!r} has the sizes {sizes[c]}, {d}")
    if arrow:
        result = _letters(right, dots, subscripts)
        if len(set(result)) < len(result):
            raise ShapeError(f"einsum {subscripts!r}: the result names an axis twice")
        return terms, result
    counts = [c for t in terms for c in t]
    return terms, dots + sorted(c for c in set(counts) - set(dots) if counts.count(c) == 1)


def _letters(part: str, dots: Sequence[str], subscripts: str) -> list[str]:
    before, found, after = part.partition("...")
    if any(c not in string.ascii_letters for c in before + after):
        raise ShapeError(f"einsum {subscripts!r}: axes are named by letters, not {part!r}")
    return [*before, *(dots if found else ()), *after]


def _once(term: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(term))


def _diagonal(x: Node, term: Sequence[str]) -> Node:
    """Repeated letters merged: sum of x times the indicator of equal positions."""
    for c in _once(term):
        axes = [i for i, d in enumerate(term) if d == c]
        for other in reversed(axes[1:]):
            i, j = positions(x.shape, axes[0]), positions(x.shape, other)
            x = reduce.ReduceSum((other,))(el.select(el.eq(i, j), x, full(0, x.type)))
            term = [d for k, d in enumerate(term) if k != other]
    return x


def _pair(
    a: Node, a_names: list[str], b: Node, b_names: list[str], needed: set[str]
) -> tuple[Node, list[str]]:
    """Contract two operands, keeping the axes somebody still needs."""
    a, a_names = _sum_out(a, a_names, needed.union(b_names))
    b, b_names = _sum_out(b, b_names, needed.union(a_names))
    shared = [c for c in a_names if c in b_names]
    batch = [c for c in shared if c in needed]
    summed = [c for c in shared if c not in needed]
    op = DotGeneral(
        tuple(a_names.index(c) for c in summed),
        tuple(b_names.index(c) for c in summed),
        tuple(a_names.index(c) for c in batch),
        tuple(b_names.index(c) for c in batch),
    )
    free = [c for c in a_names if c not in shared] + [c for c in b_names if c not in shared]
    return op(a, b), batch + free


def _sum_out(x: Node, names: list[str], keep: set[str]) -> tuple[Node, list[str]]:
    gone = tuple(i for i, c in enumerate(names) if c not in keep)
    return reduce.reduce_sum(x, gone), [c for c in names if c in keep]
