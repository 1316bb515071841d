"""Angles reduced to `|r| <= pi/4`, however large: `x = n pi/2 + r`.

Up to `_LIMIT` in floats, with `pi/2` as a sum of three: the first difference is exact, for the same
reason as that of `exp`, the others are rounded relative to what is left, so nothing is lost where
`x` is close to a multiple of pi/2. Beyond, `n` has too many bits for that, and integers do it, by
the method of Payne and Hanek (1983), one lane at a time: of the bits of `2/pi` only those matter
that give the last two bits of `n` and 190 bits behind the point.
"""

from __future__ import annotations

import math
from functools import cache

from retrograd.backends.llvm.at import At, Emit, one_by_one
from retrograd.backends.llvm.mathematics.term import Term, choose, fma
from retrograd.backends.llvm.writer import Writer
from retrograd.ir import float64

_HALF_PI = {
    "float32": (1.5707964, -4.371139e-08, -1.7151245e-15),
    "float64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_LIMIT = {"float32": 2.0**17, "float64": 2.0**30}
_BITS = 1216  # of 2/pi: the largest exponent, 971, and 190, and 53 that are lost, and some
_FRACTION = 190
_TWO_BY_PI = int(
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
    w, label = a.at.w, a.at.w.label()
    before = w.block
    w.branch(far.anywhere(), f"{label}.far", f"{label}.end")
    w.start_block(f"{label}.far")
    exact = choose(far, a, 2 * _LIMIT[name])
    rest = Term(a.at, _far_rest(a.at, exact.name))
    rest = choose(exact < math.inf, rest, math.nan)
    turns = Term(a.at, _far_turns(a.at, exact.name))
    slow_t, slow_r = choose(far, turns + magic, t), choose(far, rest, r)
    after = w.block
    w.jump(f"{label}.end")
    w.start_block(f"{label}.end")
    kind = a.at.type
    t, r = (
        Term(a.at, w.new(f"phi {kind} [ {x.name}, %{before} ], [ {y.name}, %{after} ]"))
        for x, y in ((t, slow_t), (r, slow_r))
    )
    return t.bits(), r


def _product(at: At, a: str) -> str:
    """`2/pi a` modulo 4, of a large positive number, with `_FRACTION` bits behind the point."""
    at.w.declare(_product_definition())
    wide = a if at.type == "double" else at.w.new(f"fpext float {a} to double")
    return at.w.new(f"call i192 @math.product(double {wide})")


@cache
def _product_definition() -> str:
    w = Writer(lambda _: None)
    bits = w.new("bitcast double %a to i64")
    exponent = w.new(f"lshr i64 {bits}, 52")
    mantissa = w.new(f"and i64 {bits}, {(1 << 52) - 1}")
    mantissa = w.new(f"or i64 {mantissa}, {1 << 52}")
    room = w.reserve(f"i{_BITS + 64}")
    w.line(f"store i{_BITS + 64} {_TWO_BY_PI}, ptr {room}, align 64")
    skipped = w.new(f"sub i64 {_BITS - _FRACTION + 1075}, {exponent}")
    place = w.new(f"getelementptr i64, ptr {room}, i64 {w.new(f'lshr i64 {skipped}, 6')}")
    window = w.new(f"load i256, ptr {place}, align 8")
    rest = w.new(f"zext i64 {w.new(f'and i64 {skipped}, 63')} to i256")
    window = w.new(f"trunc i256 {w.new(f'lshr i256 {window}, {rest}')} to i192")
    product = w.new(f"mul i192 {window}, {w.new(f'zext i64 {mantissa} to i192')}")
    w.line(f"ret i192 {product}")
    head = "define internal i192 @math.product(double %a) noinline nounwind willreturn memory(none)"
    return f"{head} {{\n{w.text()}\n}}"


def _turns(at: At, a: str) -> str:
    """The last two bits of `n`, as a number."""
    w = at.w
    up = w.new(f"add i192 {_product(at, a)}, {1 << (_FRACTION - 1)}")
    n = w.new(f"trunc i192 {w.new(f'lshr i192 {up}, {_FRACTION}')} to i32")
    return w.new(f"sitofp i32 {n} to {at.type}")


def _rest(at: At, a: str) -> str:
    """`r`: the fraction as a sum of two doubles, times pi/2."""
    w = at.w
    product = _product(at, a)
    signed = w.new(f"ashr i192 {w.new(f'shl i192 {product}, 2')}, 2")
    negative = w.new(f"icmp slt i192 {signed}, 0")
    size = w.new(f"select i1 {negative}, i192 {w.new(f'sub i192 0, {signed}')}, i192 {signed}")
    w.declare("i192 @llvm.ctlz.i192(i192, i1)")
    zeros = w.new(f"call i192 @llvm.ctlz.i192(i192 {size}, i1 false)")
    top = w.new(f"lshr i192 {w.new(f'shl i192 {size}, {zeros}')}, 128")
    top = w.new(f"trunc i192 {top} to i64")
    double = At(w, float64)
    high, low = (
        Term(double, w.new(f"uitofp i64 {w.new(f'and i64 {top}, {mask}')} to double"))
        for mask in (-2048, 2047)
    )
    power = w.new(f"sub i64 {1023 + 128 - _FRACTION}, {w.new(f'trunc i192 {zeros} to i64')}")
    scale = w.new(f"bitcast i64 {w.new(f'shl i64 {power}, 52')} to double")
    half_pi, lacking, _ = _HALF_PI["float64"]
    r = fma(high, half_pi, fma(high, lacking, low * half_pi)) * Term(double, scale)
    y = w.new(f"select i1 {negative}, double {(-r).name}, double {r.name}")
    return y if at.type == "double" else w.new(f"fptrunc double {y} to float")


_far_turns: Emit = one_by_one("turns", _turns)
_far_rest: Emit = one_by_one("rest", _rest)
