"""Operations of linear algebra as calls of routines.

Half precision is computed in float32. Complex matrices are those of pairs
(`passes/lowering/complex.py`): their parts lie along one more axis, as LAPACK has them. What LAPACK
wants otherwise than we have it (the symmetric part, a transpose, room for what it returns) is made
of ordinary nodes around the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from retrograd.ir import Dim, Node, Op, TensorType, full, int64
from retrograd.ops.elementwise import cast, eq, le, select
from retrograd.ops.leaf import Iota
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.determinant import Cofactor, CofactorSlope, Det, LogAbsDet
from retrograd.ops.linalg.eig import Eig, Eigvals
from retrograd.ops.linalg.eigen import Eigh, Eigvalsh
from retrograd.ops.linalg.expm import Expm
from retrograd.ops.linalg.least_squares import LeastFactors, LeastSquares
from retrograd.ops.linalg.lu import LU, Inv, Solve
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.qr import QR, Complement
from retrograd.ops.linalg.svd import SVD, Svdvals
from retrograd.ops.linalg.triangular import TriangularSolve
from retrograd.ops.numerics.summation import accumulator_of
from retrograd.ops.shape import pad, permute, slice_axis
from retrograd.ops.toposort import DagOrder
from retrograd.passes.lowering.complex_linalg import Paired
from retrograd.passes.lowering.libcall import PAIRED, LibCall, in_memory, owned
from retrograd.passes.lowering.rules import RULES as RULES
from retrograd.passes.lowering.rules import lowers
from retrograd.passes.rewrite import OpRule

Size = int | Dim
OVERHEAD = 20_000  # multiply-adds in whose time a routine of LAPACK is called
# LAPACK writes to the first word of its workspace even where there is nothing to do.
BLOCK = 64  # columns that LAPACK does at a time, where it has the space
SLOW = 4  # times that a multiply-add in a factorisation takes as long as one in a product


class Matrices:
    """The matrices of a node's operands: the last two axes, but for the parts of complex ones."""

    def __init__(self, node: Node) -> None:
        prim = node.prim
        self.node = node
        self.op: Op = prim.inner if isinstance(prim, Paired) else prim
        self.complex = isinstance(prim, Paired) and prim.given

    def rank(self, x: Node) -> int:
        return x.type.rank - self.complex

    def size(self, x: Node) -> tuple[Size, Size]:
        """Rows and columns."""
        last = self.rank(x)
        return x.shape[last - 2], x.shape[last - 1]

    def transpose(self, x: Node) -> Node:
        n = self.rank(x)
        return permute(x, (*range(n - 2), n - 1, n - 2, *range(n, x.type.rank)))

    def hermitian(self, x: Node) -> Node:
        """The transpose of the hermitian part: of real matrices, the symmetric part."""
        turned = self.transpose(x)
        if self.complex:
            first = eq(Iota(x.shape, x.type.rank - 1, int64)(), full(0, TensorType(int64, x.shape)))
            x = select(first, x, -x)
        half: Node = 0.5 * (turned + x)
        return half

    def triangle(self, x: Node, above: bool) -> Node:
        """The elements above or below the diagonal, and those on it."""
        n = self.rank(x)
        i, j = (Iota(x.shape, a, int64)() for a in (n - 2, n - 1))
        return select(le(i, j) if above else le(j, i), x, full(0, x.type))

    def with_room(self, x: Node, above: Size = 0, below: Size = 0, right: Size = 0) -> Node:
        """With rows and columns more."""
        n = self.rank(x)
        none, behind = (0,) * (n - 2), (0,) * self.complex
        return pad(x, (*none, above, 0, *behind), (*none, below, right, *behind))

    def rows(self, x: Node, start: Size, stop: Size) -> Node:
        return slice_axis(x, self.rank(x) - 2, start, stop)

    def call(
        self,
        name: str,
        result: TensorType,
        sizes: Sequence[Size],
        x: Node,
        *,
        work: Work | None = None,
        multiplications: Size,
        initialises_output: bool = True,
        can_fail: bool = False,
    ) -> LibCall:
        """A routine for matrices stacked as those of x. The lengths of its workspace, which it
        cannot know itself, are more sizes."""
        cost = SLOW * multiplications * (4 if self.complex else 1) + OVERHEAD
        words: Size = 0
        if work is not None:
            words = work.elements * (2 if self.complex else 1) + work.words
        return LibCall(
            PAIRED + name if self.complex else name, result, sizes, self.node,
            batch=self.rank(x) - 2, cost=cost, work=words,
            initialises_output=initialises_output, can_fail=can_fail,
        )  # fmt: skip


class Work:
    """Workspace: so many elements, and words of 8 bytes for real numbers and integers."""

    def __init__(self, elements: Size = 0, words: Size = 0) -> None:
        self.elements, self.words = elements, words


MatrixRule = Callable[..., Node]
F = TypeVar("F", bound=MatrixRule)


def rule_of(f: MatrixRule) -> OpRule:
    """A rule for nodes of a function of matrices and operands; half precision by way of float32."""

    def rule(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
        m, dtype = Matrices(node), node.dtype
        if not dtype.is_half:
            return f(m, *inputs)
        return cast(f(m, *[cast(x, accumulator_of(dtype)) for x in inputs]), dtype)

    return rule


ROUTINES: set[str] = set()  # the ops that become calls of routines


def calls(*ops: type[Op]) -> Callable[[F], F]:
    """Enter a function of matrices and operands as the lowering of ops."""

    def enter(f: F) -> F:
        lowers(*ops)(rule_of(f))
        ROUTINES.update(op.name for op in ops)
        return f

    return enter


@lowers(Det, LogAbsDet, Pinv)
def given(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Ops that give their second operand a derivative."""
    return inputs[1]


@lowers(Paired)
def paired(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """An op of complex matrices, or one that gives complex numbers."""
    assert isinstance(node.prim, Paired)
    return RULES[node.prim.inner.name](node, inputs, known)


@calls(Cholesky)
def cholesky(m: Matrices, x: Node) -> Node:
    n, _ = m.size(x)
    above = m.op.attrs["upper"]
    half = m.triangle(m.transpose(m.hermitian(x)), above)
    name = "cholesky_upper" if above else "cholesky_lower"
    return m.call(name, x.type, [n], x, multiplications=n * n * n // 6, can_fail=True)(half)


@calls(TriangularSolve)
def triangular_solve(m: Matrices, a: Node, b: Node) -> Node:
    n, k = m.size(b)
    flags = "".join([str(int(m.op.attrs[s])) for s in ("upper", "transpose", "unit")])
    call = m.call(
        f"triangular_solve_{flags}",
        b.type,
        [n, k],
        b,
        multiplications=n * n * k // 2,
        can_fail=not m.op.attrs["unit"],
    )
    return call(b, in_memory(a))


@calls(LU)
def lu(m: Matrices, x: Node) -> Node:
    rows, n = m.size(x)
    room = m.with_room(m.transpose(x), below=2)
    work = Work(0, (n + 1) // 2)
    multiplications = rows * n * n // 3
    return m.call("lu", room.type, [rows, n], x, work=work, multiplications=multiplications)(room)


@calls(Solve)
def solve(m: Matrices, a: Node, f: Node, b: Node) -> Node:
    n, k = m.size(b)
    name = "solve_transposed" if m.op.attrs["transpose"] else "solve"
    call = m.call(name, b.type, [n, k], b, multiplications=n * n * k, can_fail=True)
    return call(b, in_memory(f))


@calls(Inv)
def inv(m: Matrices, a: Node, f: Node) -> Node:
    n, _ = m.size(a)
    space = n * BLOCK + 1
    call = m.call(
        "inv",
        a.type,
        [n],
        a,
        initialises_output=False,
        work=Work(n * n + space, n),
        multiplications=n * n * n,
        can_fail=True,
    )
    return call(in_memory(f))


@calls(QR)
def qr(m: Matrices, x: Node) -> Node:
    rows, n = m.size(x)
    room, space = m.with_room(m.transpose(x), right=n), n * BLOCK + 1
    call = m.call(
        "qr",
        room.type,
        [rows, n, space],
        x,
        work=Work(n + space),
        multiplications=2 * rows * n * n,
    )
    return call(room)


@calls(LeastFactors)
def least_factors(m: Matrices, x: Node, limit: Node) -> Node:
    rows, n = m.size(x)
    room = m.with_room(m.transpose(x), right=1)
    space, reals, words = _singular_work(m, rows, n, n)
    call = m.call(
        "least_factors",
        room.type,
        [rows, n, space, reals],
        x,
        work=Work(2 * rows * n + n * n + n + space, n + reals + words),
        multiplications=rows * n * n,
        can_fail=True,
    )
    return call(room, in_memory(limit))


@calls(LeastSquares)
def least_squares(m: Matrices, x: Node, f: Node, b: Node) -> Node:
    rows, n = m.size(x)
    _, k = m.size(b)
    space = (k + BLOCK + 1) * BLOCK + 1  # with room for a block's triangle
    f = in_memory(f)
    if not m.op.attrs["adjoint"]:
        call = m.call(
            "least_squares", m.node.type.with_dtype(b.dtype), [rows, n, k, space], x,
            initialises_output=False, work=Work(n + space), multiplications=rows * n * k,
        )  # fmt: skip
        return call(owned(b), f)
    room = m.with_room(b, below=rows - n)
    call = m.call(
        "least_squares_adjoint",
        room.type,
        [rows, n, k, space],
        x,
        work=Work(n + n * k + space),
        multiplications=rows * n * k,
    )
    return call(room, f)


@calls(Complement)
def complement(m: Matrices, q: Node) -> Node:
    n, k = m.size(q)
    room, space = m.with_room(m.transpose(q), below=n - k), n * BLOCK + 1
    call = m.call(
        "complete",
        room.type,
        [n, k, space],
        q,
        work=Work(k + space),
        multiplications=2 * n * n * k,
    )
    return m.transpose(m.rows(call(room), k, n))


@calls(Eigh)
def eigh(m: Matrices, x: Node) -> Node:
    n, _ = m.size(x)
    room, (space, reals, words) = m.with_room(m.hermitian(x), above=1), _eigen_work(m, n)
    call = m.call(
        "eigh",
        room.type,
        [n, space, reals],
        x,
        work=Work(space, n + reals + words),
        multiplications=5 * n * n * n,
        can_fail=True,
    )
    return call(room)


@calls(Eigvalsh)
def eigvalsh(m: Matrices, x: Node) -> Node:
    n, _ = m.size(x)
    space, reals, words = _eigen_work(m, n)
    call = m.call(
        "eigvalsh",
        m.node.type.with_dtype(x.dtype),
        [n, space, reals],
        x,
        initialises_output=False,
        work=Work(space, n + reals + words),
        multiplications=n * n * n,
        can_fail=True,
    )
    return call(owned(m.hermitian(x)))


def _eigen_work(m: Matrices, n: Size) -> tuple[Size, Size, Size]:
    """What `syevd` takes, `1 + 6 n + 2 n^2` numbers and room for blocks; `heevd` takes `2 n + n^2`,
    and `1 + 5 n + 2 n^2` real ones. Both take `3 + 5 n` integers of half a word."""
    words = 2 + 3 * n
    if m.complex:
        return 1 + (2 + BLOCK) * n + n * n, 1 + 5 * n + 2 * n * n, words
    return 1 + (6 + BLOCK) * n + 2 * n * n, 0, words


@calls(Eig, Eigvals)
def eig(m: Matrices, x: Node) -> Node:
    n, _ = m.size(x)
    vectors = isinstance(m.op, Eig)
    # What `geev` takes: `4 n` numbers, and room for the blocks of what it calls.
    space = (4 + 2 * BLOCK) * n + 1
    call = m.call(
        m.op.name,
        m.node.type,
        [n, space],
        x,
        initialises_output=False,
        work=Work(space, 2 * n + n * n if vectors else 2 * n),
        multiplications=(25 if vectors else 10) * n * n * n,
        can_fail=True,
    )
    return call(owned(m.transpose(x)))


@calls(SVD)
def svd(m: Matrices, x: Node) -> Node:
    rows, n = m.size(x)
    k = m.size(m.node)[1]
    space, reals, words = _singular_work(m, rows, n, k)
    call = m.call(
        "svd",
        m.node.type.with_dtype(x.dtype),
        [rows, n, k, space, reals],
        x,
        initialises_output=False,
        work=Work(rows * k + space, k + reals + words),
        multiplications=10 * rows * n * k,
        can_fail=True,
    )
    return call(owned(m.transpose(x)))


@calls(Svdvals)
def svdvals(m: Matrices, x: Node) -> Node:
    rows, n = m.size(x)
    k = m.node.shape[-1]
    space, reals, words = _singular_work(m, rows, n, k)
    call = m.call(
        "svdvals",
        m.node.type.with_dtype(x.dtype),
        [rows, n, k, space, reals],
        x,
        initialises_output=False,
        work=Work(space, reals + words),
        multiplications=2 * rows * n * k,
        can_fail=True,
    )
    return call(owned(m.transpose(x)))


def _singular_work(m: Matrices, rows: Size, n: Size, k: Size) -> tuple[Size, Size, Size]:
    """What `gesdd` takes: `4 k^2 + 7 k` numbers, the larger size, and room for blocks, of complex
    ones `2 k^2` and `3 k`; of these also real ones, `5 k^2 + 5 k` or `2 k` times the larger size
    and `2 k^2 + k`. The integers are `8 k` halves of words."""
    blocks, words = (BLOCK + 1) * (rows + n) + 1, 4 * k + 1
    if m.complex:
        return 2 * k * k + 3 * k + blocks, 7 * k * k + 7 * k + 2 * k * (rows + n) + 1, words
    return 4 * k * k + 7 * k + blocks, 0, words


@calls(Expm)
def expm(m: Matrices, x: Node) -> Node:
    n, _ = m.size(x)
    work = Work(6 * n * n, n + 1)
    return m.call("expm", x.type, [n], x, work=work, multiplications=10 * n * n * n)(x)


@calls(Cofactor)
def cofactor(m: Matrices, x: Node) -> Node:
    sizes, work = _decomposition(m, x)
    n = sizes[0]
    return m.call("cofactor", x.type, sizes, x, work=work, multiplications=4 * n * n * n)(x)


@calls(CofactorSlope)
def cofactor_slope(m: Matrices, x: Node, t: Node) -> Node:
    sizes, work = _decomposition(m, x)
    n = sizes[0]
    call = m.call(
        "cofactor_slope",
        x.type,
        sizes,
        x,
        initialises_output=False,
        work=work,
        multiplications=30 * n * n * n,
    )
    return call(owned(x), in_memory(t))


def _decomposition(m: Matrices, x: Node) -> tuple[list[Size], Work]:
    """The sizes and the workspace of a routine that decomposes square matrices."""
    n, _ = m.size(x)
    space, reals, words = _singular_work(m, n, n, n)
    return [n, space, reals], Work(3 * n * n + space, n + reals + words)


ORDER = "dag_order"  # the routine's name
EACH = 8  # multiply-adds in whose time a node or an edge is put in order


ROUTINES.add(DagOrder.name)


@lowers(DagOrder)
def ordered_nodes(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """The order of nodes, for each graph of a stack."""
    (edges,), n = inputs, node.attrs["nodes"]
    e = edges.shape[-1]
    call = LibCall(
        ORDER,
        node.type,
        [n, e],
        node,
        batch=edges.type.rank - 2,
        initialises_output=False,
        work=n,
        cost=EACH * (n + e),
        can_fail=True,
    )
    return call(in_memory(edges))
