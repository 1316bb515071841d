"""What the operations on matrices share: the matrices are the last two axes, the others stacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from retrograd.errors import DTypeError, LinAlgError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, at_least, full, int64
from retrograd.ops.complex import complex_, conj, imag, real
from retrograd.ops.elementwise import abs, cast, eq, hypot, le, lt, ne, select
from retrograd.ops.leaf import Iota
from retrograd.ops.matmul import matmul
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.reduce import ArgMax, ReduceMax, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import expand, fail, pad, permute, reshape, slice_axis, stack_front


class MatrixOp(Op):
    """An op on stacks of matrices: samples of a batch are one more stack."""

    # Operations for a matrix of m x n, with k columns in the result, as textbooks count them
    # (Golub, Van Loan: "Matrix Computations"); iterations are guessed.
    multiplications: ClassVar[Callable[..., Any] | None] = None

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        if self.multiplications is None:
            return result.size
        *lead, m, n = types[0].shape
        columns = result.shape[-1] if result.rank else 0
        each: int | Dim = self.multiplications(m, n, columns)
        return math.prod(lead, start=each)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*stack_front(size, batched, inputs))

    def refusal(self, item: int, batch: tuple[int, ...], code: int) -> LinAlgError:
        """The error for the matrix number `item` of a stack, for what a routine returned."""
        where = ""
        if batch:
            index = ", ".join(str(int(i)) for i in np.unravel_index(item, batch))
            where = f" [{index}]"
        return LinAlgError(f"{self.name} of the matrix{where}: {self.reason(code)}")

    def reason(self, code: int) -> str:
        """What is wrong, for what the routine returned."""
        raise NotImplementedError(self.name)

    def stacked(
        self, f: Callable[..., Any], out: Sequence[int], *arrays: Any, dtype: Any = None
    ) -> Any:
        """`f` of the matrices of the arrays, one after the other, each giving an array of the shape
        `out`, of a dtype that is theirs unless given; half precision by way of float32. What it
        refuses is named by its place."""

        def value(*given: Any) -> Any:
            batch = given[0].shape[:-2]
            y = np.zeros((*batch, *out), dtype or given[0].dtype)
            for item, i in enumerate(np.ndindex(batch)):
                try:
                    y[i] = f(*[a[i] for a in given])
                except Refused as refused:
                    raise self.refusal(item, batch, refused.code) from None
            return y

        with np.errstate(all="ignore"):
            return in_float32(value, arrays)


NOT_FINITE = 1 << 30  # the number for a matrix that holds NaN or infinities


class Iterative(MatrixOp):
    """What is found by an iteration, which may not converge: never of NaN or infinities."""

    arity = 1

    def stacked(
        self, f: Callable[..., Any], out: Sequence[int], *arrays: Any, dtype: Any = None
    ) -> Any:
        def converged(x: Any, *others: Any) -> Any:
            if not np.isfinite(x).all():
                raise Refused(NOT_FINITE)
            try:
                return f(x, *others)
            except np.linalg.LinAlgError:
                raise Refused(1) from None

        return super().stacked(converged, out, *arrays, dtype=dtype)

    def reason(self, code: int) -> str:
        if code == NOT_FINITE:
            return "it holds NaN or infinities"
        return "the iteration did not converge"


class SquareFunction(MatrixOp):
    """A matrix of each square matrix, of the same size."""

    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        check_matrices(self, *types, square=True)
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return self.stacked(self._value, arrays[0].shape[-2:], *arrays)

    def _value(self, x: Any) -> Any:
        """That of one."""
        raise NotImplementedError(self.name)


class Given(MatrixOp):
    """An op that passes on its last input, which is computed elsewhere, and whose rules say of
    which function of the other inputs it is the value. Backends leave it out
    (`passes/after_autodiff.py`)."""

    traits = frozenset({Trait.FREE})

    def infer(self, *types: TensorType) -> TensorType:
        return types[-1]

    def reference(self, *arrays: Any) -> Any:
        return arrays[-1]


class Refused(Exception):
    """A matrix that cannot be dealt with, with the number that a routine would return."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def check_matrices(op: Op, *types: TensorType, square: bool = False) -> None:
    """Refuse what is not a stack of matrices of real or complex numbers, all of one dtype and
    stacked alike."""
    first = types[0]
    for t in types:
        if not t.dtype.is_inexact or t.dtype is not first.dtype:
            listed = " and ".join(map(str, types))
            raise DTypeError(
                f"{op.name} takes floating or complex matrices of one dtype, not {listed}"
            )
        if t.rank < 2:
            raise fail(op, t, "it takes matrices, or stacks of them, of at least two axes")
        if t.shape[:-2] != first.shape[:-2]:
            raise fail(op, t, f"its leading axes are those of {first}: one matrix for each")
    if square and first.shape[-1] != first.shape[-2]:
        raise fail(op, first, "the matrices must be square")


def check_tall(op: Op, x: TensorType) -> None:
    """Refuse matrices of fewer rows than columns."""
    m, n = x.shape[-2:]
    if not at_least(m, n):
        raise fail(op, x, "it takes at least as many rows as columns")


def transpose(x: Node) -> Node:
    """The matrices transposed."""
    n = x.type.rank
    return permute(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Node) -> Node:
    """The matrices transposed and conjugated."""
    return transpose(conj(x))


def side_by_side(op: Op, size: int | Dim, matrices: Sequence[Node], b: Node) -> Node:
    """An op that treats the columns of `b` alike, on a stack of these and one of `matrices` each:
    the samples of `[size, ..., n, k]` become columns."""
    n = b.type.rank
    turned = permute(b, (*range(1, n - 1), 0, n - 1))
    y = op(*matrices, reshape(turned, (*turned.shape[:-2], size * b.shape[-1])))
    apart = reshape(y, (*y.shape[:-1], size, b.shape[-1]))
    return permute(apart, (n - 2, *range(n - 2), n - 1))


def product(*factors: Node) -> Node:
    """The matrix product, from the left."""
    y = factors[0]
    for x in factors[1:]:
        y = matmul(y, x)
    return y


def _positions(shape: Shape) -> tuple[Node, Node]:
    n = len(shape)
    return Iota(shape, n - 2, int64)(), Iota(shape, n - 1, int64)()


def lower(x: Node, strict: bool = False) -> Node:
    """The elements below the diagonal and, unless `strict`, those on it."""
    i, j = _positions(x.shape)
    return select(lt(j, i) if strict else le(j, i), x, full(0, x.type))


def upper(x: Node, strict: bool = False) -> Node:
    """The elements above the diagonal and, unless `strict`, those on it."""
    i, j = _positions(x.shape)
    return select(lt(i, j) if strict else le(i, j), x, full(0, x.type))


def halved(x: Node) -> Node:
    """The lower half with half of the diagonal: `x = halved(x) + halved(x)^T` for symmetric x."""
    i, j = _positions(x.shape)
    return select(eq(i, j), 0.5 * x, lower(x))


def symmetric(x: Node) -> Node:
    """The symmetric part of real matrices, the hermitian part of complex ones."""
    half: Node = 0.5 * (x + adjoint(x))
    return half


def antisymmetric(x: Node) -> Node:
    """The antisymmetric part of real matrices, the antihermitian part of complex ones."""
    half: Node = 0.5 * (x - adjoint(x))
    return half


def identity(like: TensorType) -> Node:
    """Matrices of a type, with ones on the diagonal."""
    i, j = _positions(like.shape)
    return select(eq(i, j), full(1, like), full(0, like))


def rows(x: Node, start: int | Dim, stop: int | Dim) -> Node:
    """Some rows of the matrices."""
    return slice_axis(x, -2, start, stop)


def columns(x: Node, start: int | Dim, stop: int | Dim) -> Node:
    """Some columns of the matrices."""
    return slice_axis(x, -1, start, stop)


def diagonal(x: Node) -> Node:
    """Square matrices with the vectors `x[..., n]` as their diagonals."""
    n = x.type.rank
    wide = expand(x, (*x.shape, x.shape[-1]), (n,))
    i, j = _positions(wide.shape)
    return select(eq(i, j), wide, full(0, wide.type))


def diagonal_of(x: Node) -> Node:
    """The diagonals of square matrices."""
    i, j = _positions(x.shape)
    return ReduceSum((x.type.rank - 1,))(select(eq(i, j), x, full(0, x.type)))


def scaled_columns(x: Node, factors: Node) -> Node:
    """`x diag(factors)`; the factors may be real where x is complex."""
    scaled: Node = x * cast(expand(factors, x.shape, (x.type.rank - 2,)), x.dtype)
    return scaled


def size(x: Node) -> Node:
    """Magnitudes, also of complex numbers."""
    return hypot(real(x), imag(x)) if x.dtype.is_complex else abs(x)


LEADING = 0.6  # of the largest component; few vectors of note have components in this ratio


def orientation(v: Any) -> Any:
    """The signs, or complex numbers of size 1, that make positive, in each column of an array, the
    first component that is at least `LEADING` times the largest: so vectors that are known up to
    such a factor are the same everywhere, and do not jump where rounding decides which component is
    the largest."""
    size = np.abs(v)
    leading = size >= LEADING * np.max(size, axis=0, initial=0)
    first = np.argmax(leading, axis=0) if v.size else np.zeros(v.shape[1], int)
    chosen = v[first, np.arange(v.shape[1])] if v.size else np.ones(v.shape[1])
    if v.dtype.kind == "c":
        return np.where(chosen == 0, 1, chosen.conj() / np.abs(chosen)).astype(v.dtype)
    return np.where(chosen < 0, -1, 1).astype(v.dtype)


class Anchor:
    """What keeps complex vectors, the columns of `v[..., m, k]`, as `orientation` leaves them.

    Rules find how vectors turn up to a factor `exp(i theta)` for each: it is the one for which the
    component that is real stays so. With `unit` they find them up to any complex factor, and the
    vectors keep their length as well. Of real vectors nothing is free, but with `unit` the length.
    """

    def __init__(self, v: Node, unit: bool = False) -> None:
        self.v, self.unit = v, unit
        self.axis = v.type.rank - 2
        magnitude, none = size(v), (0,) * v.type.rank
        # With one row more, as there may be none.
        wide = pad(magnitude, none, tuple(int(i == self.axis) for i in range(v.type.rank)))
        top = expand(ReduceMax((self.axis,))(wide), wide.shape, (self.axis,))
        leading = cast(le(LEADING * top, wide), wide.dtype)
        first = expand(ArgMax(self.axis)(leading), v.shape, (self.axis,))
        self.mask = cast(eq(first, Iota(v.shape, self.axis, int64)()), v.dtype)
        self.lead = self._sum(magnitude * real(self.mask))

    def _sum(self, x: Node) -> Node:
        return ReduceSum((self.axis,))(x)

    def turn(self, t: Node) -> tuple[Node, Node]:
        """For tangents of the vectors, how much of `i v` they have too much, and of `v`."""
        theta = self._sum(imag(t * self.mask)) / self.lead
        along = self._sum(real(conj(self.v) * t)) if self.unit else full(0, theta.type)
        return theta, along

    def fixed(self, t: Node, turn: tuple[Node, Node], v: Node | None = None) -> Node:
        """Tangents of these vectors, or of others that turn with them, without that."""
        v = self.v if v is None else v
        less: Node = t - scaled_columns(v, cast(turn[1], v.dtype))
        return less - scaled_columns(complex_(-imag(v), real(v)), cast(turn[0], v.dtype))  # type: ignore[no-any-return]

    def freed(self, g: Node, *others: tuple[Node, Node]) -> Node:
        """The transpose, for gradients: what `fixed` takes away moves to the component that is
        kept real; `others` are pairs of a gradient and vectors that turn too."""
        turned = self._sum(imag(conj(g) * self.v))
        for other, v in others:
            turned = turned + ReduceSum((v.type.rank - 2,))(imag(conj(other) * v))
        share = scaled_columns(self.mask, cast(turned / self.lead, g.dtype))
        found: Node = g + complex_(-imag(share), real(share))
        if self.unit:
            found = found - scaled_columns(self.v, self._sum(real(conj(g) * self.v)))
        return found


def epsilon(x: Node) -> float:
    """The distance from 1 to the next number of a dtype."""
    return float(ml_dtypes.finfo(x.dtype.real.dtype).eps)  # type: ignore[no-untyped-call]


def tolerance(values: Node) -> Node:
    """Below what eigenvalues, or singular values, are not told apart: `8 eps sum(|values|)`."""
    least: Node = 8 * epsilon(values) * ReduceSum((values.type.rank - 1,))(size(values))
    return least


def along(x: Node, like: Node) -> Node:
    """A number for each matrix, or vector, as the elements of one like another."""
    return expand(x, like.shape, tuple(range(x.type.rank, like.type.rank)))


def pairs(w: Node) -> tuple[Node, Node]:
    """`(w[i], w[j])` as matrices."""
    n, shape = w.type.rank, (*w.shape, w.shape[-1])
    return expand(w, shape, (n,)), expand(w, shape, (n - 1,))


def clusters(w: Node) -> Node:
    """Numbers of the groups of equal values, for `w[..., n]` in order: two neighbours are of one
    group if they are not told apart (`tolerance`)."""
    axis = w.type.rank - 1
    none = (0,) * axis
    before = slice_axis(pad(w, (*none, 1), (*none, 0)), -1, 0, w.shape[-1])
    first = eq(Iota(w.shape, axis, int64)(), full(0, w.type.with_dtype(int64)))
    apart = lt(along(tolerance(w), w), abs(w - before))
    return CumSum(axis)(cast(select(first, full(False, first.type), apart), int64))


def tied(w: Node) -> Node:
    """Which pairs of two values `w[..., n]`, in order, are equal; none is paired with itself."""
    i, j = pairs(clusters(w))
    return others(eq(i, j))


def others(mask: Node) -> Node:
    """A mask of pairs without those of a value and itself."""
    i, j = _positions(mask.shape)
    return select(eq(i, j), full(False, mask.type), mask)


def undefined_if(mask: Node, otherwise: Node) -> Node:
    """NaN where the mask holds."""
    return select(mask, full(float("nan"), otherwise.type), otherwise)


def reciprocal_or_nan(x: Node, none: Node) -> Node:
    """`1 / x`, NaN where the mask `none` holds: what vectors turn by that are not determined. It is
    meant for `zmul`, so that a factor of exactly zero, which asks nothing of them, gives zero."""
    return undefined_if(none, 1 / select(none, full(1, x.type), x))


def gaps(w: Node, equal: Node) -> Node:
    """`F[i, j] = 1 / (w[j] - w[i])` for `zmul`: NaN where the two are `equal`, 0 on the
    diagonal."""
    first, second = pairs(w)
    i, j = _positions(first.shape)
    same = eq(i, j)
    difference = select(same, full(1, first.type), second - first)
    return select(same, full(0, first.type), reciprocal_or_nan(difference, equal))


def unequal(g: Node) -> Node:
    """Which pairs of two cotangents `g[..., n]` differ by more than rounding. Of a function that is
    symmetric in equal values they do not."""
    i, j = pairs(g)
    return lt(_part_of(g, i, math.sqrt(epsilon(g))), size(i - j))


ROUNDING = 16  # units of rounding, of all that a product is made of, that its errors may have


def noticed(x: Node, of: Node) -> Node:
    """Which elements of a product with `of` are more than its rounding errors."""
    return lt(_part_of(of, x, ROUNDING * epsilon(x)), size(x))


def _part_of(g: Node, like: Node, part: float) -> Node:
    """So much of the sum of all magnitudes of vectors `g[..., n]`, or matrices, like another."""
    first = like.type.rank - 2
    return along(part * ReduceSum(tuple(range(first, g.type.rank)))(size(g)), like)


def without_rounding(x: Node, of: Node, where: Node) -> Node:
    """A product with `of`, and zeros for its rounding errors where the mask holds. What is exactly
    zero stays a function."""
    none = full(0, x.type)
    lost = le(size(x), _part_of(of, x, ROUNDING * epsilon(x)))
    return select(where & lost & ne(x, none), none, x)


def ambiguous(g: Node, asked: Node, equal: Node) -> Node:
    """Which pairs of `equal` values have derivatives that cotangents do not tell: those of the
    values, `g[..., n]`, differ; or there are some, equal ones, while something is `asked` of the
    vectors. A
    function of the space that the vectors span has none, but of `V f(w) V^H` nobody knows here what
    f is near w."""
    i, _ = pairs(g)
    moving = lt(_part_of(g, i, math.sqrt(epsilon(g))), size(i))
    found: Node = equal & (unequal(g) | ((asked | transpose(asked)) & moving))
    return found
