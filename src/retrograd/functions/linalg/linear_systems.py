"""Linear equations: solutions, inverses, pseudo-inverses."""

from __future__ import annotations

from typing import Any, NamedTuple

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.broadcasting import as_node, broadcast_to, integer, number
from retrograd.functions.linalg.decompositions import hermitian as symmetric
from retrograd.functions.linalg.decompositions import svdvals
from retrograd.functions.linalg.operands import inexact, matrices, square, stacked_alike
from retrograd.functions.manipulation import matrix_transpose
from retrograd.ir import Dim, Node, at_least, full, int64, product, symbolic_min
from retrograd.ops import linalg as ops
from retrograd.ops.complex import conj, real
from retrograd.ops.elementwise import cast, gt, select
from retrograd.ops.index import Gather
from retrograd.ops.linalg import lu, matrix
from retrograd.ops.linalg import svd as singular
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import reshape
from retrograd.tensor_type import Tensor


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _right_side(what: str, a: Node, b: Node) -> Node:
    """`b` as a matrix; a vector is one column."""
    if b.type.rank == 0 or b.shape[0 if b.type.rank == 1 else -2] != a.shape[-2]:
        raise ShapeError(f"{what} of {a.type} and {b.type}: they need equally many rows")
    return reshape(b, (*b.shape, 1)) if b.type.rank == 1 else b


def _like_given(y: Node, b: Node) -> Node:
    return reshape(y, y.shape[:-1]) if b.type.rank == 1 else y


def _solved(a: Node, b: Node) -> Node:
    """`a^-1 b` for matrices; one matrix serves any number of right sides."""
    f = ops.LU()(a)
    if a.type.rank == 2 and b.type.rank > 2:
        stack = reshape(b, (product(b.shape[:-2]), *b.shape[-2:]))
        return reshape(matrix.side_by_side(ops.Solve(), stack.shape[0], (a, f), stack), b.shape)
    lead = stacked_alike(a, f, b)
    return ops.Solve()(*lead)


@op_function
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The solution y of `x1 y = x2`.

    x1 is `[..., n, n]`, x2 a vector `[n]` or `[..., n, k]`; leading axes broadcast. `LinAlgError`
    names the matrix that is singular: for which elimination arrives at a pivot of exactly 0.

    `ShapeError` for matrices that are not square or do not fit one another.

    >>> import retrograd as rg
    >>> rg.linalg.solve(rg.tensor([[2.0, 1.0], [0.0, 4.0]]), rg.tensor([4.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    a, b = inexact(x1, x2)
    square("solve", a)
    return _like_given(_solved(a, _right_side("solve", a, b)), b)


@op_function
def inv(x: ArrayLike, /) -> Any:
    """The inverse of square matrices; `LinAlgError` names one that is singular.

    `[..., n, n]` to the same; the vjp of g is `-y^H g y^H`. `ShapeError` for matrices that are not
    square.

    >>> import retrograd as rg
    >>> rg.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    (x,) = matrices("inv", x)
    square("inv", x)
    return ops.Inv()(x, ops.LU()(x))


@op_function
def solve_triangular(
    a: ArrayLike, b: ArrayLike, /, *, trans: int = 0, lower: bool = False,
    unit_diagonal: bool = False, upper: bool | None = None, left: bool = True,
    unitriangular: bool = False,
) -> Any:  # fmt: skip
    """The solution y of `a y = b`, with `trans=1` of `a^T y = b` and with `trans=2` of `a^H y = b`,
    for a triangle a, upper unless `lower`; its other half is not read. With `unit_diagonal` neither
    is the diagonal, which then counts as ones. Arguments are named as SciPy names them; PyTorch's
    `upper`, `unitriangular` and `left=False`, for `y a = b`, are taken too. Leading axes broadcast.

    a is `[..., n, n]`, b `[n]` or `[..., n, k]`. `OptionError` for another `trans`, `ShapeError`
    for sizes that do not fit, `LinAlgError` for a zero on the diagonal.

    >>> import retrograd as rg
    >>> rg.linalg.solve_triangular([[2.0, 1.0], [0.0, 4.0]], [4.0, 8.0]).tolist()
    [1.0, 2.0]
    """
    if upper is not None and upper == lower:
        if lower:
            raise OptionError("solve_triangular: a is upper or lower, not both")
        lower = True
    unit_diagonal = unit_diagonal or unitriangular
    x, y = inexact(a, b)
    if not left:
        if trans != 0 or y.type.rank < 2:
            raise OptionError("solve_triangular: left=False takes a matrix b, and no trans")
        turned = matrix_transpose(x), matrix_transpose(y)
        found = solve_triangular(*turned, lower=not lower, unit_diagonal=unit_diagonal)
        return matrix_transpose(found)
    square("solve_triangular", x)
    right = _right_side("solve_triangular", x, y)
    if trans not in (0, 1, 2):
        raise OptionError(f"solve_triangular's trans is 0, 1 or 2, not {trans!r}")
    op = ops.TriangularSolve(not lower, bool(trans), bool(unit_diagonal))
    return _like_given(op(*stacked_alike(conj(x) if trans == 2 else x, right)), y)


@op_function
def cho_solve(c: ArrayLike, b: ArrayLike, /, *, lower: bool = True) -> Any:
    """The solution y of `a y = b` by the Cholesky factor c of a, `a = c c^H`; `a = c^H c` for an
    upper triangle, with `lower=False`.

    c is `[..., n, n]`, b `[n]` or `[..., n, k]`. `ShapeError` for sizes that do not fit.

    >>> import retrograd as rg
    >>> rg.linalg.cho_solve([[2.0, 0.0], [1.0, 2.0]], [4.0, 2.0]).tolist()
    [1.0, 0.0]
    """
    x, y = inexact(c, b)
    square("cho_solve", x)
    x, right = stacked_alike(x, _right_side("cho_solve", x, y))
    first = ops.TriangularSolve(not lower, not lower)(x if lower else conj(x), right)
    return _like_given(ops.TriangularSolve(not lower, lower)(conj(x) if lower else x, first), y)


@op_function
def lu_solve(lu_and_permutation: ArrayLike, b: ArrayLike, /) -> Any:
    """The solution y of `a y = b` by the factors `lu_factor(a)`.

    a is `[..., n, n]`, b `[n]` or `[..., n, k]`. `ShapeError` for sizes that do not fit,
    `LinAlgError` for a singular a.

    >>> import retrograd as rg
    >>> rg.linalg.lu_solve(rg.linalg.lu_factor([[2.0, 1.0], [0.0, 4.0]]), [4.0, 8.0]).tolist()
    [1.0, 2.0]
    """
    factors, order = lu_and_permutation
    x, y = inexact(factors, b)
    square("lu_solve", x)
    p = cast(as_node(order), int64)
    right = _right_side("lu_solve", x, y)
    x, right = stacked_alike(x, right)
    p = broadcast_to(p, x.shape[:-1])
    axis = x.type.rank - 2
    first = lu.LOWER(x, Gather(axis, axis)(right, p))
    return _like_given(lu.UPPER(x, first), y)


@op_function
def pinv(
    x: ArrayLike, /, *, rtol: ArrayLike | None = None, atol: ArrayLike | None = None,
    hermitian: bool = False,
) -> Any:  # fmt: skip
    """The Moore-Penrose pseudo-inverse of matrices `[..., m, n]`, `[..., n, m]`.

    Singular values up to `rtol` times the largest, by default `max(m, n) eps`, and up to `atol`
    count as zero; with `atol` alone, only these. With `hermitian` the lower triangle says what x
    is. The derivative is that at constant rank, and exact for any rank and any singular values.

    `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = symmetric("pinv", x, "L") if hermitian else matrices("pinv", x)[0]
    return _pinv(x, rtol, atol)[0]


def _pinv(x: Node, rtol: Any, atol: Any = None) -> tuple[Node, Node, Node]:
    """The pseudo-inverse, the singular values, and which of them count."""
    m = x.shape[-2]
    s, u, v = singular.unpacked(ops.SVD()(x), m)
    s = real(s)
    kept = gt(s, _cutoff(s, x, rtol, atol))
    inverse = select(kept, 1 / select(kept, s, full(1, s.type)), full(0, s.type))
    p = matrix.product(matrix.scaled_columns(v, inverse), matrix.adjoint(u))
    return ops.Pinv()(x, p), s, kept


def _cutoff(s: Node, x: Node, rtol: Any, atol: Any = None) -> Node:
    """What singular values are compared with, of their shape."""
    if s.shape[-1] == 0:
        return full(0, s.type)
    largest = ReduceMax((s.type.rank - 1,))(s)
    if atol is not None and rtol is None:
        rtol = 0
    least = broadcast_to(_relative(x, rtol), largest.shape) * largest
    if atol is not None:
        other = broadcast_to(as_node(atol, s.dtype), largest.shape)
        least = select(gt(other, least), other, least)
    return matrix.along(least, s)


def _relative(x: Node, rtol: Any) -> Node:
    """The part of the largest singular value up to which others count as zero."""
    m, n = x.shape[-2:]
    real_dtype = x.dtype.real if x.dtype.is_complex else x.dtype
    if rtol is None:
        size = m + n - symbolic_min(m, n)
        rtol = (number(size, real_dtype) if isinstance(size, Dim) else size) * matrix.epsilon(x)
    return cast(as_node(rtol, real_dtype), real_dtype)


@op_function
def matrix_rank(
    x: ArrayLike, /, *, rtol: ArrayLike | None = None, atol: ArrayLike | None = None,
    hermitian: bool = False,
) -> Any:  # fmt: skip
    """How many singular values exceed `rtol` times the largest, by default `max(m, n) eps`, and
    `atol`; with `atol` alone, only this.

    `[..., m, n]` to int64 `[...]`. `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> rg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """
    x = symmetric("matrix_rank", x, "L") if hermitian else matrices("matrix_rank", x)[0]
    s = as_node(svdvals(x))
    return ReduceSum((s.type.rank - 1,))(cast(gt(s, _cutoff(s, x, rtol, atol)), int64))


@op_function_of_several
def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rcond: ArrayLike | None = None,
    *,
    rtol: ArrayLike | None = None,
) -> LstsqResult:
    """The y for which the sum of the squares of `a y - b` is least, and of these the smallest one.

    a is `[..., m, n]`, b a vector `[m]` or `[..., m, k]`. Returns (solution, residuals, rank,
    singular_values): the residuals are the sums of squares, one for each column of b. Singular
    values of a up to `rtol` times the largest count as zero, by default `max(m, n) eps`; `rcond` is
    its name in NumPy and PyTorch. The derivative of the solution is that at constant rank.

    `ShapeError` for sizes that do not fit, `OptionError` for both names of the limit.

    >>> import retrograd as rg
    >>> rg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0]).solution.tolist()
    [2.0]
    """
    if rtol is not None and rcond is not None:
        raise OptionError(f"rcond={rcond!r} and rtol={rtol!r} are two names of one limit; give one")
    rtol = rcond if rtol is None else rtol
    x, y = inexact(a, b)
    if x.type.rank < 2:
        raise ShapeError(f"lstsq takes a matrix, or a stack of them, not {x.type}")
    right = _right_side("lstsq", x, y)
    solution = _least(x, right, rtol)
    x, right, solution = stacked_alike(x, right, solution)
    missed = matrix.product(x, solution) - right
    residuals = ReduceSum((missed.type.rank - 2,))(real(conj(missed) * missed))
    s = ops.Svdvals()(x)
    rank = ReduceSum((s.type.rank - 1,))(cast(gt(s, _cutoff(s, x, rtol)), int64))
    if y.type.rank == 1:
        residuals = reshape(residuals, residuals.shape[:-1])
    return LstsqResult._make((_like_given(solution, y), residuals, rank, s))


def _least(x: Node, b: Node, rtol: Any) -> Node:
    """`x^+ b`; one matrix serves any number of right sides."""
    m, n = x.shape[-2:]
    wide = not at_least(m, n)
    if wide and not at_least(n, m):  # nobody knows which
        p, b = stacked_alike(_pinv(x, rtol)[0], b)
        return matrix.product(p, b)
    tall = matrix.adjoint(x) if wide else x
    f = ops.LeastFactors()(tall, _limit(x, rtol))
    op = ops.LeastSquares(wide)
    if x.type.rank == 2 and b.type.rank > 2:
        stack = reshape(b, (product(b.shape[:-2]), *b.shape[-2:]))
        y = matrix.side_by_side(op, stack.shape[0], (tall, f), stack)
        return reshape(y, (*b.shape[:-2], *y.shape[-2:]))
    return op(*stacked_alike(tall, f, b))


def _limit(x: Node, rtol: Any) -> Node:
    """What singular values are compared with, over the largest one: `[..., 1, 1]`."""
    factor = cast(_relative(x, rtol), x.dtype)
    lead = x.shape[:-2]
    return reshape(broadcast_to(factor, lead), (*lead, 1, 1))


@op_function
def expm(x: ArrayLike, /) -> Any:
    """The exponential `I + x + x^2 / 2 + ...` of square matrices `[..., n, n]`.

    By scaling and squaring with a Pade approximation; the derivative is exact for any matrix. NaN
    where x holds NaN or infinities.

    `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    (x,) = matrices("expm", x)
    return ops.Expm()(square("expm", x))


@op_function
def matrix_power(x: ArrayLike, n: int, /) -> Any:
    """The n-th power of square matrices; of the inverse, where n is negative. Integers stay ones
    where it is not.

    `[..., n, n]` to the same. `ShapeError` for matrices that are not square, `LinAlgError` for a
    negative power of a singular one.

    >>> import retrograd as rg
    >>> rg.linalg.matrix_power([[1.0, 1.0], [0.0, 1.0]], 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    times = integer(n, "matrix_power: the power")
    given = as_node(x)
    (x,) = matrices("matrix_power", given)
    square("matrix_power", x)
    x = given if times >= 0 and given.dtype.is_integer else x
    if times == 0:
        return matrix.identity(x.type)
    x = inv(x) if times < 0 else x
    y: Node | None = None
    for bit in bin(abs(times))[2:]:
        if y is not None:
            y = matrix.product(y, y)
        if bit == "1":
            y = x if y is None else matrix.product(y, x)
    return y
