"""Operations of linear algebra as calls of routines.

Half precision is computed in float32. What LAPACK wants otherwise than we have it (the symmetric
part, a transpose, room for what it returns) is made of ordinary nodes around the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.backends.kernel.buffer import accumulator_of
from retrograd.backends.kernel.call import Call, in_memory
from retrograd.ir import Dim, Node
from retrograd.ops.elementwise import cast
from retrograd.ops.linalg import matrix

Rule = Callable[[Node, Sequence[Node], dict[Any, Node]], Node]
OVERHEAD = 20_000  # multiply-adds in whose time a routine of LAPACK is called
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
    flags = [int(node.attrs[s]) for s in ("upper", "transpose", "unit")]
    call = Call(
        "triangular_solve", b.type, [n, k, *flags], node, batch=b.type.rank - 2,
        cost=cost(n * n * k // 2), refuses=not node.attrs["unit"],
    )  # fmt: skip
    return call(b, in_memory(a))


RULES: dict[str, Rule] = {"cholesky": cholesky, "triangular_solve": triangular_solve}
