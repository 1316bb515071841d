"""`dot_general`, the contraction that matmul, einsum, tensordot and linear layers are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Dim, Node, Op, TensorType, Trait, bool_, declare, product
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.numerics.summation import in_halves
from retrograd.ops.shape import fail, inverse, permute


class BilinearOp(Op):
    """An op that is linear in each of its two inputs."""

    arity = 2

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (ta, tb), (a, b) = tangents, inputs
        left = self(ta, b) if ta is not None else None
        right = self(a, tb) if tb is not None else None
        if left is None or right is None:
            return right if left is None else left
        total: Node = left + right
        return total


@declare
class DotGeneral(BilinearOp):
    """Sum of products over paired axes.

    `a_batch[i]` of `a` is paired with `b_batch[i]` of `b` and kept once, in front; `a_contract[i]`
    is paired with `b_contract[i]` and summed over; then come the other axes of `a`, then those of
    `b`. Half precision is accumulated in float32. The error of a sum of n products is at most
    `(128 + log2 n) eps` times the sum of their magnitudes.
    """

    name = "dot_general"
    traits = frozenset({Trait.READS_MANY, Trait.EXPENSIVE, Trait.KEPT})
    a_contract: tuple[int, ...]
    b_contract: tuple[int, ...]
    a_batch: tuple[int, ...] = ()
    b_batch: tuple[int, ...] = ()

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.dtype is not b.dtype or a.dtype is bool_:
            raise DTypeError(f"{self.name} takes numbers of one dtype, not {a} and {b}")
        a_used, b_used = (*self.a_batch, *self.a_contract), (*self.b_batch, *self.b_contract)
        for x, used in ((a, a_used), (b, b_used)):
            if len(set(used)) != len(used) or any(not 0 <= i < x.rank for i in used):
                raise fail(self, x, f"axes are distinct and within its {x.rank}")
        if len(self.a_batch) != len(self.b_batch) or len(a_used) != len(b_used):
            raise fail(self, a, f"axes of it and of {b} come in pairs")
        for i, j in zip(a_used, b_used, strict=True):
            if a.shape[i] != b.shape[j]:
                raise fail(self, a, f"axis {i} of {a} is paired with axis {j} of {b}")
        batch = tuple(a.shape[i] for i in self.a_batch)
        a_free = tuple(a.shape[i] for i in self.free(a.rank, a_used))
        b_free = tuple(b.shape[j] for j in self.free(b.rank, b_used))
        return a.with_shape(batch + a_free + b_free)

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return 2 * result.size * product(types[0].shape[i] for i in self.a_contract)

    @staticmethod
    def free(rank: int, used: Sequence[int]) -> tuple[int, ...]:
        """The axes that are neither batch nor contracted."""
        return tuple(i for i in range(rank) if i not in used)

    def free_axes(self, a_rank: int, b_rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The kept, unpaired axes of `a` and of `b`."""
        return (
            self.free(a_rank, (*self.a_batch, *self.a_contract)),
            self.free(b_rank, (*self.b_batch, *self.b_contract)),
        )

    def reference(self, *arrays: Any) -> Any:
        a, b = arrays
        a_free, b_free = self.free_axes(a.ndim, b.ndim)
        batch = tuple(a.shape[i] for i in self.a_batch)
        shape = batch + tuple(a.shape[i] for i in a_free) + tuple(b.shape[j] for j in b_free)
        inner = math.prod(a.shape[i] for i in self.a_contract)
        rows = math.prod(a.shape[i] for i in a_free)
        columns = math.prod(b.shape[j] for j in b_free)
        left = np.transpose(a, (*self.a_batch, *a_free, *self.a_contract))
        right = np.transpose(b, (*self.b_batch, *self.b_contract, *b_free))
        stacks = left.reshape(*batch, rows, inner), right.reshape(*batch, inner, columns)
        with np.errstate(all="ignore"):
            return in_float32(_product, stacks).reshape(shape)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        a, b = inputs
        n = len(self.a_batch)
        a_free, b_free = self.free_axes(a.type.rank, b.type.rank)
        g_batch = tuple(range(n))
        g_a = tuple(range(n, n + len(a_free)))
        g_b = tuple(range(n + len(a_free), n + len(a_free) + len(b_free)))
        # Contract g with the other operand over the other's free axes; what comes out is ordered
        # batch, own free, contracted (sorted as the other operand has them).
        ga = DotGeneral(g_b, b_free, g_batch, self.b_batch)(g, b)
        gb = DotGeneral(g_a, a_free, g_batch, self.a_batch)(g, a)
        a_came = (*self.a_batch, *a_free, *_sorted_by(self.b_contract, self.a_contract))
        b_came = (*self.b_batch, *b_free, *_sorted_by(self.a_contract, self.b_contract))
        return permute(ga, inverse(a_came)), permute(gb, inverse(b_came))

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        a, b = inputs
        up = tuple(x + 1 for x in self.a_contract), tuple(x + 1 for x in self.a_batch)
        vp = tuple(x + 1 for x in self.b_contract), tuple(x + 1 for x in self.b_batch)
        n = len(self.a_batch)
        if all(batched):
            return DotGeneral(up[0], vp[0], (0, *up[1]), (0, *vp[1]))(a, b)
        # One operand is shared: the samples are one more free axis of the other.
        if batched[0]:
            y = DotGeneral(up[0], self.b_contract, up[1], self.b_batch)(a, b)
            at = n
        else:
            y = DotGeneral(self.a_contract, vp[0], self.a_batch, vp[1])(a, b)
            at = a.type.rank - len(self.a_contract)  # behind what a brings
        return permute(y, (at, *(i for i in range(y.type.rank) if i != at)))


def _product(a: Any, b: Any) -> Any:
    """Stacks of matrices multiplied by NumPy, which adds up products in an order of its own, and to
    0.0: a sum of one -0.0 would be 0.0."""
    if a.shape[-1] == 1:
        return a * b

    def part(first: int, last: int) -> Any:
        return np.matmul(a[..., first:last], b[..., first:last, :])

    return in_halves(part, a.shape[-1])


def _sorted_by(keys: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The axes in the order of their partners."""
    return tuple(axis for _, axis in sorted(zip(keys, axes, strict=True)))


def matmul(a: Node, b: Node) -> Node:
    """Matrix product of nodes of rank 2, or stacks of equal leading shape."""
    n = a.type.rank
    batch = tuple(range(n - 2))
    return DotGeneral((n - 1,), (n - 2,), batch, batch)(a, b)


def sums_along(node: Node) -> bool:
    """Whether the products of a contraction are added along rows of its operands: where b has no
    columns, and a has no rows or is summed along them. Axes of size 1 count as not there.

    Backends add them as sixteen partial sums then, else as one: this is part of what a contraction
    means, and no pass may change it.
    """
    (a, b), prim = node.inputs, node.prim
    assert isinstance(prim, DotGeneral)
    a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
    wide_a, wide_b = (any(x.shape[i] != 1 for i in f) for x, f in ((a, a_free), (b, b_free)))
    last = max((i for i, d in enumerate(a.shape) if d != 1), default=-1)
    return not wide_b and (not wide_a or last in prim.a_contract)
