"""Simplification of elementwise operations: identities, entered by op.

Each takes the node and its inputs and gives what may stand in its place, or None. Every one holds
to the bit for every value: NaN, infinities and the sign of zero included (any NaN counts as any
other). That leaves out some of school algebra, and each absence is deliberate:

    x + 0     is 0.0 for x = -0.0; only x + (-0.0) and, for integers, x + 0 go
    x - x     is NaN for infinities        0 * x  is NaN for them and for NaN, -0.0 for x < 0
    0 - x     is 0.0 for x = 0.0, -x is not; only -0.0 - x is -x
    -(a - b)  is -0.0 where a = b, b - a is not
    x ** 2    is x * x rounded correctly, which NumPy's vectorised power is not everywhere
    zmul(g, c) for c < 0 keeps the sign of a zero g, g * c does not
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.ir import DType, Node, Op, bool_
from retrograd.ops import elementwise as e
from retrograd.ops.elementwise import ELEMENTWISE, Cast, cast
from retrograd.ops.shape import Expand
from retrograd.passes.constants import all_ones, is_full, like, nonzero, refill, splat, zero

Identity = Callable[..., Node | None]


class Identities(dict[str, list[Identity]]):
    """The identities of ops, by name, in the order in which they are tried."""

    def hold(self, op: Any, *found: Identity) -> None:
        """Enter identities of an op: an elementwise one, or a class."""
        self.setdefault(op.name, []).extend(found)


ALGEBRA = Identities()


def either(identity: Identity) -> Identity:
    """Of an operation whose two inputs may change places."""
    return lambda y, a, b: identity(y, a, b) or identity(y, b, a)


def inner(op: Op, x: Node) -> Node | None:
    """What `op`, a unary operation, was applied to, if `x` is its result."""
    return x.inputs[0] if x.prim is op else None


def negated(x: Node) -> Node | None:
    """`-x` where it costs nothing: `x` is a negation, or a constant."""
    if x.prim is e.neg:
        return x.inputs[0]
    value = splat(x)
    return None if value is None or x.dtype.kind == "bool" else refill(-value, x.type)


def is_integer(x: Node) -> bool:
    return x.dtype.is_integer


def positive(x: Node, finite: bool) -> bool:
    """Everywhere above zero, and below infinity where `finite`."""
    value = splat(x)
    return value is not None and float(value) > 0 and not (finite and math.isinf(value))


# -- identities of more than a line ---------------------------------------------------------------


def both_negated(y: Node, a: Node, b: Node) -> Node | None:
    """`(-a) * (-b)`, and `(-a) * c` for a constant; the same for `/`."""
    if a.prim is not e.neg and b.prim is not e.neg:
        return None
    left, right = negated(a), negated(b)
    return y.prim(left, right) if left is not None and right is not None else None


def neg_of_product(y: Node, x: Node) -> Node | None:
    """`-(a * c)` is `a * (-c)`."""
    if x.prim is not e.mul:
        return None
    a, b = x.inputs
    if splat(b) is not None:
        return x.prim(a, negated(b))  # type: ignore[arg-type]
    return x.prim(negated(a), b) if splat(a) is not None else None  # type: ignore[arg-type]


def divide_by_power_of_two(y: Node, a: Node, b: Node) -> Node | None:
    """`a / 2**k` is `a * 2**-k`: both are the same real number, rounded once."""
    value = splat(b)
    if value is None or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    with_inverse = like(1 / float(value), b)
    inverse = float(splat(with_inverse))  # type: ignore[arg-type]
    return e.mul(a, with_inverse) if inverse * float(value) == 1 else None


def select_of_select(y: Node, c: Node, a: Node, b: Node) -> Node | None:
    """What the same condition has decided already."""
    if a.prim is e.select and a.inputs[0] is c:
        return y.prim(c, a.inputs[1], b)
    if b.prim is e.select and b.inputs[0] is c:
        return y.prim(c, a, b.inputs[2])
    return None


def select_of_truth(y: Node, c: Node, a: Node, b: Node) -> Node | None:
    """`select(c, true, false)` is `c`, the other way round `not c`."""
    if all_true(a) and all_false(b):
        return c
    return e.bitwise_not(c) if all_false(a) and all_true(b) else None


def all_true(x: Node) -> bool:
    return x.dtype is bool_ and all_ones(x)


def all_false(x: Node) -> bool:
    return x.dtype is bool_ and zero(x)


def compare_with_itself(y: Node, a: Node, b: Node) -> Node | None:
    """Never less or greater; equal unless NaN."""
    if a is not b:
        return None
    if y.prim in (e.lt, e.gt):
        return like(False, y)
    return None if a.dtype.is_float else like(y.prim is not e.ne, y)


def compare_with_truth(y: Node, a: Node, b: Node) -> Node | None:
    """`c == true` is `c`; likewise with `false` and with `!=`."""
    if a.dtype is not bool_ or splat(b) is None:
        return None
    return a if all_true(b) == (y.prim is e.eq) else e.bitwise_not(a)


def lossless(source: DType, target: DType) -> bool:
    """Whether every value of `source` is a value of `target`."""
    if source is target or source is bool_:
        return True
    if source.is_float or target.is_float:
        return target.is_float and _digits(source) <= _digits(target) and _range(source, target)
    spare = target.kind == "int" and source.kind == "uint"
    return target.kind in ("int", source.kind) and source.itemsize + spare <= target.itemsize


def _digits(dtype: DType) -> int:
    """Binary digits that are always kept."""
    if not dtype.is_float:
        return 8 * dtype.itemsize - (dtype.kind == "int")
    return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]


def _range(source: DType, target: DType) -> bool:
    """Whether `target`, a float of enough digits, also has the exponents."""
    return target.name != "float16" or source.name in ("float16", "int8", "uint8")


def cast_of_cast(y: Node, x: Node) -> Node | None:
    """A step in between that loses nothing can be left out.

    From float to integer a cast stops at the ends of the range, from integer to integer it wraps:
    between integers, a step by way of a float counts.
    """
    if not isinstance(x.prim, Cast) or not lossless(x.inputs[0].dtype, x.dtype):
        return None
    (source,) = x.inputs
    by_float = source.dtype.is_integer and x.dtype.is_float and y.dtype.is_integer
    return None if by_float and not lossless(source.dtype, y.dtype) else cast(source, y.dtype)


def below_expand(y: Node, *inputs: Node) -> Node | None:
    """Compute before repeating, not after: `f(expand(x))` is `expand(f(x))`.

    All inputs must be repeated along the same axes, or be the same everywhere. The result of
    repeating costs nothing to read, so the work falls by the number of repetitions.
    """
    repeated = [x for x in inputs if isinstance(x.prim, Expand)]
    if not repeated:
        return None
    first = next((x for x in repeated if x.inputs[0].shape), repeated[0])
    parts = [_narrowed(x, first) for x in inputs]
    if any(p is None for p in parts):
        return None
    return first.prim(y.prim(*parts))  # type: ignore[arg-type]


def _narrowed(x: Node, like: Node) -> Node | None:
    """What `x` repeats, in the shape of what `like` repeats."""
    narrow = like.inputs[0].shape
    if x.prim == like.prim:
        return x.inputs[0]
    value = splat(x)
    if value is not None:
        return refill(value, x.type.with_shape(narrow))
    if isinstance(x.prim, Expand) and not x.inputs[0].shape:
        return Expand(narrow, tuple(range(len(narrow))))(x.inputs[0])
    return None


# -- by op ----------------------------------------------------------------------------------------

# fmt: off
ALGEBRA.hold(
    e.add,
    either(lambda y, a, b: a if is_full(b, -0.0) else None),
    either(lambda y, a, b: e.sub(a, b.inputs[0]) if b.prim is e.neg else None),
)
ALGEBRA.hold(
    e.sub,
    lambda y, a, b: a if is_full(b, 0.0) else None,
    lambda y, a, b: e.neg(b) if is_full(a, -0.0) else None,
    lambda y, a, b: e.add(a, b.inputs[0]) if b.prim is e.neg else None,
    lambda y, a, b: like(0, y) if a is b and is_integer(a) else None,
)
ALGEBRA.hold(
    e.mul,
    either(lambda y, a, b: a if is_full(b, 1) else None),
    either(lambda y, a, b: e.neg(a) if is_full(b, -1) else None),
    either(lambda y, a, b: b if is_integer(b) and zero(b) else None),
    both_negated,
)
ALGEBRA.hold(
    e.div,
    lambda y, a, b: a if is_full(b, 1) else None,
    lambda y, a, b: e.neg(a) if is_full(b, -1) else None,
    divide_by_power_of_two,
    both_negated,
)
ALGEBRA.hold(
    e.zmul,
    lambda y, g, d: g if zero(g) or is_full(d, 1) else None,
    lambda y, g, d: e.mul(g, d) if nonzero(g) or positive(d, finite=True) else None,
)
ALGEBRA.hold(
    e.zdiv,
    lambda y, g, d: g if zero(g) or is_full(d, 1) else None,
    lambda y, g, d: e.div(g, d) if nonzero(g) or positive(d, finite=False) else None,
)
ALGEBRA.hold(e.floor_div, lambda y, a, b: a if is_integer(a) and is_full(b, 1) else None)
ALGEBRA.hold(e.neg, lambda y, x: inner(e.neg, x), neg_of_product)
ALGEBRA.hold(
    e.abs,
    lambda y, x: x if x.prim is e.abs else None,
    lambda y, x: e.abs(x.inputs[0]) if x.prim is e.neg and x.dtype.kind != "uint" else None,
)
ALGEBRA.hold(e.relu, lambda y, x: x if x.prim is e.relu else None)
ALGEBRA.hold(
    e.pow,
    lambda y, a, b: a if is_full(b, 1) else None,
    lambda y, a, b: like(1, y) if zero(b) else None,
)
ALGEBRA.hold(
    e.max,
    lambda y, a, b: a if a is b else None,
    either(lambda y, a, b: a if a.dtype.is_float and is_full(b, -math.inf) else None),
)
ALGEBRA.hold(
    e.min,
    lambda y, a, b: a if a is b else None,
    either(lambda y, a, b: a if a.dtype.is_float and is_full(b, math.inf) else None),
)
ALGEBRA.hold(
    e.select,
    lambda y, c, a, b: a if a is b or all_true(c) else b if all_false(c) else None,
    lambda y, c, a, b: y.prim(c.inputs[0], b, a) if c.prim is e.bitwise_not else None,
    select_of_truth,
    select_of_select,
)
ALGEBRA.hold(e.eq, compare_with_itself, either(compare_with_truth))
ALGEBRA.hold(e.ne, compare_with_itself, either(compare_with_truth))
ALGEBRA.hold(e.lt, compare_with_itself)
ALGEBRA.hold(e.le, compare_with_itself)
ALGEBRA.hold(e.gt, compare_with_itself)
ALGEBRA.hold(e.ge, compare_with_itself)
ALGEBRA.hold(
    e.bitwise_not,
    lambda y, x: inner(e.bitwise_not, x),
    lambda y, x: e.ne(*x.inputs) if x.prim is e.eq else None,
    lambda y, x: e.eq(*x.inputs) if x.prim is e.ne else None,
)
ALGEBRA.hold(
    e.bitwise_and,
    lambda y, a, b: a if a is b else None,
    either(lambda y, a, b: a if all_ones(b) else b if zero(b) else None),
)
ALGEBRA.hold(
    e.bitwise_or,
    lambda y, a, b: a if a is b else None,
    either(lambda y, a, b: a if zero(b) else b if all_ones(b) else None),
)
ALGEBRA.hold(
    e.bitwise_xor,
    lambda y, a, b: like(0, y) if a is b else None,
    either(lambda y, a, b: a if zero(b) else e.bitwise_not(a) if all_ones(b) else None),
)
ALGEBRA.hold(e.shift_left, lambda y, a, b: a if zero(b) else None)
ALGEBRA.hold(e.shift_right, lambda y, a, b: a if zero(b) else None)
ALGEBRA.hold(Cast, lambda y, x: x if x.dtype is y.dtype else None, cast_of_cast)
# fmt: on

for _op in (*ELEMENTWISE.values(), Cast):
    ALGEBRA.hold(_op, below_expand)
