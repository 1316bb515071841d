"""Numbers that belong to matrices, and their diagonals."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import as_node, integer, number
from retrograd.functions.linalg.linear_systems import inv
from retrograd.functions.linalg.norms import matrix_norm
from retrograd.functions.linalg.operands import matrices
from retrograd.functions.manipulation import moveaxis
from retrograd.functions.reductions import sum as total
from retrograd.ir import Node, full, int64, symbolic_min
from retrograd.ops import linalg as ops
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.elementwise import cast, cos, eq, log, ne, select, sign, sin
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Iota
from retrograd.ops.linalg import lu, matrix
from retrograd.ops.reduce import ReduceProd, ReduceSum
from retrograd.ops.shape import expand, pad, reshape
from retrograd.tensor_type import Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def _pivots(what: str, x: Node) -> tuple[Node, Node]:
    """The diagonal of U in the LU factorisation, and the sign of its permutation."""
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{what} takes square matrices, or stacks of them, not {x.type}")
    y = ops.LU()(x)
    places = Iota(x.shape[:-1], x.type.rank - 2, int64)()
    moved = ne(lu.exchanges(y), places)
    one = full(1, x.type.with_shape(moved.shape))
    parity = ReduceProd((moved.type.rank - 1,))(select(moved, -one, one))
    return matrix.diagonal_of(matrix.rows(y, 0, x.shape[-1])), parity


@op_function
def det(x: ArrayLike, /) -> Any:
    """The determinants of square matrices `[..., n, n]`, `[...]`.

    The gradient, the matrix of cofactors, exists for singular matrices too, and is exact there, as
    are second derivatives; third ones are NaN where a matrix is singular.

    `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.det([[1.0, 2.0], [3.0, 4.0]]).item()
    -2.0
    """
    (x,) = matrices("det", x)
    pivots, parity = _pivots("det", x)
    return ops.Det()(x, parity * ReduceProd((pivots.type.rank - 1,))(pivots))


@op_function_of_several
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its magnitude: (sign, logabsdet). Of a
    complex matrix the sign is a complex number of magnitude 1.

    Of a singular matrix they are 0 and -inf; it has no gradient, which is refused.

    `[..., n, n]` gives `[...]` twice. `ShapeError` for matrices that are not square, `LinAlgError`
    for the gradient of a singular one.

    >>> import retrograd as rg
    >>> [v.item() for v in rg.linalg.slogdet([[1.0, 2.0], [3.0, 4.0]])]
    [-1.0, 0.6931]
    """
    (x,) = matrices("slogdet", x)
    pivots, parity = _pivots("slogdet", x)
    last = (pivots.type.rank - 1,)
    if not x.dtype.is_complex:
        signs = parity * ReduceProd(last)(sign(pivots))
        size = ops.LogAbsDet()(x, ReduceSum(last)(log(matrix.size(pivots))))
        return SlogdetResult._make((signs, size))
    whole = ops.LogAbsDet()(x, ReduceSum(last)(log(pivots)) + log(parity))
    angle, none = imag(whole), full(0, whole.type.with_dtype(whole.dtype.real))
    turned = complex_(cos(angle), sin(angle))
    zero = eq(real(whole), full(-math.inf, none.type))
    return SlogdetResult._make((select(zero, cast(none, whole.dtype), turned), real(whole)))


@op_function
def cond(x: ArrayLike, /, p: int | float | str | None = None) -> Any:
    """The condition number of matrices: `norm(x) norm(x^-1)` in the norm p of `matrix_norm`; the
    ratio of the largest and the least singular value by default.

    `[..., n, n]` to `[...]`; any matrix for the default. `ShapeError` for an array of less than two
    axes, `OptionError` for an unknown norm.

    >>> import retrograd as rg
    >>> rg.linalg.cond([[2.0, 0.0], [0.0, 4.0]]).item()
    2.0
    """
    (x,) = matrices("cond", x)
    if p is None or p in (2, -2):
        s = ops.Svdvals()(x)
        k = s.shape[-1]
        largest, least = (reshape(matrix.columns(s, i, i + 1), s.shape[:-1]) for i in (0, k - 1))
        return least / largest if p == -2 else largest / least
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)


@op_function
def diagonal(
    x: ArrayLike, /, offset: int = 0, dim1: int | None = None, dim2: int | None = None
) -> Any:
    """The diagonals of the matrices `[..., m, n]`; those above for positive offsets. The matrices
    are in the last two axes, as in the array API standard, or in `dim1` and `dim2`.

    The result is `[..., k]`, k the number of elements on it. `ShapeError` for an array of less than
    two axes.

    >>> import retrograd as rg
    >>> rg.diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    x = as_node(x)
    if (dim1 is None) != (dim2 is None):
        raise ShapeError(f"diagonal takes both of dim1 and dim2, or none: {dim1} and {dim2}")
    if dim1 is not None and x.type.rank >= 2:
        x = moveaxis(x, (dim1, dim2), (-2, -1))
    if x.type.rank < 2:
        raise ShapeError(f"diagonal takes matrices, or stacks of them, not {x.type}")
    (m, n), k = x.shape[-2:], integer(offset, "diagonal: the offset")
    length = symbolic_min(m - symbolic_min(m, max(-k, 0)), n - symbolic_min(n, max(k, 0)))
    flat = reshape(x, (*x.shape[:-2], m * n))
    start = k if k >= 0 else -k * n
    step, first = (number(d, int64, (length,)) for d in (n + 1, start))
    places = Iota((length,), 0, int64)() * step + first
    return Gather(x.type.rank - 2)(flat, places)


diagonals = diagonal


@op_function
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices; of integers in 64 bits, unless a dtype is given.

    `[..., m, n]` to `[...]`. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.linalg.trace([[1, 2], [3, 4]]).item()
    5
    """
    return total(diagonal(as_node(x), offset=offset), axis=-1, dtype=dtype)


@op_function
def diag(x: ArrayLike, /, k: int = 0, *, diagonal: int = 0) -> Any:
    """A square matrix with the vector x as its k-th diagonal, or the k-th diagonal of a matrix;
    PyTorch calls k `diagonal`.

    `[n]` to `[n + |k|, n + |k|]`, `[m, n]` to the vector of the elements `x[i, i + k]`.
    `ShapeError` for other numbers of axes.

    >>> import retrograd as rg
    >>> rg.diag([1, 2]).tolist()
    [[1, 0], [0, 2]]
    """
    x, k = as_node(x), integer(k or diagonal, "diag: the diagonal")
    if x.type.rank == 2:
        return diagonals(x, offset=k)
    if x.type.rank != 1:
        raise ShapeError(f"diag takes a vector or a matrix, not {x.type}")
    wide = pad(x, (max(-k, 0),), (max(k, 0),))
    shape = (wide.shape[0], wide.shape[0])
    i, j = Iota(shape, 0, int64)(), Iota(shape, 1, int64)()
    hit = eq(j, i + k)
    return select(hit, expand(wide, shape, (1,)), full(0, x.type.with_shape(shape)))
