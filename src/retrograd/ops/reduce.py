"""Reductions. A reduction drops its axes; `expand` puts them back.

Over no elements, sum is 0, prod 1, any False, all True, logsumexp -inf; max, min, argmax and argmin
have no value there, which is an error as soon as the shape says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import (
    Dim,
    Node,
    Op,
    TensorType,
    Trait,
    as_dtype,
    declare,
    float32,
    full,
    int64,
    product,
)
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import (
    ANY,
    BOOLEAN,
    COMPLEX,
    FLOAT,
    NUMBER,
    cast,
    drop_if,
    eq,
    exp,
    isfinite,
    select,
    zmul,
)
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import Iota
from retrograd.ops.numerics import summation
from retrograd.ops.numerics.half import in_float32
from retrograd.ops.shape import Concat, expand, fail, inverse, pad, permute, reshape
from retrograd.ops.shape import slice_axis as part


class Reduction(Op):
    """An op that combines the elements along `axes` into one and drops those axes."""

    traits = frozenset({Trait.READS_MANY})
    arity = 1
    axes: tuple[int, ...]
    kinds: Sequence[str] = NUMBER
    combine: el.Elementwise | None = None  # two elements as one, where that is an op
    empty: float | None = None  # the value over no elements; None: there is none

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.kind not in self.kinds:
            raise DTypeError(f"{self.name} takes {' or '.join(self.kinds)} inputs, not {x}")
        if any(not 0 <= a < x.rank for a in self.axes) or list(self.axes) != sorted(set(self.axes)):
            raise fail(self, x, f"axes are distinct, ascending and within its {x.rank}")
        if self.empty is None and any(x.shape[a] == 0 for a in self.axes):
            raise fail(self, x, "over no elements it has no value")
        return x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in self.axes))

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return types[0].size

    def back(self, y: Node, x: Node) -> Node:
        """A reduced value repeated along the axes it lost."""
        return expand(y, x.shape, self.axes)

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return type(self)(tuple(a + 1 for a in self.axes))(*inputs)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        """Every reduction here is a weighted sum to first order; `weights` are its partials."""
        (t,) = tangents
        if t is None:
            return None
        return ReduceSum(self.axes)(zmul(t, self.weights(y, *inputs)))

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return (zmul(self.back(g, x), self.weights(y, x)),)

    def weights(self, y: Node, x: Node) -> Node:
        """The partial derivative of the result by each element."""
        raise NotImplementedError(self.name)


@declare
class ReduceSum(Reduction):
    """Sum over axes. Half precision is summed in float32.

    Along each axis the error of a sum of n floats is at most `(128 + log2 n) eps` times the sum of
    their magnitudes.
    """

    name = "reduce_sum"
    traits = frozenset({Trait.READS_MANY, Trait.REAL_LINEAR, Trait.WHOLE})
    axes: tuple[int, ...]
    kinds = NUMBER + COMPLEX
    combine = el.add
    empty = 0

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(lambda x: summation.total(x, self.axes), arrays)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (self.back(g, inputs[0]),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else self(tangents[0])


@declare
class ReduceProd(Reduction):
    """Product over axes. Its partials are products of the others, not quotients: zeros are fine."""

    name = "reduce_prod"
    traits = frozenset({Trait.READS_MANY, Trait.WHOLE})
    axes: tuple[int, ...]
    kinds = NUMBER + COMPLEX
    combine = el.mul
    empty = 1

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(lambda x: np.prod(x, axis=self.axes, dtype=x.dtype), arrays)

    def weights(self, y: Node, x: Node) -> Node:
        kept = [i for i in range(x.type.rank) if i not in self.axes]
        order = (*kept, *self.axes)
        moved = permute(x, order)
        rows = (*(x.shape[i] for i in kept), product(x.shape[i] for i in self.axes))
        others = products_of_others(reshape(moved, rows))
        return permute(reshape(others, moved.shape), inverse(order))


def products_of_others(x: Node) -> Node:
    """Along the last axis, the product of all elements but each one.

    For a size known beforehand, a tree of pairwise products, down and up again: 3 n products. For
    a symbolic size, the n x n table with ones on the diagonal, reduced.
    """
    size, lead = x.shape[-1], x.shape[:-1]
    n = size
    if isinstance(n, Dim):
        square = (*lead, n, n)
        rank = len(square)
        diagonal = eq(Iota(square, rank - 2, int64)(), Iota(square, rank - 1, int64)())
        table = select(diagonal, full(1, x.type.with_shape(square)), expand(x, square, (rank - 2,)))
        return ReduceProd((rank - 1,))(table)
    levels = []
    while n > 1:
        if n % 2:
            zeros = (0,) * len(lead)
            x = pad(x, (*zeros, 0), (*zeros, 1), value=1)
        half = (n + 1) // 2
        left, right = part(x, -1, 0, half), part(x, -1, half, 2 * half)
        levels.append((left, right))
        x, n = left * right, half
    others = full(1, x.type)
    for left, right in reversed(levels):
        others = part(others, -1, 0, left.shape[-1])
        others = join(others * right, others * left)
    return part(others, -1, 0, size)


def join(*parts: Node) -> Node:
    """Concatenate along the last axis."""
    return Concat(parts[0].type.rank - 1)(*parts)


def _with_signs(y: Any, x: Any, axes: tuple[int, ...], plus: bool) -> Any:
    """Extrema `y` of `x`, in which a zero is 0.0 if there was one (`plus`), or -0.0 if there was
    one; NumPy takes either."""
    if x.dtype.kind in "biu" or not np.count_nonzero(y == 0):
        return y
    found = np.any((x == 0) & (np.signbit(x) != plus), axis=axes)
    zero = np.where(found == plus, 0.0, -0.0).astype(x.dtype)
    return np.where(y == 0, zero, y)


@declare
class ReduceMax(Reduction):
    """Maximum over axes; NaN if one is NaN. Equal maxima share the gradient."""

    name = "reduce_max"
    traits = frozenset({Trait.READS_MANY, Trait.HANDS_ON, Trait.SIZED, Trait.SELECTING})
    axes: tuple[int, ...]
    kinds = ANY
    combine = el.max

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        self.infer(TensorType(as_dtype(x.dtype), x.shape))  # a symbolic axis may turn out empty
        with np.errstate(invalid="ignore"):
            return _with_signs(np.max(x, axis=self.axes), x, self.axes, plus=True)

    def weights(self, y: Node, x: Node) -> Node:
        hit = cast(eq(x, self.back(y, x)), x.dtype)  # a NaN equals nothing: 0 / 0 for all
        share: Node = hit * self.back(1 / ReduceSum(self.axes)(hit), x)
        return share


@declare
class ReduceMin(Reduction):
    """Minimum over axes; NaN if one is NaN. Equal minima share the gradient."""

    name = "reduce_min"
    traits = frozenset({Trait.READS_MANY, Trait.HANDS_ON, Trait.SIZED, Trait.SELECTING})
    axes: tuple[int, ...]
    kinds = ANY
    combine = el.min

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        self.infer(TensorType(as_dtype(x.dtype), x.shape))
        with np.errstate(invalid="ignore"):
            return _with_signs(np.min(x, axis=self.axes), x, self.axes, plus=False)

    weights = ReduceMax.weights


@declare
class LogSumExp(Reduction):
    """`log(sum(exp(x)))` over axes, without overflow; -inf where every element is -inf.

    Its partials are those of softmax; 0 where every element is -inf, NaN for an element of +inf.
    """

    name = "logsumexp"
    traits = frozenset({Trait.READS_MANY, Trait.TRANSCENDENTAL, Trait.IN_PARTS})
    axes: tuple[int, ...]
    kinds = FLOAT
    empty = -math.inf

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(self._value, arrays)

    def _value(self, x: Any) -> Any:
        top = np.max(x, axis=self.axes, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        return np.log(summation.total(np.exp(x - top), self.axes)) + np.squeeze(top, self.axes)

    def weights(self, y: Node, x: Node) -> Node:
        """Divided by their sum: a large `y` has lost the digits that count here, by a factor that
        is the same for all."""
        wide, top = (cast(v, float32) if v.dtype.is_half else v for v in (x, StopGradient()(y)))
        e = exp(wide - self.back(drop_if(eq(top, full(-math.inf, top.type)), top), wide))
        total = ReduceSum(self.axes)(e)
        some = select(isfinite(top), total, full(1, total.type))  # where not, e is 0 or NaN
        return cast(e / self.back(some, e), x.dtype)


@declare
class ReduceAny(Reduction):
    """Whether any element is true."""

    name = "reduce_any"
    traits = frozenset({Trait.READS_MANY, Trait.ROUNDED_ONCE})
    axes: tuple[int, ...]
    kinds = BOOLEAN
    combine = el.bitwise_or
    empty = False

    def reference(self, *arrays: Any) -> Any:
        return np.any(arrays[0], axis=self.axes)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


@declare
class ReduceAll(ReduceAny):
    """Whether all elements are true."""

    name = "reduce_all"
    combine = el.bitwise_and
    empty = True

    def reference(self, *arrays: Any) -> Any:
        return np.all(arrays[0], axis=self.axes)


@declare
class ArgMax(Op):
    """Index of the first maximum along an axis, as int64; the first NaN counts as the maximum."""

    name = "argmax"
    traits = frozenset({Trait.READS_MANY, Trait.SIZED, Trait.SELECTING})
    arity = 1
    axis: int
    combine = el.max  # of two elements the one whose place it gives

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.is_complex:
            raise DTypeError(f"{self.name} compares real numbers, not {x}")
        if not 0 <= self.axis < x.rank:
            raise fail(self, x, f"the axis must lie within its {x.rank}")
        if x.shape[self.axis] == 0:
            raise fail(self, x, "over no elements it has no value")
        return TensorType(int64, x.shape[: self.axis] + x.shape[self.axis + 1 :])

    def flops(self, result: TensorType, *types: TensorType) -> int | Dim:
        return types[0].size

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        self.infer(TensorType(as_dtype(x.dtype), x.shape))
        return np.argmax(x, axis=self.axis).astype(np.int64)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return type(self)(self.axis + 1)(*inputs)


@declare
class ArgMin(ArgMax):
    """Index of the first minimum along an axis, as int64; the first NaN counts as the minimum."""

    name = "argmin"
    combine = el.min

    def reference(self, *arrays: Any) -> Any:
        (x,) = arrays
        self.infer(TensorType(as_dtype(x.dtype), x.shape))
        return np.argmin(x, axis=self.axis).astype(np.int64)


def reduce_sum(x: Node, axes: Sequence[int]) -> Node:
    """Sum over axes; itself where there are none."""
    return ReduceSum(tuple(axes))(x) if axes else x
