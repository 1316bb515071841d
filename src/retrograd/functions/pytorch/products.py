"""Products of vectors and matrices, and linear algebra, under PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import contractions
from retrograd.functions import elementwise as functions
from retrograd.functions.broadcasting import alike, as_node, broadcast_to
from retrograd.functions.linalg import (
    decompositions,
    determinants,
    linear_systems,
    norms,
    tensor_equations,
)
from retrograd.functions.pytorch.arithmetic import scaled
from retrograd.functions.reductions import sum as total
from retrograd.ir import Node, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import Iota

inverse, pinverse, matrix_exp = linear_systems.inv, linear_systems.pinv, linear_systems.expm
det, slogdet, matrix_power, block_diag = (
    determinants.det, determinants.slogdet, linear_systems.matrix_power, tensor_equations.block_diag
)  # fmt: skip
ger = contractions.outer


def _of_ranks(what: str, a: Any, b: Any, ranks: tuple[int, int]) -> tuple[Node, Node]:
    x, y = as_node(a), as_node(b)
    if (x.type.rank, y.type.rank) != ranks:
        raise ShapeError(f"{what} takes arrays of {ranks[0]} and {ranks[1]} axes, not {x.shape} "
                         f"and {y.shape}; see matmul")  # fmt: skip
    return x, y


@op_function
def mm(x: ArrayLike, mat2: ArrayLike, /) -> Any:
    """The product of two matrices: `matmul`.

    `[m, k]` and `[k, n]` give `[m, n]`. `ShapeError` for anything else.

    >>> import retrograd as rg
    >>> rg.mm(rg.ones((2, 3)), rg.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    return contractions.matmul(*_of_ranks("mm", x, mat2, (2, 2)))


@op_function
def bmm(x: ArrayLike, mat2: ArrayLike, /) -> Any:
    """The products of two stacks of matrices: `matmul`.

    `[b, m, k]` and `[b, k, n]` give `[b, m, n]`. `ShapeError` for anything else.

    >>> import retrograd as rg
    >>> rg.bmm(rg.ones((2, 1, 3)), rg.ones((2, 3, 1))).tolist()
    [[[3.0]], [[3.0]]]
    """
    a, b = _of_ranks("bmm", x, mat2, (3, 3))
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm of {a.shape} and {b.shape}: {a.shape[0]} and {b.shape[0]} matrices")
    return contractions.matmul(a, b)


@op_function
def mv(x: ArrayLike, vec: ArrayLike, /) -> Any:
    """The product of a matrix and a vector: `matmul`.

    `[m, n]` and `[n]` give `[m]`. `ShapeError` for anything else.

    >>> import retrograd as rg
    >>> rg.mv(rg.ones((2, 3)), rg.ones(3)).tolist()
    [3.0, 3.0]
    """
    return contractions.matmul(*_of_ranks("mv", x, vec, (2, 1)))


@op_function
def dot(x: ArrayLike, tensor: ArrayLike, /) -> Any:
    """The sum of the products of two vectors, none conjugated: `x.dot(y)`.

    `[n]` and `[n]` give `[]`. Of more axes it is NumPy's function, the sum over the last axis of x
    and the last but one of the other: `[m, k]` and `[k, n]` give `[m, n]`, `[m, k]` and `[k]` give
    `[m]`. Numbers multiply. `ShapeError` where the sizes differ.

    >>> import retrograd as rg
    >>> rg.tensor([1.0, 2.0]).dot(rg.tensor([3.0, 4.0])).item()
    11.0
    """
    a, b = as_node(x), as_node(tensor)
    if not a.type.rank or not b.type.rank:
        return functions.multiply(a, b)
    axes = [a.type.rank - 1], [max(b.type.rank - 2, 0)]
    return contractions.tensordot(a, b, axes=axes)


def _plus(f: Callable[[Any, Any], Any], x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * f(a, b)`; with a beta of 0 nothing of x is used, not even a NaN."""
    product = scaled(f(a, b), alpha)
    if isinstance(beta, int | float) and beta == 0:
        x = as_node(x)
        shape = functions.add(x, product).shape
        return broadcast_to(product, shape)
    return functions.add(scaled(x, beta), product)


@op_function
def addmm(
    x: ArrayLike, mat1: ArrayLike, mat2: ArrayLike, /, *, beta: ArrayLike = 1, alpha: ArrayLike = 1
) -> Any:
    """`beta * x + alpha * (mat1 @ mat2)` of matrices.

    `[m, k]` and `[k, n]` give `[m, n]`, to which x broadcasts. `ShapeError` otherwise.

    >>> import retrograd as rg
    >>> rg.addmm(rg.ones(1), rg.ones((1, 3)), rg.ones((3, 1)), alpha=2).tolist()
    [[7.0]]
    """
    return _plus(mm, x, mat1, mat2, beta, alpha)


@op_function
def addmv(
    x: ArrayLike, mat: ArrayLike, vec: ArrayLike, /, *, beta: ArrayLike = 1, alpha: ArrayLike = 1
) -> Any:
    """`beta * x + alpha * (mat @ vec)` of a matrix and a vector.

    `[m, n]` and `[n]` give `[m]`, to which x broadcasts. `ShapeError` otherwise.

    >>> import retrograd as rg
    >>> rg.addmv(rg.ones(1), rg.ones((1, 3)), rg.ones(3)).tolist()
    [4.0]
    """
    return _plus(mv, x, mat, vec, beta, alpha)


@op_function
def baddbmm(
    x: ArrayLike,
    batch1: ArrayLike,
    batch2: ArrayLike,
    /,
    *,
    beta: ArrayLike = 1,
    alpha: ArrayLike = 1,
) -> Any:
    """`beta * x + alpha * (batch1 @ batch2)` of stacks of matrices.

    `[b, m, k]` and `[b, k, n]` give `[b, m, n]`, to which x broadcasts. `ShapeError` otherwise.

    >>> import retrograd as rg
    >>> rg.baddbmm(rg.ones(1), rg.ones((1, 1, 3)), rg.ones((1, 3, 1))).tolist()
    [[[4.0]]]
    """
    return _plus(bmm, x, batch1, batch2, beta, alpha)


@op_function
def addbmm(
    x: ArrayLike,
    batch1: ArrayLike,
    batch2: ArrayLike,
    /,
    *,
    beta: ArrayLike = 1,
    alpha: ArrayLike = 1,
) -> Any:
    """`beta * x + alpha * sum(batch1 @ batch2)`, summed over the stack.

    `[b, m, k]` and `[b, k, n]` give `[m, n]`, to which x broadcasts. `ShapeError` otherwise.

    >>> import retrograd as rg
    >>> rg.addbmm(rg.ones(1), rg.ones((2, 1, 3)), rg.ones((2, 3, 1))).tolist()
    [[7.0]]
    """
    return _plus(lambda a, b: total(bmm(a, b), 0), x, batch1, batch2, beta, alpha)


@op_function
def addr(
    x: ArrayLike, vec1: ArrayLike, vec2: ArrayLike, /, *, beta: ArrayLike = 1, alpha: ArrayLike = 1
) -> Any:
    """`beta * x + alpha * outer(vec1, vec2)`.

    `[m]` and `[n]` give `[m, n]`, to which x broadcasts. `ShapeError` otherwise.

    >>> import retrograd as rg
    >>> rg.addr(rg.zeros(2), rg.ones(1), rg.tensor([1.0, 2.0])).tolist()
    [[1.0, 2.0]]
    """
    return _plus(contractions.outer, x, vec1, vec2, beta, alpha)


@op_function
def chain_matmul(*matrices: ArrayLike) -> Any:
    """The product of several matrices, in the order that takes the fewest operations: `multi_dot`.

    `[a, b]`, `[b, c]`, `[c, d]` give `[a, d]`. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> rg.chain_matmul(rg.ones((1, 2)), rg.ones((2, 3)), rg.ones((3, 1))).tolist()
    [[6.0]]
    """
    nodes = alike(*map(as_node, matrices))
    return nodes[0] if len(nodes) == 1 else contractions.chained(nodes)


@op_function
def norm(
    x: ArrayLike,
    /,
    p: int | float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """`sum(|x|**p)**(1/p)` over axes, all by default, of which no matrices are made; "fro" is 2,
    and "nuc" the sum of the singular values of the matrices in two axes.

    The shape is that of x without the axes, or with size 1 there under `keepdim`. `AxisError` for
    an axis that x does not have, `OptionError` for another p. For the norms of matrices see
    `rg.linalg.norm`.

    >>> import retrograd as rg
    >>> rg.norm(rg.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    x, keep = as_node(x), keepdim or keepdims
    x = x if dtype is None else functions.astype(x, dtype)
    along = dim if axis is None else axis
    if p == "nuc":
        return norms.norm(x, ord="nuc", axis=(-2, -1) if along is None else along, keepdims=keep)
    if p is None or p == "fro":
        p = 2
    if isinstance(p, str):
        raise OptionError(f"norm: p is a number, 'fro' or 'nuc', not {p!r}")
    return norms.vector_norm(x, ord=p, dim=along, keepdims=keep)


@op_function
def dist(x: ArrayLike, other: ArrayLike, /, p: int | float = 2) -> Any:
    """The norm of the difference, `sum(|x - y|**p)**(1/p)`.

    A scalar of the shape `[]`. `ShapeError` where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.dist(rg.tensor([0.0, 0.0]), rg.tensor([3.0, 4.0])).item()
    5.0
    """
    return norms.vector_norm(functions.subtract(x, other), ord=p)


@op_function
def logdet(x: ArrayLike, /) -> Any:
    """The logarithm of the determinant; of real matrices NaN where it is negative.

    `[..., n, n]` to `[...]`. `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.logdet(rg.eye(2)).item()
    0.0
    """
    sign, size = (as_node(y) for y in determinants.slogdet(as_node(x)))
    if sign.dtype.is_complex:
        return functions.add(functions.log(sign), size)
    return el.select(el.lt(sign, full(0, sign.type)), full(math.nan, size.type), size)


@op_function
def cholesky(x: ArrayLike, /, upper: bool = False) -> Any:
    """The triangular factor of a Hermitian positive definite matrix: `linalg.cholesky`.

    `[..., n, n]` to the same. `LinAlgError` for a matrix that is not positive definite.

    >>> import retrograd as rg
    >>> rg.cholesky(rg.tensor([[4.0]])).tolist()
    [[2.0]]
    """
    return decompositions.cholesky(as_node(x), upper=upper)


@op_function
def cholesky_solve(b: ArrayLike, factor: ArrayLike, /, upper: bool = False) -> Any:
    """The solution x of `a x = b` by the triangular factor of a.

    `[..., n, k]` and `[..., n, n]` give `[..., n, k]`. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> rg.cholesky_solve(rg.tensor([[8.0]]), rg.tensor([[2.0]])).tolist()
    [[2.0]]
    """
    return linear_systems.cho_solve(as_node(factor), as_node(b), lower=not upper)


@op_function
def cholesky_inverse(factor: ArrayLike, /, upper: bool = False) -> Any:
    """The inverse of a matrix by its triangular factor.

    `[..., n, n]` to the same. `ShapeError` for a factor that is not square.

    >>> import retrograd as rg
    >>> rg.cholesky_inverse(rg.tensor([[2.0]])).tolist()
    [[0.25]]
    """
    factor = as_node(factor)
    n = factor.shape[-1]
    i, j = (Iota((n, n), axis, int64)() for axis in (0, 1))
    eye = el.cast(el.eq(i, j), factor.dtype)
    return linear_systems.cho_solve(factor, broadcast_to(eye, factor.shape), lower=not upper)


@op_function
def qr(x: ArrayLike, /, some: bool = True) -> Any:
    """An orthogonal and a triangular factor: `linalg.qr`, whose mode is "complete" without `some`.

    `[..., m, n]` gives `[..., m, k]` and `[..., k, n]`, k the lesser of both or, without `some`, m.
    `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> [factor.shape for factor in rg.ones((3, 2)).qr()]
    [(3, 2), (2, 2)]
    """
    return decompositions.qr(as_node(x), mode="reduced" if some else "complete")


@op_function
def vdot(x: ArrayLike, other: ArrayLike, /) -> Any:
    """The sum of the products of two vectors, the first conjugated: `vecdot`.

    `[n]` and `[n]` give `[]`. `ShapeError` for anything else.

    >>> import retrograd as rg
    >>> rg.vdot(rg.tensor([1.0, 2.0]), rg.tensor([3.0, 4.0])).item()
    11.0
    """
    return contractions.vecdot(*_of_ranks("vdot", x, other, (1, 1)))


@op_function
def inner(x: ArrayLike, other: ArrayLike, /) -> Any:
    """The sums of products along the last axes of both; of numbers and arrays their product.

    `[..., n]` and `[*m, n]` give `[..., *m]`. `ShapeError` where the last sizes differ.

    >>> import retrograd as rg
    >>> rg.inner(rg.tensor([1.0, 2.0]), rg.tensor([3.0, 4.0])).item()
    11.0
    """
    a, b = as_node(x), as_node(other)
    if a.type.rank == 0 or b.type.rank == 0:
        return functions.multiply(a, b)
    return contractions.tensordot(a, b, ((-1,), (-1,)))
