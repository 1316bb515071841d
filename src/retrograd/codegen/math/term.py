"""Formulas over LLVM registers, written as formulas.

A `Term` is a register of floats, integers or conditions, in as many lanes as its `OpBuilder` has.
Its operators write one instruction each, rounded by itself: `x * y + z` is a product and a sum; a
fused one is written `fma(x, y, z)`. Python's numbers in a formula are constants of the term's
dtype.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrograd.codegen.op_builder import Emit, OpBuilder
from retrograd.ir import DType, bool_, float32, float64, int32, int64


@dataclass(frozen=True)
class Format:
    """How the floats of a dtype are laid out."""

    dtype: DType
    integer: DType  # of the same width
    mantissa: int  # explicit bits
    bias: int  # of the exponent, and the largest exponent
    one: int  # the bits of 1.0
    infinity: int
    magic: float  # added to a small float, leaves it rounded to an integer in the low bits


SINGLE = Format(float32, int32, 23, 127, 0x3F800000, 0x7F800000, 1.5 * 2.0**23)
DOUBLE = Format(float64, int64, 52, 1023, 0x3FF << 52, 0x7FF << 52, 1.5 * 2.0**52)


class Term:
    """A register, and where to write what is made of it."""

    __slots__ = ("at", "name")

    def __init__(self, at: OpBuilder, name: str) -> None:
        self.at = at
        self.name = name

    # -- floats and integers ------------------------------------------------------------------
    def _of(self, x: Operand) -> str:
        return x.name if isinstance(x, Term) else self.at.number(x)

    def like(self, x: float) -> Term:
        """A constant of this term's dtype."""
        return Term(self.at, self.at.number(x))

    def _do(self, floats: str, integers: str, a: Operand, b: Operand) -> Term:
        op = floats if self.at.float else integers
        return Term(self.at, self.at.instruction(op, self._of(a), self._of(b)))

    def __add__(self, x: Operand) -> Term:
        return self._do("fadd", "add", self, x)

    def __radd__(self, x: float) -> Term:
        return self._do("fadd", "add", x, self)

    def __sub__(self, x: Operand) -> Term:
        return self._do("fsub", "sub", self, x)

    def __rsub__(self, x: float) -> Term:
        return self._do("fsub", "sub", x, self)

    def __mul__(self, x: Operand) -> Term:
        return self._do("fmul", "mul", self, x)

    def __rmul__(self, x: float) -> Term:
        return self._do("fmul", "mul", x, self)

    def __truediv__(self, x: Operand) -> Term:
        return self._do("fdiv", "sdiv", self, x)

    def __rtruediv__(self, x: float) -> Term:
        return self._do("fdiv", "sdiv", x, self)

    def __neg__(self) -> Term:
        return Term(self.at, self.at.instruction("fneg", self.name))

    def __abs__(self) -> Term:
        return self.intrinsic("fabs")

    def intrinsic(self, name: str, *others: Operand) -> Term:
        return Term(self.at, self.at.call(name, self.name, *map(self._of, others)))

    def sqrt(self) -> Term:
        return self.intrinsic("sqrt")

    def with_sign_of(self, x: Term) -> Term:
        return self.intrinsic("copysign", x)

    # -- bits of integers and conditions ------------------------------------------------------
    def __and__(self, x: Operand) -> Term:
        return self._do("", "and", self, x)

    def __or__(self, x: Operand) -> Term:
        return self._do("", "or", self, x)

    def __xor__(self, x: Operand) -> Term:
        return self._do("", "xor", self, x)

    def __invert__(self) -> Term:
        return self ^ -1 if self.at.dtype is not bool_ else self ^ True

    def __lshift__(self, x: Operand) -> Term:
        return self._do("", "shl", self, x)

    def __rshift__(self, x: Operand) -> Term:
        """Shifted right; the sign bit is repeated."""
        return self._do("", "ashr", self, x)

    def shifted(self, x: Operand) -> Term:
        """Shifted right; zeros come in."""
        return self._do("", "lshr", self, x)

    # -- comparisons, false for NaN unless it says otherwise ----------------------------------
    def _condition(self, floats: str, integers: str, x: Operand) -> Term:
        found = self.at.compare(floats, integers, self.name, self._of(x))
        return Term(self.at.with_dtype(bool_), found)

    def __lt__(self, x: Operand) -> Term:
        return self._condition("olt", "lt", x)

    def __le__(self, x: Operand) -> Term:
        return self._condition("ole", "le", x)

    def __gt__(self, x: Operand) -> Term:
        return self._condition("ogt", "gt", x)

    def __ge__(self, x: Operand) -> Term:
        return self._condition("oge", "ge", x)

    def equals(self, x: Operand) -> Term:
        return self._condition("oeq", "eq", x)

    def above(self, x: Operand) -> Term:
        """Whether it is greater, or NaN."""
        return self._condition("ugt", "gt", x)

    def is_nan(self) -> Term:
        return self._condition("uno", "", self)

    def anywhere(self) -> str:
        """Whether the condition holds in some lane: a register of one bit."""
        return self.at.anywhere(self.name)

    # -- between dtypes -----------------------------------------------------------------------
    @property
    def format(self) -> Format:
        return DOUBLE if self.at.dtype in (float64, int64) else SINGLE

    def _as(self, how: str, dtype: DType) -> Term:
        return Term(self.at.with_dtype(dtype), self.at.cast(how, self.name, dtype))

    def bits(self) -> Term:
        """The bits of floats as integers."""
        return self._as("bitcast", self.format.integer)

    def floats(self) -> Term:
        """Integers as the bits of floats."""
        return self._as("bitcast", self.format.dtype)

    def rounded(self) -> Term:
        """The value of signed integers, as floats of the same width."""
        return self._as("sitofp", self.format.dtype)

    def double(self) -> Term:
        return self._as("fpext", float64)

    def single(self) -> Term:
        return self._as("fptrunc", float32)


Operand = Term | float


def fma(a: Operand, b: Operand, c: Operand) -> Term:
    """`a * b + c`, rounded once."""
    first = next(x for x in (a, b, c) if isinstance(x, Term))
    at = first.at
    names = [x.name if isinstance(x, Term) else at.number(x) for x in (a, b, c)]
    return Term(at, at.call("fma", *names))


def choose(c: Term, a: Operand, b: Operand) -> Term:
    """`a` where `c`, else `b`."""
    at = next(x.at for x in (a, b) if isinstance(x, Term))
    names = [x.name if isinstance(x, Term) else at.number(x) for x in (a, b)]
    return Term(at, at.select(c.name, *names))


def at_most(x: Term, limit: float) -> Term:
    """The lesser; a NaN stays."""
    return Term(x.at, x.at.lesser(x.name, x.at.number(limit)))


def at_least(x: Term, limit: float) -> Term:
    """The greater; a NaN stays."""
    return Term(x.at, x.at.greater(x.name, x.at.number(limit)))


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """The constant coefficient first; by Horner's rule."""
    return Term(x.at, x.at.polynomial(x.name, coefficients))


def quartic(x: Term, c: Sequence[float]) -> Term:
    """Five coefficients, the constant one first, in the three steps that take least time where
    nothing else is to be done meanwhile."""
    return fma(x * x, fma(x * x, c[4], fma(x, c[3], c[2])), fma(x, c[1], c[0]))


def either(
    at: OpBuilder,
    condition: str,
    yes: Callable[[], Sequence[Term]],
    no: Callable[[], Sequence[Term]],
) -> list[Term]:
    """What one of the two writes, of which only that one is computed; `condition` is of one bit,
    results are of the type that `at` has."""
    ways = [lambda write=write: [y.name for y in write()] for write in (yes, no)]
    return [Term(at, y) for y in at.w.either_of(condition, at.type, *ways)]


def bits_of(value: float, form: Format) -> int:
    """The bits of a number, as the signed integer of its format's width."""
    codes = ("<f", "<i") if form is SINGLE else ("<d", "<q")
    found: int = struct.unpack(codes[1], struct.pack(codes[0], value))[0]
    return found


def formula(f: Callable[..., Term]) -> Emit:
    """A function of terms as what writes an op. Half precision is computed as float32."""

    def emit(at: OpBuilder, *args: str) -> str:
        if at.dtype.is_half:
            at = at.with_dtype(float32)
        return f(*(Term(at, a) for a in args)).name

    return emit
