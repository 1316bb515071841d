"""Elementwise ops in WGSL, but for the functions of mathematics (`math.py`).

WGSL lets a compiler assume that there are no infinities and no NaN; where they decide, bits are
looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.ir import bool_, float32
from retrograd.ops import elementwise as el
from retrograd.wgpu.math.bits import require
from retrograd.wgpu.scalar import Emit, OpWriter, emits


def operator(sign: str) -> Emit:
    return lambda at, a, b: f"({a} {sign} {b})"


def ordered(sign: str) -> Emit:
    """A comparison; of two booleans as numbers."""

    def emit(at: OpWriter, a: str, b: str) -> str:
        return f"(u32({a}) {sign} u32({b}))" if at.dtype is bool_ else f"({a} {sign} {b})"

    return emit


def builtin(name: str) -> Emit:
    return lambda at, *args: f"{name}({', '.join(args)})"


def function(name: str, text: Callable[[OpWriter], str]) -> Emit:
    """A call of a function whose parameters and body `text` gives; a type's own."""

    def emit(at: OpWriter, *args: str) -> str:
        own = f"{name}_{at.dtype.name}"
        at.w.declare(f"fn {own}{text(at)}")
        return f"{own}({', '.join(args)})"

    return emit


def bits_type(at: OpWriter) -> str:
    """The unsigned integers of a float's size."""
    return "u64" if at.type == "f64" else "u32"


def word(at: OpWriter, value: int) -> str:
    """A constant of these."""
    return f"{value}lu" if at.type == "f64" else f"{value}u"


def sign_mask(at: OpWriter) -> int:
    return 1 << (63 if at.type == "f64" else 31)


def infinity_bits(at: OpWriter) -> int:
    return 0x7FF << 52 if at.type == "f64" else 0xFF << 23


def magnitude(at: OpWriter, x: str) -> str:
    """The bits of a float without the sign."""
    return f"(bitcast<{bits_type(at)}>({x}) & {word(at, sign_mask(at) - 1)})"


def _extreme(sign: str) -> Emit:
    """max or min; a NaN is kept, and of two zeros the one that is larger, or smaller."""

    def body(at: OpWriter) -> str:
        kind, bits = at.type, bits_type(at)
        join = "&" if sign == ">" else "|"
        return (
            f"(a: {kind}, b: {kind}) -> {kind} {{\n"
            f"  if ({at.is_nan('a')}) {{ return a; }}\n  if ({at.is_nan('b')}) {{ return b; }}\n"
            f"  if (a == b) {{ return bitcast<{kind}>(bitcast<{bits}>(a) {join} "
            f"bitcast<{bits}>(b)); }}\n"
            f"  return select(b, a, a {sign} b);\n}}"
        )

    name = "max" if sign == ">" else "min"
    of_floats = function(f"extreme_{name}", body)

    def emit(at: OpWriter, a: str, b: str) -> str:
        if at.float:
            return of_floats(at, a, b)
        if at.dtype is bool_:
            return f"({a} {'|' if sign == '>' else '&'} {b})"
        return f"{name}({a}, {b})"

    return emit


maximum, minimum = _extreme(">"), _extreme("<")
emits(el.max)(maximum)
emits(el.min)(minimum)
emits(el.clamp)(lambda at, x, low, high: minimum(at, maximum(at, x, low), high))
emits(el.add)(operator("+"))
emits(el.sub)(operator("-"))
emits(el.mul)(operator("*"))
emits(el.eq)(operator("=="))
emits(el.lt)(ordered("<"))
emits(el.le)(ordered("<="))
emits(el.gt)(ordered(">"))
emits(el.ge)(ordered(">="))
emits(el.select)(lambda at, c, a, b: f"select({b}, {a}, {c})")
emits(el.reciprocal)(lambda at, x: f"({at.number(1)} / {x})")
emits(el.floor)(builtin("floor"))
emits(el.ceil)(builtin("ceil"))
emits(el.trunc)(builtin("trunc"))
emits(el.round)(builtin("round"))
emits(el.sqrt)(builtin("sqrt"))
emits(el.isnan)(lambda at, x: at.is_nan(x))
emits(el.isinf)(lambda at, x: f"({magnitude(at, x)} == {word(at, infinity_bits(at))})")
emits(el.isfinite)(lambda at, x: f"({magnitude(at, x)} < {word(at, infinity_bits(at))})")
emits(el.bitwise_and)(operator("&"))
emits(el.bitwise_or)(operator("|"))


@emits(el.bitwise_xor)
def bitwise_xor(at: OpWriter, a: str, b: str) -> str:
    return f"({a} != {b})" if at.dtype is bool_ else f"({a} ^ {b})"


@emits(el.bitwise_not)
def bitwise_not(at: OpWriter, x: str) -> str:
    return f"(!{x})" if at.dtype is bool_ else f"(~{x})"


@emits(el.ne)
def not_equal(at: OpWriter, a: str, b: str) -> str:
    if not at.float:
        return f"({a} != {b})"
    return f"(!({a} == {b}) || {at.is_nan(a)} || {at.is_nan(b)})"


@emits(el.div)
def div(at: OpWriter, a: str, b: str) -> str:
    return f"({a} / {b})"


@emits(el.neg)
def neg(at: OpWriter, x: str) -> str:
    return f"(-{x})" if at.float or at.signed else f"({at.number(0)} - {x})"


@emits(el.abs)
def absolute(at: OpWriter, x: str) -> str:
    return f"abs({x})" if at.float or at.signed else x


@emits(el.copysign)
def copysign(at: OpWriter, a: str, b: str) -> str:
    sign = word(at, sign_mask(at))
    return f"bitcast<{at.type}>({magnitude(at, a)} | (bitcast<{bits_type(at)}>({b}) & {sign}))"


@emits(el.signbit)
def sign_bit(at: OpWriter, x: str) -> str:
    return f"(bitcast<{bits_type(at)}>({x}) >= {word(at, sign_mask(at))})"


@emits(el.sign)
def sign(at: OpWriter, x: str) -> str:
    zero, one = at.number(0), at.number(1)
    if at.dtype.kind == "uint":
        return f"select({zero}, {one}, {x} > {zero})"
    rest = f"select({x}, {zero}, {x} == {zero})"  # a NaN stays
    rest = f"select({rest}, {at.number(-1)}, {x} < {zero})"
    return f"select({rest}, {one}, {x} > {zero})"


@emits(el.relu)
def relu(at: OpWriter, x: str) -> str:
    zero = at.number(0)
    if not at.float:
        return f"max({x}, {zero})"
    return f"select({zero}, {x}, ({x} > {zero}) || {at.is_nan(x)})"  # a NaN stays


@emits(el.zmul)
def zmul(at: OpWriter, a: str, b: str) -> str:
    """A product that a zero first operand absorbs."""
    return f"select({a} * {b}, {a}, {a} == {at.number(0)})"


@emits(el.zdiv)
def zdiv(at: OpWriter, a: str, b: str) -> str:
    return f"select({a} / {b}, {a}, {a} == {at.number(0)})"


@emits(el.zzmul)
def zzmul(at: OpWriter, a: str, b: str) -> str:
    """A product that a zero on either side absorbs."""
    zero = at.number(0)
    return f"select({a} * {b}, {zero}, ({a} == {zero}) || ({b} == {zero}))"


def _shift(way: str) -> Emit:
    """A shift by the width or more, or by a negative count, moves every bit out."""

    def emit(at: OpWriter, a: str, b: str) -> str:
        width, wide = 8 * at.dtype.itemsize, at.dtype.itemsize == 8
        count = b.rstrip("liu")
        if count.isdigit() and int(count) < width:
            return f"({a} {'<<' if way == 'left' else '>>'} {count}u)"
        moved = f"({a} {'<<' if way == 'left' else '>>'} (u32({b}) & {63 if wide else 31}u))"
        rest = at.number(0)
        if way == "right" and at.signed:
            rest = f"({a} >> {63 if wide else 31}u)"
        inside = f"({b} < {at.number(width)})"
        if at.signed:
            inside = f"({inside} && ({b} >= {at.number(0)}))"
        return f"select({rest}, {moved}, {inside})"

    return emit


emits(el.shift_left)(_shift("left"))
emits(el.shift_right)(_shift("right"))


# -- remainders -----------------------------------------------------------------------------------
def fmod(at: OpWriter, a: str, b: str) -> str:
    """The exact remainder of truncated division."""
    return f"{require(at.w, f'fmod_{at.type}')}({a}, {b})"


def _float_mod(at: OpWriter) -> str:
    """NumPy's remainder: it has the sign of the divisor."""
    zero = at.number(0)
    return f"""(a: {at.type}, b: {at.type}) -> {at.type} {{
  let rest = {fmod(at, "a", "b")};
  if (b == {zero}) {{ return rest; }}
  if (rest == {zero}) {{ return {copysign(at, zero, "b")}; }}
  return select(rest, rest + b, (b < {zero}) != (rest < {zero}));
}}"""


def _float_floor_div(at: OpWriter) -> str:
    """NumPy's floor quotient."""
    zero, one = at.number(0), at.number(1)
    return f"""(a: {at.type}, b: {at.type}) -> {at.type} {{
  if (b == {zero}) {{ return a / b; }}
  let rest = {fmod(at, "a", "b")};
  var quotient = (a - rest) / b;
  if (!(rest == {zero}) && ((b < {zero}) != (rest < {zero}))) {{ quotient = quotient - {one}; }}
  if (quotient == {zero}) {{ return {copysign(at, zero, "a / b")}; }}
  var whole = floor(quotient);
  if (quotient - whole > {at.number(0.5)}) {{ whole = whole + {one}; }}
  return whole;
}}"""


def _integer_floor_div(at: OpWriter) -> str:
    """Rounded down; by zero gives zero. The one quotient that overflows wraps."""
    zero, one = at.number(0), at.number(1)
    head = (
        f"(a: {at.type}, b: {at.type}) -> {at.type} {{\n  if (b == {zero}) {{ return {zero}; }}\n"
    )
    if not at.signed:
        return f"{head}  return a / b;\n}}"
    return f"""{head}  if (b == {at.number(-1)}) {{ return {zero} - a; }}
  let quotient = a / b;
  let rest = a - quotient * b;
  return select(quotient, quotient - {one}, rest != {zero} && ((rest ^ b) < {zero}));
}}"""


float_mod = function("float_mod", _float_mod)
float_floor_div = function("float_floor_div", _float_floor_div)
integer_floor_div = function("integer_floor_div", _integer_floor_div)


@emits(el.floor_div)
def floor_div(at: OpWriter, a: str, b: str) -> str:
    return (float_floor_div if at.float else integer_floor_div)(at, a, b)


@emits(el.mod)
def mod(at: OpWriter, a: str, b: str) -> str:
    if at.float:
        return float_mod(at, a, b)
    return f"({a} - {integer_floor_div(at, a, b)} * {b})"


# -- neighbours -----------------------------------------------------------------------------------
# By name: the step in the bits of the register from a number to the next, and the bits of the
# least positive one. Half precision is held as float32, where its numbers are evenly spaced by
# bits too, except those of float16 that are below its normal range.
STEPS = {
    "float64": (1, 1),
    "float32": (1, 1),
    "bfloat16": (1 << 16, 1 << 16),
    "float16": (1 << 13, 0x33800000),
}


def _next_after(at: OpWriter) -> str:
    kind, bits, (step, least) = at.type, bits_type(at), STEPS[at.dtype.name]
    in_float16 = at.dtype.name == "float16"
    mask = word(at, sign_mask(at))
    small = ""
    if in_float16:
        number = OpWriter(at.w, float32).number
        by = f"select(-{number(2.0**-24)}, {number(2.0**-24)}, grows)"
        small = (
            f"  if (size > 0x47800000u) {{ size = 0x47800000u; }}\n"
            f"  if (size < 0x38800000u || (size == 0x38800000u && !grows)) {{\n"
            f"    let moved = bitcast<f32>(size) + {by};\n"
            "    return bitcast<f32>(bitcast<u32>(moved) | sign);\n  }\n"
        )
    return f"""(a: {kind}, b: {kind}) -> {kind} {{
  if ({at.is_nan("a")} || {at.is_nan("b")}) {{ return a + b; }}
  if (a == b) {{ return b; }}
  let sign = bitcast<{bits}>(a) & {mask};
  if ({magnitude(at, "a")} == {word(at, 0)}) {{
    return bitcast<{kind}>((bitcast<{bits}>(b) & {mask}) | {word(at, least)});
  }}
  let grows = (a < b) != (sign != {word(at, 0)});
  var size = {magnitude(at, "a")};
{small}  size = select(size - {word(at, step)}, size + {word(at, step)}, grows);
  return bitcast<{kind}>(size | sign);
}}"""


emits(el.nextafter)(function("next_after", _next_after))
