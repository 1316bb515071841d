"""Angles reduced to `|r| <= pi/4`, however large: `x = n pi/2 + r`.

Up to `_LIMIT` in floats, with `pi/2` as a sum of three: the first difference is exact, for the same
reason as that of `exp`, the others are rounded relative to what is left, so nothing is lost where
`x` is close to a multiple of pi/2. Beyond, `n` has too many bits for that, and integers do it, by
the method of Payne and Hanek (1983), one lane at a time: of the bits of `2/pi` only those matter
that give the last two bits of `n` and 190 bits behind the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.math.term import Term, choose, either, fma
from retrograd.codegen.op_builder import Emit, OpBuilder, one_by_one
from retrograd.ir import float64, int64

_HALF_PI = {
    "float32": (1.5707964, -4.371139e-08, -1.7151245e-15),
    "float64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_LIMIT = {"float32": 2.0**17, "float64": 2.0**30}
TWO_BY_PI_BITS = 1216  # of 2/pi: the largest exponent, 971, and 190, and 53 that are lost, and some
FRACTION_BITS = 190
TWO_BY_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424D"
    "D2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639"
    "835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F46"
    "3F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)


def reduced(a: Term) -> tuple[Term, Term]:
    """Integers whose low two bits are those of `n`, and `r`, of positive angles; `r` is NaN for an
    infinite one."""
    name, magic = a.format.dtype.name, a.format.magic
    t = fma(a, 2 / math.pi, magic)
    turns, r = t - magic, a
    for part in _HALF_PI[name]:
        r = fma(turns, -part, r)
    far = a > _LIMIT[name]

    def exactly() -> tuple[Term, Term]:
        exact = choose(far, a, 2 * _LIMIT[name])
        rest = Term(a.at, _far_rest(a.at, exact.name))
        rest = choose(exact < math.inf, rest, math.nan)
        turns = Term(a.at, _far_turns(a.at, exact.name))
        return choose(far, turns + magic, t), choose(far, rest, r)

    t_found, r_found = either(a.at, far.anywhere(), exactly, lambda: (t, r))
    return t_found.bits(), r_found


def _multiplication() -> str:
    """A large `%a` times 2/pi, modulo 4: three words, the lowest first, `FRACTION_BITS` bits behind
    the point. In steps of 32 bits of 2/pi, multiplied by the two halves of the significand: no sum
    has more than 64 bits, and LLVM takes long for products that have."""
    w = FunctionBuilder(lambda _: None)
    half = (1 << 32) - 1
    bits = w.new("bitcast double %a to i64")
    exponent = w.new(f"lshr i64 {bits}, 52")
    fraction = w.new(f"and i64 {bits}, {(1 << 52) - 1}")
    significand = w.new(f"or i64 {fraction}, {1 << 52}")
    low, high = w.new(f"and i64 {significand}, {half}"), w.new(f"lshr i64 {significand}, 32")
    skipped = w.new(f"sub i64 {TWO_BY_PI_BITS - FRACTION_BITS + 1075}, {exponent}")
    first, shift = w.new(f"lshr i64 {skipped}, 5"), w.new(f"and i64 {skipped}, 31")
    start = w.new(f"getelementptr i32, ptr @math.two_by_pi, i64 {first}")
    loop = w.open_loop("6", carried=[("i64", "0"), ("i64", "0")])
    before, carry = loop.values
    place = w.new(f"getelementptr i32, ptr {start}, i64 {loop.counter}")
    digits = w.new(f"load i64, ptr {place}, align 4")
    digit = w.new(f"and i64 {w.new(f'lshr i64 {digits}, {shift}')}, {half}")
    one, other = w.new(f"mul i64 {digit}, {low}"), w.new(f"mul i64 {before}, {high}")
    both = w.new(f"add i64 {w.new(f'and i64 {one}, {half}')}, {other}")
    total = w.new(f"add i64 {both}, {carry}")
    out = w.new(f"getelementptr i32, ptr %out, i64 {loop.counter}")
    w.line(f"store i32 {w.new(f'trunc i64 {total} to i32')}, ptr {out}, align 4")
    above = w.new(f"lshr i64 {total}, 32"), w.new(f"lshr i64 {one}, 32")
    w.close_loop(loop, [digit, w.new(f"add i64 {above[0]}, {above[1]}")])
    w.line("ret void")
    head = "define internal void @math.product(double %a, ptr %out) noinline nounwind"
    return f"{head} {{\n{w.text()}\n}}"


_PRODUCT = _multiplication()


def _table() -> str:
    """2/pi in words of 32 bits, the lowest first."""
    words = [TWO_BY_PI >> 32 * k & 0xFFFFFFFF for k in range((TWO_BY_PI_BITS + 64) // 32)]
    listed = ", ".join(f"i32 {word}" for word in words)
    return f"@math.two_by_pi = internal constant [{len(words)} x i32] [{listed}]"


_TABLE = _table()


def _far(name: str, emit: Callable[[FunctionBuilder], str]) -> Emit:
    """What is made of the words of `a`, as a function of doubles that is called."""
    w = FunctionBuilder(lambda _: None)
    w.line(f"ret double {emit(w)}")
    head = f"define internal double @math.{name}(double %a) noinline nounwind"
    text = f"{head} {{\n{w.text()}\n}}"

    def call(at: OpBuilder, a: str) -> str:
        known = (_TABLE, _PRODUCT, "i64 @llvm.ctlz.i64(i64, i1)", _FMA, text)
        return at.of_doubles(name, known, a)

    return one_by_one(name, call)


def _product(w: FunctionBuilder) -> list[str]:
    """`2/pi a` modulo 4, of a large positive number: three words, the lowest first."""
    room = w.reserve("[3 x i64]", align=8)
    w.line(f"call void @math.product(double %a, ptr {room})")
    places = [room, *[w.new(f"getelementptr i64, ptr {room}, i64 {k}") for k in (1, 2)]]
    return [w.new(f"load i64, ptr {place}, align 8") for place in places]


def _turns(w: FunctionBuilder) -> str:
    """The last two bits of `n`, as a number."""
    up = w.new(f"add i64 {_product(w)[2]}, {1 << (FRACTION_BITS - 129)}")
    return w.new(f"uitofp i64 {w.new(f'lshr i64 {up}, {FRACTION_BITS - 128}')} to double")


def _rest(w: FunctionBuilder) -> str:
    """`r`: the fraction as a sum of two doubles, times pi/2."""
    whole, double = OpBuilder(w, int64), OpBuilder(w, float64)
    words = [Term(whole, word) for word in _product(w)]
    words[2] = words[2] << 2 >> 2  # the fraction, from -1/2 to 1/2
    negative = words[2] < 0
    high, middle, low = reversed(_negated(words, words[2] >> 63))
    # The highest two words that are not all zeros, and how many bits above those are.
    some, more = ~high.equals(0), ~middle.equals(0)
    first = choose(some, high, choose(more, middle, low))
    second = choose(some, middle, choose(more, low, 0))
    skipped = choose(some, high.like(0), choose(more, high.like(64), 128))
    zeros = Term(whole, w.new(f"call i64 @llvm.ctlz.i64(i64 {first.name}, i1 false)"))
    top = (first << zeros) | second.shifted(1).shifted(zeros ^ 63)
    parts = [w.new(f"uitofp i64 {(top & mask).name} to double") for mask in (-2048, 2047)]
    upper, lower = (Term(double, part) for part in parts)
    scale = (1023 + 128 - FRACTION_BITS - (zeros + skipped)) << 52
    half_pi, lacking, _ = _HALF_PI["float64"]
    r = fma(upper, half_pi, fma(upper, lacking, lower * half_pi)) * scale.floats()
    return choose(negative, -r, r).name


def _negated(words: list[Term], sign: Term) -> list[Term]:
    """The words of a number, the lowest first; of its negative if `sign` is -1 instead of 0."""
    found, carry = [], sign & 1
    for word in words:
        flipped = word ^ sign
        found.append(flipped + carry)
        carry = choose(flipped.equals(-1), carry, 0)
    return found


_FMA = "double @llvm.fma.f64(double, double, double)"
_far_turns = _far("far_turns", _turns)
_far_rest = _far("far_rest", _rest)
