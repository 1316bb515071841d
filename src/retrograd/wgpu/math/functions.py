"""The functions of mathematics in WGSL: those of `codegen/math/`, each as a function of the module.

The formulas, their coefficients and their accuracy are there; here they are only written down for
a device. Those in double precision need a device that has it, and say so where it has not.
"""

from __future__ import annotations

from functools import cache

from retrograd.codegen.emit.elementwise import ELEMENTWISE as FORMULAS
from retrograd.codegen.math.power import CONSTANT
from retrograd.codegen.op_builder import Emit as Formula
from retrograd.ir import DType, float32
from retrograd.ops import elementwise as el
from retrograd.wgpu.dispatch import DeviceFacts
from retrograd.wgpu.math import elementwise  # noqa: F401  (first: what it enters has no formula)
from retrograd.wgpu.math.op_builder import MissingDTypeError, defined
from retrograd.wgpu.scalar import ELEMENTWISE, Emit, OpWriter, emits


@cache
def function(
    name: str, body: Formula, dtype: DType, count: int, facts: DeviceFacts
) -> tuple[str, tuple[str, ...]]:
    """The name of the function that `body` writes for so many operands of a dtype, its text and
    those of what it calls."""
    result = el.ELEMENTWISE[name].result if name in el.ELEMENTWISE else None
    return defined(f"op_{name}", body, dtype, count, facts, result)


def call(at: OpWriter, name: str, body: Formula, *args: str) -> str:
    """The expression of a formula's result."""
    dtype = float32 if at.dtype.is_half else at.dtype
    try:
        symbol, texts = function(name, body, dtype, len(args), at.w.context.facts)
    except MissingDTypeError as error:
        at.w.need(error.dtype)
        raise
    for text in texts:
        at.w.declare(text)
    return f"{symbol}({', '.join(args)})"


def _called(name: str) -> Emit:
    return lambda at, *args: call(at, name, FORMULAS[name], *args)


INTEGER_POWER = """fn power_{kind}(a: {kind}, b: {kind}) -> {kind} {{
  var y = {one};
  var x = a;
  var n = b;
  if n < {zero} {{ return {zero}; }}
  while n != {zero} {{
    if (n & {one}) == {one} {{ y = y * x; }}
    x = x * x;
    n = n >> 1u;
  }}
  return y;
}}"""


@emits(el.pow)
def power(at: OpWriter, a: str, b: str) -> str:
    """Of whole numbers by squaring, wrapping; negative exponents give 0."""
    if not at.float:
        at.w.declare(INTEGER_POWER.format(kind=at.type, one=at.number(1), zero=at.number(0)))
        return f"power_{at.type}({a}, {b})"
    for value, emit in CONSTANT.items():
        if b == at.number(value):
            name = f"pow_{value}".replace(".", "_").replace("-", "minus_")
            return call(at, name, emit, a)
    return call(at, el.pow.name, FORMULAS[el.pow.name], a, b)


for _name in FORMULAS.keys() - ELEMENTWISE.keys():
    emits(el.ELEMENTWISE[_name])(_called(_name))
