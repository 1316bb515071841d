"""Operations of linear algebra as calls of routines.

Half precision is computed in float32. What LAPACK wants otherwise than we have it (the symmetric
part, a transpose, room for what it returns) is made of ordinary nodes around the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.backends.kernel.buffer import accumulator_of
from retrograd.backends.kernel.call import Call, by_reference, in_memory, owned
from retrograd.ir import Dim, Node
from retrograd.ops.elementwise import cast
from retrograd.ops.linalg import matrix
from retrograd.ops.shape import pad

Rule = Callable[[Node, Sequence[Node], dict[Any, Node]], Node]
OVERHEAD = 20_000  # multiply-adds in whose time a routine of LAPACK is called
# LAPACK writes to the first word of its workspace even where there is nothing to do.
BLOCK = 64  # columns that LAPACK does at a time, where it has the space
SLOW = 4  # times that a multiply-add in a factorisation takes as long as one in a product


def cost(work: int | Dim) -> int | Dim:
    """What a routine that does so many multiply-adds is taken to cost."""
    return SLOW * work + OVERHEAD


def widened(rule: Rule) -> Rule:
    """Half precision by way of float32."""

    def wide(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
        dtype = node.dtype
        if not dtype.is_half:
            return rule(node, inputs, known)
        return cast(rule(node, [cast(x, accumulator_of(dtype)) for x in inputs], known), dtype)

    return wide


def given(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Ops that give their second operand a derivative."""
    return inputs[1]


@widened
def cholesky(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    n, rank = x.shape[-1], x.type.rank
    above = node.attrs["upper"]
    half = (matrix.upper if above else matrix.lower)(matrix.symmetric(x))
    name = "cholesky_upper" if above else "cholesky_lower"
    call = Call(name, x.type, [n], node, batch=rank - 2, cost=cost(n * n * n // 6), refuses=True)
    return call(half)


@widened
def triangular_solve(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    a, b = inputs
    n, k = b.shape[-2:]
    flags = "".join([str(int(node.attrs[s])) for s in ("upper", "transpose", "unit")])
    call = Call(
        f"triangular_solve_{flags}", b.type, [n, k], node, batch=b.type.rank - 2,
        cost=cost(n * n * k // 2), refuses=not node.attrs["unit"],
    )  # fmt: skip
    return call(b, in_memory(a))


@widened
def lu(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    (m, n), none = x.shape[-2:], (0,) * (x.type.rank - 2)
    room = pad(matrix.transpose(x), (*none, 0, 0), (*none, 2, 0))
    call = Call(
        "lu", room.type, [m, n], node, batch=len(none), work=(n + 1) // 2,
        cost=cost(m * n * n // 3),
    )  # fmt: skip
    return call(room)


@widened
def solve(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    _, f, b = inputs
    n, k = b.shape[-2:]
    call = Call(
        "solve_transposed" if node.attrs["transpose"] else "solve", b.type, [n, k], node,
        batch=b.type.rank - 2, cost=cost(n * n * k), refuses=True,
    )  # fmt: skip
    return call(b, in_memory(f))


@widened
def inv(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    a, f = inputs
    n = a.shape[-1]
    call = Call(
        "inv", a.type, [n], node, batch=a.type.rank - 2, fills=False,
        work=n * n + (BLOCK + 1) * n + 1, cost=cost(n * n * n), refuses=True,
    )  # fmt: skip
    return call(in_memory(f))


@widened
def qr(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    (m, n), none = x.shape[-2:], (0,) * (x.type.rank - 2)
    room = pad(matrix.transpose(x), (*none, 0, 0), (*none, 0, n))
    call = Call(
        "qr", room.type, [m, n], node, batch=len(none), work=n + BLOCK * n + 1,
        cost=cost(2 * m * n * n),
    )  # fmt: skip
    return call(room)


@widened
def complement(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (q,) = inputs
    (m, k), none = q.shape[-2:], (0,) * (q.type.rank - 2)
    room = pad(matrix.transpose(q), (*none, 0, 0), (*none, m - k, 0))
    call = Call(
        "complete", room.type, [m, k], node, batch=len(none), work=k + BLOCK * m + 1,
        cost=cost(2 * m * m * k),
    )  # fmt: skip
    return matrix.transpose(matrix.rows(call(room), k, m))


@widened
def eigh(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    n, none = x.shape[-1], (0,) * (x.type.rank - 2)
    room = pad(matrix.symmetric(x), (*none, 1, 0), (*none, 0, 0))
    call = Call(
        "eigh", room.type, [n], node, batch=len(none), work=_eigen_work(n),
        cost=cost(5 * n * n * n), refuses=True,
    )  # fmt: skip
    return call(room)


@widened
def eigvalsh(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    n = x.shape[-1]
    call = Call(
        "eigvalsh", node.type.with_dtype(x.dtype), [n], node, batch=x.type.rank - 2, fills=False,
        work=_eigen_work(n), cost=cost(n * n * n), refuses=True,
    )  # fmt: skip
    return call(owned(matrix.symmetric(x)))


def _eigen_work(n: int | Dim) -> int | Dim:
    """Words that `syevd` takes: of numbers `1 + 6 n + 2 n^2` and room for blocks, of integers
    `3 + 5 n` halves."""
    return 1 + (6 + BLOCK) * n + 2 * n * n + 2 + 3 * n


@widened
def svd(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    (m, n), k = x.shape[-2:], node.shape[-1]
    call = Call(
        "svd", node.type.with_dtype(x.dtype), [m, n, k], node, batch=x.type.rank - 2, fills=False,
        work=m * k + _singular_work(m, n, k), cost=cost(10 * m * n * k), refuses=True,
    )  # fmt: skip
    return call(owned(matrix.transpose(x)))


@widened
def svdvals(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    (m, n), k = x.shape[-2:], node.shape[-1]
    call = Call(
        "svdvals", node.type.with_dtype(x.dtype), [m, n, k], node, batch=x.type.rank - 2,
        fills=False, work=_singular_work(m, n, k), cost=cost(2 * m * n * k), refuses=True,
    )  # fmt: skip
    return call(owned(matrix.transpose(x)))


def _singular_work(m: int | Dim, n: int | Dim, k: int | Dim) -> int | Dim:
    """Words that `gesdd` takes: of numbers `4 k^2 + 7 k`, the larger size, and room for blocks; of
    integers `8 k` halves."""
    return 4 * k * k + 7 * k + (BLOCK + 1) * (m + n) + 4 * k + 1


@widened
def expm(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    n = x.shape[-1]
    call = Call(
        "expm", x.type, [n], node, batch=x.type.rank - 2, work=6 * n * n + n + 1,
        cost=cost(10 * n * n * n),
    )  # fmt: skip
    return call(x)


@widened
def cofactor(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    (x,) = inputs
    n = x.shape[-1]
    call = Call(
        "cofactor", x.type, [n], node, batch=x.type.rank - 2,
        work=3 * n * n + n + _singular_work(n, n, n), cost=cost(4 * n * n * n),
    )  # fmt: skip
    return call(x)


RULES: dict[str, Rule] = {
    "det": given,
    "logabsdet": given,
    "pinv": given,
    "expm": expm,
    "cofactor": cofactor,
    "cofactor_slope": by_reference,
    "eig": by_reference,
    "eigvals": by_reference,
    "paired": by_reference,
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
    "lu": lu,
    "solve": solve,
    "inv": inv,
    "qr": qr,
    "complement": complement,
    "eigh": eigh,
    "eigvalsh": eigvalsh,
    "svd": svd,
    "svdvals": svdvals,
}
