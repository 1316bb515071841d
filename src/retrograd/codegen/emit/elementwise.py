"""Elementwise ops in LLVM: the function that writes each, which `@emits` enters by op.

Each function takes an `OpBuilder` and the operands' registers and returns the result's. A constant
operand is a literal in as many lanes as `OpBuilder` has. Half precision is computed as `float`; the
caller rounds the result. No fast-math flags: every op is rounded by itself, so results do not
depend on what was fused. The functions of mathematics are in `codegen/math/`.
"""

from __future__ import annotations

import math

from retrograd.codegen import math as mathematics
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.op_builder import ELEMENTWISE, Emit, OpBuilder, bits_of, emits
from retrograd.ir import bool_, float32
from retrograd.ops import elementwise as el

__all__ = ["ELEMENTWISE"]


def arithmetic(floats: str, integers: str) -> Emit:
    return lambda at, a, b: at.instruction(floats if at.float else integers, a, b)


def intrinsic(name: str) -> Emit:
    return lambda at, *args: at.call(name, *args)


def compare(floats: str, integers: str) -> Emit:
    return lambda at, a, b: at.compare(floats, integers, a, b)


def bits(name: str) -> Emit:
    return lambda at, a, b: at.instruction(name, a, b)


def extreme(name: str) -> Emit:
    """max or min; a NaN is kept."""

    def emit(at: OpBuilder, a: str, b: str) -> str:
        if at.float:
            return at.call({"max": "maximum", "min": "minimum"}[name], a, b)
        if at.dtype is bool_:
            return at.instruction({"max": "or", "min": "and"}[name], a, b)
        return at.call(("s" if at.signed else "u") + name, a, b)

    return emit


def absorbing(op: str) -> Emit:
    """A product or quotient that a zero first operand absorbs."""

    def emit(at: OpBuilder, a: str, b: str) -> str:
        zero = at.compare("oeq", "eq", a, at.number(0))
        return at.select(zero, a, at.instruction(op, a, b))

    return emit


@emits(el.zzmul)
def zzmul(at: OpBuilder, a: str, b: str) -> str:
    """A product that a zero on either side absorbs."""
    zero = at.number(0)
    product = at.select(at.compare("oeq", "eq", b, zero), zero, at.instruction("fmul", a, b))
    return at.select(at.compare("oeq", "eq", a, zero), zero, product)


@emits(el.neg)
def neg(at: OpBuilder, x: str) -> str:
    return at.instruction("fneg", x) if at.float else at.instruction("sub", at.number(0), x)


@emits(el.abs)
def absolute(at: OpBuilder, x: str) -> str:
    if at.float:
        return at.call("fabs", x)
    return at.call("abs", x, extra="i1 false") if at.signed else x


@emits(el.sign)
def sign(at: OpBuilder, x: str) -> str:
    positive = at.compare("ogt", "gt", x, at.number(0))
    zero = at.compare("oeq", "eq", x, at.number(0))
    if not at.float:
        rest = at.select(zero, at.number(0), at.number(-1))
        return at.select(positive, at.number(1), rest)
    negative = at.compare("olt", "lt", x, at.number(0))
    rest = at.select(zero, at.number(0), x)  # a NaN stays
    rest = at.select(negative, at.number(-1), rest)
    return at.select(positive, at.number(1), rest)


@emits(el.signbit)
def sign_bit(at: OpBuilder, x: str) -> str:
    whole, found = bits_of(at, x)
    return whole.compare("", "lt", found, whole.number(0))


# By name: the step in the bits of the register from a number to the next, and the least positive
# number. Half precision is held as `float`, where its numbers are evenly spaced by bits too, except
# those of float16 that are below its normal range.
STEPS = {
    "float64": (1, 2.0**-1074),
    "float32": (1, 2.0**-149),
    "bfloat16": (1 << 16, 2.0**-133),
    "float16": (1 << 13, 2.0**-24),
}


@emits(el.nextafter)
def next_after(at: OpBuilder, a: str, b: str) -> str:
    step, least = STEPS[at.dtype.name]
    in_float16 = at.dtype.name == "float16"
    at = at.with_dtype(float32) if at.dtype.is_half else at
    zero = at.number(0)
    up = at.compare("olt", "", a, b)
    grows = at.logic("xor", up, at.compare("olt", "", a, zero))
    size = at.call("fabs", a)
    if in_float16:  # infinity is where the number after the largest would be
        size = at.call("minimum", size, at.number(2.0**16))
    whole, found = bits_of(at, size)
    found = whole.instruction(
        "add", found, whole.select(grows, whole.number(step), whole.number(-step))
    )
    moved = whole.cast("bitcast", found, at.dtype)
    if in_float16:
        small = at.compare("ole", "", size, at.number(2.0**-14))
        by = at.select(grows, at.number(least), at.number(-least))
        moved = at.select(small, at.instruction("fadd", size, by), moved)
    moved = at.call("copysign", moved, a)
    first = at.call("copysign", at.number(least), b)
    moved = at.select(at.compare("oeq", "", a, zero), first, moved)
    moved = at.select(at.compare("oeq", "", a, b), b, moved)
    return at.select(at.compare("uno", "", a, b), at.instruction("fadd", a, b), moved)


@emits(el.relu)
def relu(at: OpBuilder, x: str) -> str:
    above = at.compare("ugt", "gt", x, at.number(0))  # a NaN stays
    return at.select(above, x, at.number(0))


@emits(el.reciprocal)
def reciprocal(at: OpBuilder, x: str) -> str:
    return at.instruction("fdiv", at.number(1), x)


@emits(el.clamp)
def clamp(at: OpBuilder, x: str, low: str, high: str) -> str:
    return extreme("min")(at, extreme("max")(at, x, low), high)


@emits(el.isinf)
def is_infinite(at: OpBuilder, x: str) -> str:
    return at.compare("oeq", "", at.call("fabs", x), at.number(math.inf))


@emits(el.isfinite)
def is_finite(at: OpBuilder, x: str) -> str:
    return at.compare("one", "", at.call("fabs", x), at.number(math.inf))


@emits(el.floor_div)
def floor_div(at: OpBuilder, a: str, b: str) -> str:
    return _float_divmod(at, a, b)[0] if at.float else _integer_floor_div(at, a, b)


@emits(el.mod)
def mod(at: OpBuilder, a: str, b: str) -> str:
    if at.float:
        return _float_divmod(at, a, b)[1]
    return at.instruction("sub", a, at.instruction("mul", _integer_floor_div(at, a, b), b))


def _integer_floor_div(at: OpBuilder, a: str, b: str) -> str:
    """Rounded down; by zero gives zero. The one quotient that overflows wraps."""
    nought, one = at.number(0), at.number(1)
    zero = at.compare("", "eq", b, nought)
    if not at.signed:
        return at.select(zero, nought, at.instruction("udiv", a, at.select(zero, one, b)))
    minus = at.compare("", "eq", b, at.number(-1))
    safe = at.select(at.logic("or", zero, minus), one, b)
    quotient, rest = at.instruction("sdiv", a, safe), at.instruction("srem", a, safe)
    differ = at.compare("", "lt", at.instruction("xor", rest, safe), nought)
    inexact = at.compare("", "ne", rest, nought)
    down = at.logic("and", differ, inexact)
    quotient = at.select(down, at.instruction("sub", quotient, one), quotient)
    quotient = at.select(minus, at.instruction("sub", nought, a), quotient)
    return at.select(zero, nought, quotient)


def _float_divmod(at: OpBuilder, a: str, b: str) -> tuple[str, str]:
    """NumPy's floor quotient and remainder: the remainder has the sign of the divisor."""
    zero = at.number(0)
    rest = at.libm("fmod", a, b)
    by_zero = at.compare("oeq", "", b, zero)
    quotient = at.instruction("fdiv", at.instruction("fsub", a, rest), b)
    some = at.compare("une", "", rest, zero)
    negative = at.compare("olt", "", b, zero), at.compare("olt", "", rest, zero)
    differ = at.logic("and", some, at.logic("xor", *negative))
    quotient = at.select(differ, at.instruction("fsub", quotient, at.number(1)), quotient)
    wrapped = at.select(differ, at.instruction("fadd", rest, b), rest)
    remainder = at.select(some, wrapped, at.call("copysign", zero, b))
    whole = at.call("floor", quotient)
    short = at.compare("ogt", "", at.instruction("fsub", quotient, whole), at.number(0.5))
    whole = at.select(short, at.instruction("fadd", whole, at.number(1)), whole)
    exact = at.instruction("fdiv", a, b)
    nothing = at.compare("oeq", "", quotient, zero)
    whole = at.select(nothing, at.call("copysign", zero, exact), whole)
    return at.select(by_zero, exact, whole), at.select(by_zero, rest, remainder)


@emits(el.pow)
def power(at: OpBuilder, a: str, b: str) -> str:
    if at.float:
        return mathematics.power.pow(at, a, b)
    name = f"math.pow.{'s' if at.signed else 'u'}.{at.scalar}"
    at.w.declare(integer_power(name, at.scalar, at.signed))
    return at.each(name, a, b)


def shift(op: str) -> Emit:
    """A shift by the width or more, or by a negative count, moves every bit out."""

    def emit(at: OpBuilder, a: str, b: str) -> str:
        name = ("ashr" if at.signed else "lshr") if op == "right" else "shl"
        width = 8 * at.dtype.itemsize
        count = b.removeprefix(f"splat ({at.scalar} ").removesuffix(")")
        if count.isdigit() and int(count) < width:
            return at.instruction(name, a, b)
        zero = at.number(0)
        inside = at.w.new(f"icmp ult {at.type} {b}, {at.number(width)}")
        moved = at.instruction(name, a, at.select(inside, b, zero))
        keeps_sign = op == "right" and at.signed
        rest = at.instruction("ashr", a, at.number(width - 1)) if keeps_sign else zero
        return at.select(inside, moved, rest)

    return emit


def integer_power(name: str, kind: str, signed: bool) -> str:
    """The definition of an integer power: by squaring, wrapping; negative exponents give 0."""
    w = FunctionBuilder(lambda _: None)
    start, negative = "%b", ""
    if signed:
        negative = w.new(f"icmp slt {kind} %b, 0")
        start = w.new(f"select i1 {negative}, {kind} 0, {kind} %b")

    def square(values: list[str]) -> list[str]:
        n, x, y = values
        odd, product = w.new(f"trunc {kind} {n} to i1"), w.new(f"mul {kind} {y}, {x}")
        return [
            w.new(f"lshr {kind} {n}, 1"),
            w.new(f"mul {kind} {x}, {x}"),
            w.new(f"select i1 {odd}, {kind} {product}, {kind} {y}"),
        ]

    first = [(kind, start), (kind, "%a"), (kind, "1")]
    *_, y = w.repeat_while(first, lambda values: w.new(f"icmp ne {kind} {values[0]}, 0"), square)
    result = w.new(f"select i1 {negative}, {kind} 0, {kind} {y}") if signed else y
    w.line(f"ret {kind} {result}")
    return f"define internal {kind} @{name}({kind} %a, {kind} %b) #1 {{\n{w.text()}\n}}"


emits(el.zmul)(absorbing("fmul"))
emits(el.zdiv)(absorbing("fdiv"))
emits(el.add)(arithmetic("fadd", "add"))
emits(el.sub)(arithmetic("fsub", "sub"))
emits(el.mul)(arithmetic("fmul", "mul"))
emits(el.div)(arithmetic("fdiv", "sdiv"))
emits(el.copysign)(intrinsic("copysign"))
emits(el.floor)(intrinsic("floor"))
emits(el.ceil)(intrinsic("ceil"))
emits(el.trunc)(intrinsic("trunc"))
emits(el.round)(intrinsic("roundeven"))
emits(el.sqrt)(intrinsic("sqrt"))
emits(el.eq)(compare("oeq", "eq"))
emits(el.ne)(compare("une", "ne"))
emits(el.lt)(compare("olt", "lt"))
emits(el.le)(compare("ole", "le"))
emits(el.gt)(compare("ogt", "gt"))
emits(el.ge)(compare("oge", "ge"))
emits(el.isnan)(lambda at, x: at.compare("uno", "", x, x))
emits(el.max)(extreme("max"))
emits(el.min)(extreme("min"))
emits(el.select)(lambda at, c, a, b: at.select(c, a, b))
emits(el.bitwise_not)(
    lambda at, x: at.instruction("xor", x, at.number(1 if at.dtype is bool_ else -1))
)
emits(el.bitwise_and)(bits("and"))
emits(el.bitwise_or)(bits("or"))
emits(el.bitwise_xor)(bits("xor"))
emits(el.shift_left)(shift("left"))
emits(el.shift_right)(shift("right"))
