"""Functions of a module that are written in WGSL itself: those that work on bits.

A function declares those that it calls, as it is found in their text.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Protocol

from retrograd.codegen.math.range_reduction import FRACTION_BITS, TWO_BY_PI, TWO_BY_PI_BITS
from retrograd.errors import BackendError

# 2/pi in words of 32 bits, the highest first, and the lowest first with two words of zeros behind.
_WORDS = [TWO_BY_PI >> (TWO_BY_PI_BITS - 32 * (k + 1)) & 0xFFFFFFFF for k in range(38)]
_UPWARD = [*reversed(_WORDS), 0, 0]
# pi/2 in two parts of 12 bits and what is left.
_PARTS = (3216 / 2048, 4058 / 8388608, math.pi / 2 - 3216 / 2048 - 4058 / 8388608)


def _listed(words: list[int]) -> str:
    return ", ".join(f"{word}u" for word in words)


# A number that compilers do not know to be zero: the entry point assigns it, from a buffer.
OPAQUE_ZERO = "var<private> opaque_zero: i32;"

# By the name of the function; where `{f}` stands there is one for each width of floats.
_OF_FLOATS = {
    # A sum or product as it stands: neither reassociated nor contracted with what it is used for.
    "exact": """fn exact_{f}(x: {f}) -> {f} {{
  return bitcast<{f}>(bitcast<{i}>(x) ^ {opaque});
}}""",
    # Run-time bits: a constant that is infinite or NaN would be an error.
    "of_bits": "fn of_bits_{f}(bits: {i}) -> {f} {{ return bitcast<{f}>(bits); }}",
    # No comparison of floats: compilers assume that a number equals itself.
    "is_nan": """fn is_nan_{f}(x: {f}) -> bool {{
  return (bitcast<{i}>(x) & {most}) > {infinity};
}}""",
    "copysign": """fn copysign_{f}(x: {f}, sign: {f}) -> {f} {{
  return bitcast<{f}>((bitcast<{i}>(x) & {most}) | (bitcast<{i}>(sign) & ~{most}));
}}""",
    # A NaN is kept, and +0 is greater than -0.
    "maximum": """fn maximum_{f}(a: {f}, b: {f}) -> {f} {{
  if is_nan_{f}(a) {{ return a; }}
  if is_nan_{f}(b) || b > a {{ return b; }}
  if a > b {{ return a; }}
  return bitcast<{f}>(bitcast<{i}>(a) & bitcast<{i}>(b));
}}""",
    "minimum": """fn minimum_{f}(a: {f}, b: {f}) -> {f} {{
  if is_nan_{f}(a) {{ return a; }}
  if is_nan_{f}(b) || b < a {{ return b; }}
  if a < b {{ return a; }}
  return bitcast<{f}>(bitcast<{i}>(a) | bitcast<{i}>(b));
}}""",
    # a b + c of the rest of the product, by Veltkamp's split and Dekker's product: rounded once,
    # but for the last bit of a rest.
    "fma": """fn fma_{f}(a: {f}, b: {f}, c: {f}) -> {f} {{
  let p = exact_{f}(a * b);
  let u = exact_{f}({split} * a);
  let a1 = exact_{f}(u - exact_{f}(u - a));
  let a2 = a - a1;
  let v = exact_{f}({split} * b);
  let b1 = exact_{f}(v - exact_{f}(v - b));
  let b2 = b - b1;
  let low = exact_{f}(exact_{f}(exact_{f}(a1 * b1) - p) + a1 * b2 + a2 * b1) + a2 * b2;
  let s = exact_{f}(p + c);
  let part = exact_{f}(s - p);
  let rest = (exact_{f}(p - exact_{f}(s - part)) + exact_{f}(c - part)) + low;
  let y = s + rest;
  return select(s, y, rest != {nought} && abs(rest) < {huge});
}}""",
    # Exact, by shifts and differences of significands.
    "fmod": """fn fmod_{f}(x: {f}, y: {f}) -> {f} {{
  let xi = bitcast<{u}>(x);
  let sign = xi & ~{umost};
  var a = xi & {umost};
  var b = bitcast<{u}>(y) & {umost};
  if b == {zero} || b > {uinfinity} || a >= {uinfinity} {{ return of_bits_{f}({nan}); }}
  if a < b {{ return x; }}
  var ex = i32(a >> {mantissa}u);
  var ey = i32(b >> {mantissa}u);
  if ex == 0 {{ ex = 1; }} else {{ a = (a & {fraction}) | {hidden}; }}
  if ey == 0 {{ ey = 1; }} else {{ b = (b & {fraction}) | {hidden}; }}
  while a < {hidden} {{ a = a << 1u; ex--; }}
  while b < {hidden} {{ b = b << 1u; ey--; }}
  while ex > ey {{
    if a >= b {{ a = a - b; }}
    a = a << 1u;
    ex--;
  }}
  if a >= b {{ a = a - b; }}
  if a == {zero} {{ return bitcast<{f}>(sign); }}
  while a < {hidden} {{ a = a << 1u; ex--; }}
  if ex > 0 {{
    a = (a & {fraction}) | ({u}(ex) << {mantissa}u);
  }} else {{
    a = a >> u32(1 - ex);
  }}
  return bitcast<{f}>(a | sign);
}}""",
}

_F32 = {
    "f": "f32", "i": "i32", "u": "u32", "most": "0x7fffffffi", "infinity": "0x7f800000i",
    "umost": "0x7fffffffu", "uinfinity": "0x7f800000u", "nan": "0x7fc00000i", "zero": "0u",
    "mantissa": "23", "fraction": "0x7fffffu", "hidden": "0x800000u", "split": "4097.0f",
    "opaque": "opaque_zero", "huge": "1e30f", "nought": "0.0f",
}  # fmt: skip
_F64 = {
    "f": "f64", "i": "i64", "u": "u64", "most": "0x7fffffffffffffffli",
    "infinity": "0x7ff0000000000000li", "umost": "0x7ffffffffffffffflu",
    "uinfinity": "0x7ff0000000000000lu", "nan": "0x7ff8000000000000li", "zero": "0lu",
    "mantissa": "52", "fraction": "0xffffffffffffflu", "hidden": "0x10000000000000lu",
    "split": "134217729.0lf",
    "opaque": "i64(opaque_zero)", "huge": "1e300lf", "nought": "0.0lf",
}  # fmt: skip

FUNCTIONS = {
    f"{name}_{form['f']}": text.format(**form)
    for name, text in _OF_FLOATS.items()
    for form in (_F32, _F64)
}
FUNCTIONS |= {
    # The product is exact in float64, and the sum good enough.
    "fma_by_f64_f32": """fn fma_by_f64_f32(a: f32, b: f32, c: f32) -> f32 {
  return f32(f64(a) * f64(b) + f64(c));
}""",
    # The 64 bits of a product, the low ones first.
    "product_u32": """fn product_u32(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  let high = (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
  return vec2<u32>((other << 16u) | (low & 0xffffu), high);
}""",
    # The method of Payne and Hanek, as in codegen/math/range_reduction.py. Of single precision: the
    # product with the significand modulo 4, 62 bits behind the point, the low word first.
    "turned_f32": f"""fn turned_f32(a: f32) -> vec2<u32> {{
  var table = array<u32, 7>(0u, {_listed(_WORDS[:6])});
  let bits = bitcast<u32>(a);
  let significand = ((bits & 0x7fffffu) | 0x800000u) << 8u;
  let first = (bits >> 23u) - 128u;
  let shift = first & 31u;
  var words = array<u32, 3>();
  for (var k = 0u; k < 3u; k++) {{
    let at = min((first >> 5u) + k, 5u);
    let above = table[at];
    words[k] = select((above << shift) | (table[at + 1u] >> (32u - shift)), above, shift == 0u);
  }}
  let low = product_u32(significand, words[2]);
  let middle = product_u32(significand, words[1]);
  let sum = middle.x + low.y;
  let carry = select(0u, 1u, sum < middle.x);
  return vec2<u32>(sum, middle.y + significand * words[0] + carry);
}}""",
    "far_turns_f32": """fn far_turns_f32(a: f32) -> f32 {
  return f32((turned_f32(a).y + 0x20000000u) >> 30u);
}""",
    # Products of halves of 12 bits are exact.
    "far_rest_f32": f"""fn far_rest_f32(a: f32) -> f32 {{
  let words = turned_f32(a);
  var high = (words.y << 2u) | (words.x >> 30u);
  var low = words.x << 2u;
  let negative = (high >> 31u) == 1u;
  if negative {{
    low = ~low + 1u;
    high = ~high + select(0u, 1u, low == 0u);
  }}
  var skipped = countLeadingZeros(high);
  if skipped == 32u {{
    high = low;
    low = 0u;
    skipped = skipped + countLeadingZeros(high);
  }}
  let up = skipped & 31u;
  high = select((high << up) | (low >> (32u - up)), high, up == 0u);
  low = low << up;
  let one = f32((high >> 20u) << 12u);
  let two = f32((high >> 8u) & 0xfffu);
  let three = f32(((high & 0xffu) << 16u) | (low >> 16u)) * 5.9604644775390625e-8f;
  let rest = two * {_PARTS[1]}f + ((one + two) * {_PARTS[2]}f + three * {math.pi / 2}f);
  let r = one * {_PARTS[0]}f + ((one * {_PARTS[1]}f + two * {_PARTS[0]}f) + rest);
  let scaled = r * bitcast<f32>((127u - 24u - skipped) << 23u);
  return select(scaled, -scaled, negative);
}}""",
    # Of double precision: three words, 190 bits behind the point.
    "turned_f64": f"""fn turned_f64(a: f64) -> array<u64, 3> {{
  var table = array<u32, {len(_UPWARD)}>({_listed(_UPWARD)});
  let bits = bitcast<u64>(a);
  let significand = (bits & 0xffffffffffffflu) | 0x10000000000000lu;
  let low = significand & 0xfffffffflu;
  let high = significand >> 32u;
  let skipped = {TWO_BY_PI_BITS - FRACTION_BITS + 1075}u - u32(bits >> 52u);
  let shift = skipped & 31u;
  var words = array<u64, 3>();
  var before = 0lu;
  var carry = 0lu;
  for (var k = 0u; k < 6u; k++) {{
    let at = (skipped >> 5u) + k;
    let digits = u64(table[at]) | (u64(table[at + 1u]) << 32u);
    let digit = (digits >> shift) & 0xfffffffflu;
    let one = digit * low;
    let total = (one & 0xfffffffflu) + before * high + carry;
    words[k >> 1u] = words[k >> 1u] | ((total & 0xfffffffflu) << (32u * (k & 1u)));
    before = digit;
    carry = (total >> 32u) + (one >> 32u);
  }}
  return words;
}}""",
    "far_turns_f64": f"""fn far_turns_f64(a: f64) -> f64 {{
  return f64((turned_f64(a)[2] + {1 << (FRACTION_BITS - 129)}lu) >> {FRACTION_BITS - 128}u);
}}""",
    "zeros_u64": """fn zeros_u64(x: u64) -> u32 {
  let high = countLeadingZeros(u32(x >> 32u));
  return select(high, 32u + countLeadingZeros(u32(x & 0xfffffffflu)), high == 32u);
}""",
    "far_rest_f64": f"""fn far_rest_f64(a: f64) -> f64 {{
  var words = turned_f64(a);
  words[2] = bitcast<u64>(bitcast<i64>(words[2] << 2u) >> 2u);
  let negative = bitcast<i64>(words[2]) < 0li;
  if negative {{
    var carry = 1lu;
    for (var k = 0u; k < 3u; k++) {{
      words[k] = ~words[k] + carry;
      carry = select(0lu, carry, words[k] == 0lu);
    }}
  }}
  var skipped = 0u;
  for (var k = 0u; k < 2u && words[2] == 0lu; k++) {{
    words[2] = words[1];
    words[1] = words[0];
    words[0] = 0lu;
    skipped += 64u;
  }}
  let zeros = zeros_u64(words[2]);
  let top = (words[2] << zeros) | ((words[1] >> 1u) >> (zeros ^ 63u));
  let upper = f64(top & ~2047lu);
  let lower = f64(top & 2047lu);
  let exponent = i64({1023 + 128 - FRACTION_BITS}) - i64(zeros + skipped);
  let p = upper * {math.pi / 2}lf;
  let lacking = fma_f64(upper, {math.pi / 2}lf, -p);
  let rest = lacking + (upper * 6.123233995736766e-17lf + lower * {math.pi / 2}lf);
  let r = (p + rest) * bitcast<f64>(exponent << 52u);
  return select(r, -r, negative);
}}""",
}


@cache
def _called(name: str) -> tuple[str, ...]:
    """The functions whose names are in a function's text, those first that others need."""
    found: dict[str, None] = {}
    for other in re.findall(r"\b\w+(?=\()", FUNCTIONS[name]):
        if other != name and other in FUNCTIONS:
            found |= dict.fromkeys(_called(other))
    return (*found, name)


class Declarations(Protocol):
    """What a text of a shader, or of a function, belongs to."""

    def declare(self, text: str) -> None:
        """Make a declaration outside of functions; once each."""


def require(w: Declarations, name: str) -> str:
    """Declare a function, and those that it calls."""
    if name not in FUNCTIONS:
        raise BackendError(f"wgpu has no {name}")
    for each in _called(name):
        if "opaque_zero" in FUNCTIONS[each]:
            w.declare(OPAQUE_ZERO)
        w.declare(FUNCTIONS[each])
    return name
