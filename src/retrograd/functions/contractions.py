"""Products of matrices and tensors."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import DTypeError, ShapeError
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast_shapes,
    broadcast_to,
    listed_axes,
    normal_axis,
    one_axis,
)
from retrograd.functions.manipulation import positions
from retrograd.ir import Dim, Node, Shape, bool_, evaluate, full
from retrograd.ops import elementwise as el
from retrograd.ops import reduce
from retrograd.ops.complex import conj
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Concat, expand, permute, reshape, slice_axis
from retrograd.tensor_type import Tensor

TYPICAL = 64  # what a size that is not known is taken for
EXACT = 5  # operands for which all orders of contraction are tried


def _operands(what: str, *values: ArrayLike) -> list[Node]:
    if not values:
        raise ShapeError(f"{what} needs at least one operand")
    nodes = alike(*values)
    if nodes[0].dtype is bool_:
        raise DTypeError(f"{what} takes numbers, not booleans; cast them first")
    return nodes


@op_function
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Matrix product of the last two axes; leading axes are stacks and broadcast.

    A vector on the left is a row, on the right a column, and its axis is dropped from the result:
    `[..., n, k] @ [..., k, m] -> [..., n, m]`, `[k] @ [k, m] -> [m]`, `[n, k] @ [k] -> [n]`.
    The error of an element is at most `(128 + log2(k)) * eps` times the sum of the magnitudes of
    its products, mostly a few eps; half precision is added up in float32.

    The dtypes are promoted. The vjp of a cotangent g is `g @ x2^H` and `x1^H @ g`. `ShapeError` for
    arrays without axes, where the inner sizes differ, and where the stacks do not broadcast.

    >>> import retrograd as rg
    >>> rg.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).tolist()
    [21.0, 43.0]
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
        y = as_node(matmul(reshape(a, (1, k)), b))
        return reshape(y, (*y.shape[:-2], y.shape[-1]))
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_to(n, (*lead, *n.shape[-2:])) for n in (a, b))
    batch = tuple(range(len(lead)))
    return DotGeneral((len(lead) + 1,), (len(lead),), batch, batch)(a, b)


@op_function
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: Any = 2, *, dims: Any = None) -> Any:
    """Sum of products over axes: the last `axes` of x1 with the first of x2, or two lists.

    `[..., *K] . [*K, ...]` gives the axes that remain of x1, then those of x2. `ShapeError` where
    the sizes of paired axes differ, `AxisError` for an axis that one does not have.

    >>> import retrograd as rg
    >>> rg.tensordot([[1.0, 2.0]], [[3.0], [4.0]], axes=1).tolist()
    [[11.0]]
    """
    a, b = _operands("tensordot", x1, x2)
    axes = one_axis(axes, dims, 2)
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


@op_function
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, dim: int | None = None) -> Any:
    """Sum of products along one axis, `sum(conj(x1) * x2)`; the others broadcast.

    Both have this axis, of the same size; it is best counted from the end, as a negative number: a
    positive one counts in the shape of both together. Of complex vectors the first is conjugated,
    so that `vecdot(x, x)` is `|x|**2`.

    `[..., n]` and `[..., n]` give `[...]`. `ShapeError` where the sizes differ or do not broadcast.

    >>> import retrograd as rg
    >>> rg.vecdot([1.0, 2.0], [3.0, 4.0]).item()
    11.0
    """
    a, b = _operands("vecdot", x1, x2)
    rank = max(a.type.rank, b.type.rank)
    axis = one_axis(axis, dim, -1)
    at = normal_axis(axis, rank, "vecdot")
    for n in (a, b):
        normal_axis(at - rank, n.type.rank, "vecdot")
    if a.shape[at - rank] != b.shape[at - rank]:
        raise ShapeError(
            f"vecdot of {a.type} and {b.type}: axis {axis}, along which products are summed, has "
            f"the sizes {a.shape[at - rank]} and {b.shape[at - rank]}; it is not broadcast"
        )
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast_to(conj(a), shape), broadcast_to(b, shape)
    return reduce.ReduceSum((at,))(a * b)


@op_function
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """All products of the elements of two vectors.

    `[n]` and `[m]` give `[n, m]`: `y[i, j] = x1[i] x2[j]`. `ShapeError` for anything but vectors.

    >>> import retrograd as rg
    >>> rg.outer([1.0, 2.0], [3.0, 4.0]).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    a, b = _operands("outer", x1, x2)
    if a.type.rank != 1 or b.type.rank != 1:
        raise ShapeError(f"outer takes vectors, not {a.type} and {b.type}")
    return DotGeneral((), ())(a, b)


@op_function
def kron(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The Kronecker product: x1 with each element replaced by that element times x2.

    Arrays of fewer axes get axes of size 1 in front; the sizes along each axis are multiplied.

    `[n, m]` and `[p, q]` give `[n p, m q]`. `DTypeError` for booleans and what is no array of
    numbers.

    >>> import retrograd as rg
    >>> rg.kron([1, 10], [1, 2]).tolist()
    [1, 2, 10, 20]
    """
    a, b = _operands("kron", x1, x2)
    rank = max(a.type.rank, b.type.rank)
    a, b = (reshape(n, (1,) * (rank - n.type.rank) + n.shape) for n in (a, b))
    mixed = [d for pair in zip(a.shape, b.shape, strict=True) for d in pair]
    wide_a = expand(a, tuple(mixed), tuple(range(1, 2 * rank, 2)))
    wide_b = expand(b, tuple(mixed), tuple(range(0, 2 * rank, 2)))
    return reshape(wide_a * wide_b, tuple(p * q for p, q in zip(a.shape, b.shape, strict=True)))


@op_function
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, dim: int | None = None) -> Any:
    """The cross product of vectors of three components along an axis; the others broadcast.

    `[..., 3]` and `[..., 3]` give `[..., 3]`; the other axes broadcast. `ShapeError` for another
    number of components, `AxisError` for an axis that they do not have.

    >>> import retrograd as rg
    >>> rg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).tolist()
    [0.0, 0.0, 1.0]
    """
    a, b = _operands("cross", x1, x2)
    shape, axis = broadcast_shapes(a.shape, b.shape), one_axis(axis, dim, -1)
    at = normal_axis(axis, len(shape), "cross")
    if any(n.shape[at - len(shape) :][:1] != (3,) for n in (a, b)):
        raise ShapeError(f"cross of {a.type} and {b.type}: axis {axis} must have 3 components")
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)

    def turned(x: Node, by: int) -> Node:
        parts = [slice_axis(x, at, i, i + 1) for i in range(3)]
        return Concat(at)(*parts[by:], *parts[:by])

    return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)


@op_function
def multi_dot(arrays: ArrayLike, /) -> Any:
    """The matrix product of several matrices, in the order that takes the fewest operations. The
    first may be a vector, a row, and the last one, a column.

    `[n, a], [a, b], ..., [y, z]` give `[n, z]`. `ShapeError` for other arrays, or sizes that do not
    fit.

    >>> import retrograd as rg
    >>> rg.linalg.multi_dot([rg.ones((2, 3)), rg.ones((3, 4)), rg.ones(4)]).tolist()
    [12.0, 12.0]
    """
    return chained(_operands("multi_dot", *arrays))


def chained(nodes: Sequence[Node]) -> Node:
    """`multi_dot` of nodes of one dtype."""
    ends = {0, len(nodes) - 1}
    for i, n in enumerate(nodes):
        if n.type.rank != 2 and not (n.type.rank == 1 and i in ends):
            raise ShapeError(f"multi_dot takes matrices, and vectors at its ends, not {n.type}")
    for a, b in itertools.pairwise(nodes):
        if a.shape[-1] != b.shape[0]:
            raise ShapeError(f"multi_dot of {a.type} and {b.type}: the sizes that meet differ")
    letters = iter(string.ascii_letters)
    left, terms = next(letters), []
    for i, n in enumerate(nodes):
        row, column = n.type.rank == 1 and i == 0, n.type.rank == 1 and i > 0
        right = left if column else next(letters)
        terms.append(right if row else left if column else left + right)
        left = right
    last = "" if nodes[-1].type.rank == 1 and len(nodes) > 1 else terms[-1][-1]
    first = "" if nodes[0].type.rank == 1 else terms[0][0]
    return as_node(einsum(f"{','.join(terms)}->{first}{last}", *nodes))


def einsum(subscripts: Any, /, *operands: Any) -> Tensor:
    """Einstein summation: `einsum("ij,jk->ik", a, b)`, or with numbers for letters and each operand
    before its list, `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Letters name axes; one that is missing behind `->` is summed over, one that repeats within an
    operand is its diagonal, `...` stands for axes that broadcast, and an axis of size 1 goes with
    one of any size. Without `->` the result has the letters that occur once, in alphabetical
    order. Of the orders in which the operands can be
    contracted, two at a time, one that takes few operations is chosen.

    Shapes follow from the letters; dtypes are promoted. `ShapeError` for subscripts that do not fit
    the operands, or sizes of one letter that differ and are not 1.

    >>> import retrograd as rg
    >>> rg.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]).tolist()
    [21.0, 43.0]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _with_letters((subscripts, *operands))
    return _einsum(subscripts, *operands)


def _with_letters(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands, of operands that are followed by lists of numbers."""
    names, arrays = given[1::2], given[: len(given) // 2 * 2 : 2]
    lists = (*names, given[-1]) if len(given) % 2 else names
    if not names or not all(isinstance(n, list | tuple) for n in lists):
        raise ShapeError(
            'einsum takes subscripts such as "ij,jk->ik" first, or operands that are each followed '
            f"by a list of numbers, not {given[0]!r:.80}"
        )
    terms = ",".join(map(_text, names))
    return (f"{terms}->{_text(given[-1])}" if len(given) % 2 else terms), arrays


def _text(names: Any) -> str:
    """Letters for a list of axes, in the order of their numbers."""
    letters = string.ascii_uppercase + string.ascii_lowercase
    found = ["..." if n is Ellipsis else n for n in names]
    if not all(n == "..." or (isinstance(n, int) and 0 <= n < len(letters)) for n in found):
        raise ShapeError(f"einsum: axes are numbers from 0 to {len(letters) - 1}, not {names!r}")
    return "".join(n if isinstance(n, str) else letters[n] for n in found)


@op_function
def _einsum(subscripts: str, /, *operands: ArrayLike) -> Any:
    nodes = _operands("einsum", *operands)
    terms, result = _parse(subscripts, nodes)
    nodes, terms = _without_broadcast(subscripts, nodes, terms)
    nodes = [_diagonal(n, t) for n, t in zip(nodes, terms, strict=True)]
    terms = [_once(t) for t in terms]
    left = list(zip(nodes, terms, strict=True))
    for step in contraction_order([n.shape for n in nodes], terms, result):
        (y, names), *others = [left[i] for i in step]
        left = [x for i, x in enumerate(left) if i not in step]
        for k, (b, b_names) in enumerate(others):
            needed = set(result).union(*(t for _, t in left), *(t for _, t in others[k + 1 :]))
            y, names = _pair(y, names, b, b_names, needed)
        left.append((y, names))
    ((y, names),) = left
    gone = tuple(i for i, c in enumerate(names) if c not in result)
    y, names = reduce.reduce_sum(y, gone), [c for c in names if c in result]
    return permute(y, [names.index(c) for c in result])


def contraction_order(
    shapes: Sequence[Shape], terms: Sequence[Sequence[str]], result: Sequence[str]
) -> list[tuple[int, ...]]:
    """Which operands to contract, step by step: their positions among those left, to which the
    result of a step is appended. NumPy finds the best order of a few, and a good one of many."""
    if len(shapes) < 3:
        return [tuple(range(len(shapes)))]
    numbers = {c: i for i, c in enumerate(dict.fromkeys(c for t in terms for c in t))}
    operands: list[Any] = []
    for shape, term in zip(shapes, terms, strict=True):
        sizes = [max(evaluate(d, dict.fromkeys(_names(d), TYPICAL)), 1) for d in shape]
        operands += [np.broadcast_to(np.float64(0), sizes), [numbers[c] for c in term]]
    how = "optimal" if len(shapes) <= EXACT else "greedy"
    path, _ = np.einsum_path(*operands, [numbers[c] for c in result], optimize=how)
    return path[1:]


def _names(size: int | Dim) -> Iterable[str]:
    return size.names if isinstance(size, Dim) else ()


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
    if arrow:
        result = _letters(right, dots, subscripts)
        if len(set(result)) < len(result):
            raise ShapeError(f"einsum {subscripts!r}: the result names an axis twice")
        return terms, result
    counts = [c for t in terms for c in t]
    return terms, dots + sorted(c for c in set(counts) - set(dots) if counts.count(c) == 1)


def _without_broadcast(
    subscripts: str, nodes: Sequence[Node], terms: Sequence[list[str]]
) -> tuple[list[Node], list[list[str]]]:
    """Operands without the axes of size 1 that are longer in others: the operand is the same all
    along such an axis, as one that does not name it."""
    sizes: dict[str, Any] = {}
    for term, node in zip(terms, nodes, strict=True):
        for c, d in zip(term, node.shape, strict=True):
            known = sizes.get(c, 1)
            if 1 not in (known, d) and known != d:
                raise ShapeError(f"einsum {subscripts!r}: axis {c!r} has the sizes {known}, {d}")
            sizes[c] = d if known == 1 else known
    found, names = [], []
    for term, node in zip(terms, nodes, strict=True):
        own = [d != 1 or sizes[c] == 1 for c, d in zip(term, node.shape, strict=True)]
        kept = tuple([d for d, stays in zip(node.shape, own, strict=True) if stays])
        found.append(node if all(own) else reshape(node, kept))
        names.append([c for c, stays in zip(term, own, strict=True) if stays])
    return found, names


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
