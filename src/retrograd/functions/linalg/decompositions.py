"""Factorisations of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from retrograd.eager.dispatch import ArrayLike, op_function, op_function_of_several
from retrograd.errors import OptionError
from retrograd.functions import elementwise as functions
from retrograd.functions.broadcasting import as_node
from retrograd.functions.linalg.operands import matrices, square
from retrograd.functions.manipulation import tril, triu
from retrograd.ir import Node, float32, int64, symbolic_min
from retrograd.ops import linalg as ops
from retrograd.ops.complex import real
from retrograd.ops.elementwise import cast, eq
from retrograd.ops.index import Gather
from retrograd.ops.leaf import Iota
from retrograd.ops.linalg import eigen, matrix
from retrograd.ops.linalg import lu as elimination
from retrograd.ops.linalg import qr as orthogonal
from retrograd.ops.linalg import svd as singular
from retrograd.ops.shape import Concat, expand, pad, slice_axis
from retrograd.tensor_type import Tensor


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """What `lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactors(NamedTuple):
    """What `lu_factor` returns and `lu_solve` takes."""

    LU: Tensor
    permutation: Tensor


@op_function
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Any:
    """The lower triangle L with `L L^H = x`, or with `upper` its conjugate transpose.

    x is `[..., n, n]`, symmetric or hermitian, and positive definite; `LinAlgError` names the
    matrix that is not. Of a matrix that is not hermitian, the hermitian part `(x + x^H) / 2` is
    meant, so gradients are hermitian: those of real matrices symmetric.

    `ShapeError` for matrices that are not square.

    >>> import retrograd as rg
    >>> rg.linalg.cholesky(rg.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    (x,) = matrices("cholesky", x)
    return ops.Cholesky(bool(upper))(x)


@op_function_of_several
def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns Q and an upper triangle R with `Q R = x`, as (Q, R).

    x is `[..., m, n]`. With k = min(m, n), Q is `[..., m, k]` and R `[..., k, n]`; with
    `mode="complete"` they are `[..., m, m]` and `[..., m, n]`. The first min(m, n) columns of x
    must be independent where derivatives are taken. The diagonal of R is real. In derivatives, the
    columns that "complete" adds turn no more than it takes to stay orthogonal: exact for what
    depends on their span only.

    `OptionError` for another mode, `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> q, r = rg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> rg.abs(r).tolist(), (q @ r).tolist()
    ([[5.0, 2.2], [0.0, 0.4]], [[3.0, 1.0], [4.0, 2.0]])
    """
    (x,) = matrices("qr", x)
    if mode not in ("reduced", "complete"):
        raise OptionError(f"qr's mode is 'reduced' or 'complete', not {mode!r}")
    m, n = x.shape[-2:]
    k = symbolic_min(m, n)
    q, r = orthogonal.unpacked(ops.QR()(x if k == n else matrix.columns(x, 0, k)))
    if k != n:
        rest = matrix.product(matrix.adjoint(q), matrix.columns(x, k, n))
        r = Concat(x.type.rank - 1)(r, rest)
    if mode == "complete" and k != m:
        q = Concat(x.type.rank - 1)(q, ops.Complement()(q))
        none = (0,) * (x.type.rank - 2)
        r = pad(r, (*none, 0, 0), (*none, m - k, 0))
    return QRResult._make((q, r))


@op_function_of_several
def lu(x: ArrayLike, /) -> LUResult:
    """A permutation P, a unit lower triangle L and an upper triangle U with `P L U = x`.

    x is `[..., m, n]`; with k = min(m, n), P is `[..., m, m]`, L `[..., m, k]`, U `[..., k, n]`.

    `ShapeError` for an array of less than two axes.

    >>> import retrograd as rg
    >>> p, l, u = rg.linalg.lu([[1.0, 2.0], [2.0, 2.0]])
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 2.0], [0.0, 1.0]])
    """
    (x,) = matrices("lu", x)
    m, n = x.shape[-2:]
    k = symbolic_min(m, n)
    y = ops.LU()(x if k == n else matrix.columns(x, 0, k))
    left, right = elimination.factors(y)
    order = elimination.order(y)
    if k != n:
        axis = x.type.rank - 2
        rest = Gather(axis, axis)(matrix.columns(x, k, n), slice_axis(order, -1, 0, k))
        right = Concat(axis + 1)(right, elimination.LOWER(matrix.rows(left, 0, k), rest))
    return LUResult._make((_permutation(order, x), left, right))


def _permutation(order: Node, x: Node) -> Node:
    """The matrix P with `P y` in the order in which `y[order]` is not."""
    m, n = x.shape[-2], order.type.rank
    shape = (*order.shape, m)
    hit = eq(expand(order, (*order.shape[:-1], m, m), (n - 1,)), Iota(shape, n - 1, int64)())
    return cast(hit, x.dtype)


@op_function_of_several
def lu_factor(x: ArrayLike, /) -> LUFactors:
    """L and U of square matrices in one matrix, for `lu_solve`; with the permutation p for which
    `x[p] = L U`, where SciPy lists the exchanges that lead to it.

    x is `[..., n, n]`, the permutation int64 `[..., n]`. `ShapeError` for matrices that are not
    square.

    >>> import retrograd as rg
    >>> rg.linalg.lu_factor([[1.0, 2.0], [2.0, 2.0]])[0].tolist()
    [[2.0, 2.0], [0.5, 1.0]]
    """
    (x,) = matrices("lu_factor", x)
    y = ops.LU()(x)
    packed = matrix.transpose(matrix.rows(y, 0, x.shape[-1]))
    return LUFactors._make((packed, elimination.order(y)))


@op_function_of_several
def eigh(x: ArrayLike, /, *, UPLO: str | None = None) -> EighResult:
    """Eigenvalues, in ascending order, and orthonormal eigenvectors of symmetric and hermitian
    matrices.

    x is `[..., n, n]`; the eigenvalues are real, column i of the vectors belongs to eigenvalue i.
    In each, the first of the components that are at least 0.6 times the largest is real and
    positive. Of a matrix that is not hermitian, the hermitian part `(x + x^H) / 2` is meant, or
    with `UPLO` "L" or "U" what its lower or upper triangle says.

    Where eigenvalues are equal (closer than `8 eps` times the sum of the magnitudes of all),
    derivatives are right, or NaN:

    - Symmetric functions of the values, such as `sum(w**3)`, have their first derivatives, and
      their second ones by `hessian` and `hvp`, forward mode through the gradient. The gradient of
      a gradient, and what comes after, is NaN there.
    - A single value has a kink: its gradient is that of the vector which LAPACK chose, its tangent
      that of the values in order.
    - Single vectors, which are only known up to a rotation, have none: NaN. The space that they
      span, such as the projection `V V^H` on it, has a gradient.
    - For `V f(w) V^H` use `funmh(x, f)`, `sqrtmh`, `logmh`, ...: their derivatives are exact, to
      every order. Here they are NaN, as what f is near w does not show in gradients of w and V.
      What asks exactly nothing of vectors adds nothing (as where f is 0 at equal eigenvalues, and
      nothing is asked of these), as a product with zero does everywhere.

    `ShapeError` for matrices that are not square, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> rg.linalg.eigh(rg.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.tolist()
    [1.0, 3.0]
    """
    x = hermitian("eigh", x, UPLO)
    w, v = eigen.unpacked(ops.Eigh()(x))
    return EighResult._make((real(w), v))


@op_function
def eigvalsh(x: ArrayLike, /, *, UPLO: str | None = None) -> Any:
    """The eigenvalues of symmetric or hermitian matrices `[..., n, n]`, real numbers in ascending
    order; see `eigh`, also for derivatives where eigenvalues are equal.

    `ShapeError` for matrices that are not square, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> rg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).tolist()
    [1.0, 3.0]
    """
    return ops.Eigvalsh()(hermitian("eigvalsh", x, UPLO))


def hermitian(what: str, x: Any, uplo: str | None) -> Node:
    """The matrices that are meant: all of x, or what one of its triangles says."""
    (x,) = matrices(what, x)
    square(what, x)
    if uplo is None:
        return x
    if uplo not in ("L", "U", "l", "u"):
        raise OptionError(f"{what}: UPLO is 'L' or 'U', not {uplo!r}")
    half = tril(x, k=-1) if uplo in "Ll" else triu(x, k=1)
    middle = as_node(real(x)) if x.dtype.is_complex else x
    on = tril(triu(middle))
    return as_node(functions.add(functions.add(half, matrix.adjoint(as_node(half))), on))


@op_function_of_several
def eig(x: ArrayLike, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex numbers: `x V = V diag(w)`.

    x is `[..., n, n]`, real or complex; column i of the vectors belongs to eigenvalue i, in the
    order in which LAPACK finds them. Vectors have length 1, and the first of the components that
    are at least 0.6 times the largest is real and positive. float16 and bfloat16 become float32.

    Derivatives of the values are those of simple eigenvalues, to any order; derivatives of the
    vectors keep them normalised in this way. Where eigenvalues are equal (closer than `8 eps` times
    the sum of the magnitudes of all), symmetric functions of them and the space that their vectors
    span have a gradient; single vectors, functions `V f(w) V^-1`, and second derivatives are NaN.
    Where vectors are dependent (of a defective matrix), there is no derivative: it is refused, or
    huge.

    `ShapeError` for matrices that are not square, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> rg.linalg.eig(rg.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues.tolist()
    [(2+0j), (3+0j)]
    """
    w, v = eigen.unpacked(ops.Eig()(_not_half(*matrices("eig", x))))
    return EigResult._make((w, v))


@op_function
def eigvals(x: ArrayLike, /) -> Any:
    """The eigenvalues of square matrices `[..., n, n]`, complex numbers `[..., n]`; see `eig`.

    `ShapeError` for matrices that are not square, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> rg.linalg.eigvals([[0.0, 1.0], [0.0, 2.0]]).real.tolist()
    [0.0, 2.0]
    """
    return ops.Eigvals()(_not_half(*matrices("eigvals", x)))


def _not_half(x: Node) -> Node:
    """There are no complex numbers of halves."""
    return cast(x, float32) if x.dtype.is_half else x


@op_function_of_several
def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """`U diag(S) Vh = x`: orthonormal columns U and rows Vh, and singular values, which descend.
    They are real numbers.

    x is `[..., m, n]`; with k = min(m, n), U is `[..., m, k]` and Vh `[..., k, n]` unless
    `full_matrices`, which makes both square. In each of the first k columns of U, the first of the
    components that are at least 0.6 times the largest is real and positive.

    Where singular values are equal (closer than `8 eps` times the sum of all), or zero, derivatives
    are right, or NaN, as those of `eigh`: symmetric functions of the values have a gradient and a
    Hessian (at zeros a Hessian only of simple ones), the spaces that columns of equal ones span a
    gradient, single columns and functions `U f(S) Vh` none. For `U Vh` and `V S V^H` use `polar`,
    whose derivatives are exact, to every order. Columns that `full_matrices` adds are known up to a
    choice: derivatives turn them no more than it takes to stay orthogonal.

    `ShapeError` for an array of less than two axes, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> u, s, vh = rg.linalg.svd([[0.0, 2.0], [3.0, 0.0]])
    >>> s.tolist()
    [3.0, 2.0]
    """
    (x,) = matrices("svd", x)
    m, n = x.shape[-2:]
    s, u, v = singular.unpacked(ops.SVD()(x), m)
    if full_matrices and m != n:
        k = s.shape[-1]
        u, v = (
            q if q.shape[-2] == k else Concat(x.type.rank - 1)(q, ops.Complement()(q))
            for q in (u, v)
        )
    return SVDResult._make((u, real(s), matrix.adjoint(v)))


@op_function
def svdvals(x: ArrayLike, /) -> Any:
    """The singular values of matrices `[..., m, n]`, `[..., min(m, n)]`, descending; see `svd` for
    derivatives where some are equal.

    `ShapeError` for an array of less than two axes, `LinAlgError` where the iteration does not
    converge.

    >>> import retrograd as rg
    >>> rg.linalg.svdvals([[0.0, 2.0], [3.0, 0.0]]).tolist()
    [3.0, 2.0]
    """
    (x,) = matrices("svdvals", x)
    return ops.Svdvals()(x)
