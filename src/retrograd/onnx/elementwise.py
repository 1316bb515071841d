"""Elementwise operations: what ONNX has under a name of its own, and formulas for the rest.

Formulas are chosen for their digits: `log1p` and `expm1` are Kahan's, which are accurate to a few
roundings, where ONNX would leave only `log(1 + x)`. The tails of `erfc` and `ndtr` are small
differences of `Erf` and 1, as ONNX has nothing else: good to a rounding of 1, not of the result.
Half precision is computed in float32 and rounded once, as everywhere in retrograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import DType, Node, bool_, float32, float64, int64, uint8, uint16, uint32, uint64
from retrograd.onnx.writer import CHOSEN, PADDED, RULES, OnnxWriter, rule
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import ELEMENTWISE, Cast, Elementwise
from retrograd.ops.special import functions as special


class OnnxNumbers:
    """Values of one ONNX graph, for formulas to be written with operators."""

    __slots__ = ("dtype", "name", "w")

    def __init__(self, w: OnnxWriter, name: str, dtype: DType) -> None:
        self.w = w
        self.name = name
        self.dtype = dtype

    def of(
        self, kind: str, *others: Any, dtype: DType | None = None, **attributes: Any
    ) -> OnnxNumbers:
        """An operator of this and others; plain numbers get this dtype."""
        names = [self.name, *[self.like(x).name for x in others]]
        return OnnxNumbers(self.w, self.w.emit(kind, *names, **attributes), dtype or self.dtype)

    def like(self, x: Any) -> OnnxNumbers:
        if isinstance(x, OnnxNumbers):
            return x
        return OnnxNumbers(self.w, self.w.constant(np.asarray(x, self.dtype.dtype)), self.dtype)

    def where(self, yes: Any, no: Any) -> OnnxNumbers:
        """Of the two the first where this, which is boolean, holds."""
        known = yes if isinstance(yes, OnnxNumbers) else no
        yes, no = known.like(yes), known.like(no)
        if known.dtype is bool_:  # few engines choose between these
            return (self & yes) | (~self & no)
        via = CHOSEN.get(known.dtype, known.dtype)
        yes, no = yes.cast(via), no.cast(via)
        found = OnnxNumbers(self.w, self.w.emit("Where", self.name, yes.name, no.name), via)
        return found.cast(known.dtype)

    def larger(self, other: Any) -> OnnxNumbers:
        return self._extreme("Max", other)

    def smaller(self, other: Any) -> OnnxNumbers:
        return self._extreme("Min", other)

    def _extreme(self, kind: str, other: Any) -> OnnxNumbers:
        via = PADDED.get(self.dtype, self.dtype)
        found = self.cast(via).of(kind, self.like(other).cast(via))
        return found.cast(self.dtype)

    def cast(self, dtype: DType) -> OnnxNumbers:
        return OnnxNumbers(self.w, self.w.cast(self.name, self.dtype, dtype), dtype)

    def __add__(self, other: Any) -> OnnxNumbers:
        return self.of("Add", other)

    def __sub__(self, other: Any) -> OnnxNumbers:
        return self.of("Sub", other)

    def __mul__(self, other: Any) -> OnnxNumbers:
        return self.of("Mul", other)

    def __truediv__(self, other: Any) -> OnnxNumbers:
        return self.of("Div", other)

    def __neg__(self) -> OnnxNumbers:
        return self.like(0) - self if self.dtype.kind == "uint" else self.of("Neg")

    def __and__(self, other: Any) -> OnnxNumbers:
        return self.of("And", other)

    def __or__(self, other: Any) -> OnnxNumbers:
        return self.of("Or", other)

    def __invert__(self) -> OnnxNumbers:
        return self.of("Not")

    def equals(self, other: Any) -> OnnxNumbers:
        return self.of("Equal", other, dtype=bool_)

    def below(self, other: Any) -> OnnxNumbers:
        return self.of("Less", other, dtype=bool_)

    def above(self, other: Any) -> OnnxNumbers:
        return self.of("Greater", other, dtype=bool_)


Formula = Callable[..., OnnxNumbers]
FORMULAS: dict[str, Formula] = {}


# Operators of ONNX that are an op, by its name: for booleans, and for whole numbers.
LOGIC: dict[str, str] = {}
BITS: dict[str, str] = {}
COMPARISONS: dict[str, str] = {}  # which take no half precision, and no booleans


def elementwise(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """One op, as it is entered; the dtypes that ONNX's operator does not take go by way of
    another."""
    op, dtype = node.op, node.inputs[-1].dtype
    if dtype is bool_ and op in LOGIC:
        return str(w.emit(LOGIC[op], *names))
    if op in COMPARISONS:
        via = uint8 if dtype is bool_ else float32 if dtype.is_half else dtype
        return str(w.emit(COMPARISONS[op], *[w.cast(x, dtype, via) for x in names]))
    if op in BITS:
        return str(w.emit(BITS[op], *names))
    inputs = [OnnxNumbers(w, n, x.dtype) for n, x in zip(names, node.inputs, strict=True)]
    if dtype.is_half and node.prim not in (el.select, el.eq, el.ne):
        inputs = [x.cast(float32) for x in inputs]
    y = FORMULAS[op](*inputs)
    y.dtype = bool_ if node.dtype is bool_ else y.dtype
    return y.cast(node.dtype).name


def formula(f: Formula) -> Formula:
    """Say how the op of this function's name is written."""
    return formula_of(ELEMENTWISE[f.__name__.rstrip("_")])(f)


def formula_of(op: Elementwise) -> Callable[[Formula], Formula]:
    """Say how an op is written."""

    def enter(f: Formula) -> Formula:
        FORMULAS[op.name] = f
        RULES[op.name] = elementwise
        return f

    return enter


def same(op: Elementwise, operator: str) -> None:
    """An op is an operator of ONNX, for all dtypes but half precision."""
    formula_of(op)(lambda x, *others: x.of(operator, *others))


def exactly(table: dict[str, str], op: Elementwise, operator: str) -> None:
    """An op is an operator of ONNX for the dtypes of a table."""
    table[op.name] = operator
    RULES[op.name] = elementwise


same(el.add, "Add")
same(el.sub, "Sub")
same(el.mul, "Mul")
same(el.div, "Div")
same(el.abs, "Abs")
same(el.sign, "Sign")
same(el.floor, "Floor")
same(el.ceil, "Ceil")
same(el.round, "Round")
same(el.reciprocal, "Reciprocal")
same(el.sqrt, "Sqrt")
same(el.exp, "Exp")
same(el.log, "Log")
same(el.sin, "Sin")
same(el.cos, "Cos")
same(el.tan, "Tan")
same(el.asin, "Asin")
same(el.acos, "Acos")
same(el.atan, "Atan")
same(el.sinh, "Sinh")
same(el.cosh, "Cosh")
same(el.tanh, "Tanh")
same(el.asinh, "Asinh")
same(el.acosh, "Acosh")
same(el.atanh, "Atanh")
same(el.erf, "Erf")
same(el.sigmoid, "Sigmoid")
same(el.isnan, "IsNaN")
same(el.isinf, "IsInf")
same(el.eq, "Equal")
exactly(COMPARISONS, el.lt, "Less")
exactly(COMPARISONS, el.le, "LessOrEqual")
exactly(COMPARISONS, el.gt, "Greater")
exactly(COMPARISONS, el.ge, "GreaterOrEqual")
exactly(LOGIC, el.bitwise_not, "Not")
exactly(LOGIC, el.bitwise_and, "And")
exactly(LOGIC, el.bitwise_or, "Or")
exactly(LOGIC, el.bitwise_xor, "Xor")
exactly(LOGIC, el.max, "Or")
exactly(LOGIC, el.min, "And")
exactly(BITS, el.bitwise_not, "BitwiseNot")
exactly(BITS, el.bitwise_and, "BitwiseAnd")
exactly(BITS, el.bitwise_or, "BitwiseOr")
exactly(BITS, el.bitwise_xor, "BitwiseXor")
# fmt: off
formula_of(el.zmul)(lambda a, b: a.equals(0).where(a, a * b))
formula_of(el.zdiv)(lambda a, b: a.equals(0).where(a, a / b))
formula_of(el.zzmul)(lambda a, b: (a.equals(0) | b.equals(0)).where(0, a * b))
formula_of(el.neg)(lambda x: -x)
formula_of(el.ne)(lambda a, b: ~a.equals(b))
formula_of(el.isfinite)(lambda x: ~(x.of("IsNaN", dtype=bool_) | x.of("IsInf", dtype=bool_)))
formula_of(el.trunc)(lambda x: x.below(0).where(x.of("Ceil"), x.of("Floor")))
formula_of(el.rsqrt)(lambda x: x.of("Sqrt").of("Reciprocal"))
formula_of(el.relu)(lambda x: x.of("Relu") if x.dtype.is_float else x.larger(0))
formula_of(el.max)(lambda a, b: a.larger(b))
formula_of(el.min)(lambda a, b: a.smaller(b))
formula_of(el.clamp)(lambda x, lo, hi: x.larger(lo).smaller(hi))
formula_of(el.select)(lambda c, a, b: c.where(a, b))
formula_of(el.exp2)(lambda x: x.like(2).of("Pow", x))
formula_of(el.log2)(lambda x: x.of("Log") * (1 / math.log(2)))
formula_of(el.log10)(lambda x: x.of("Log") * (1 / math.log(10)))
formula_of(el.cbrt)(lambda x: x.equals(0).where(x, x.of("Sign") * x.of("Abs").of("Pow", 1 / 3)))
formula_of(el.softplus)(lambda x: x.larger(0) + log1p((-x.of("Abs")).of("Exp")))
formula_of(el.erfc)(lambda x: x.like(1) - x.of("Erf"))
formula_of(special.ndtr)(lambda x: ((x * math.sqrt(0.5)).of("Erf") + 1) * 0.5)
formula_of(el.copysign)(lambda a, b: signbit(b).where(-a.of("Abs"), a.of("Abs")))
formula_of(special.xlogy)(lambda x, y: (x.equals(0) & ~nan(y)).where(0, x * y.of("Log")))
formula_of(special.xlog1py)(lambda x, y: (x.equals(0) & ~nan(y)).where(0, x * log1p(y)))
formula_of(special.entr)(
    lambda x: x.equals(0).where(0, x.below(0).where(-math.inf, -(x * x.of("Log")))))
formula_of(special.logit)(lambda x: x.of("Log") - log1p(-x))
# fmt: on


def nan(x: OnnxNumbers) -> OnnxNumbers:
    return x.of("IsNaN", dtype=bool_)


@formula
def log1p(x: OnnxNumbers) -> OnnxNumbers:
    """`log(u) * x / (u - 1)` of `u = 1 + x`: the rounding of u cancels (Kahan)."""
    u = x + 1
    rest = u - 1
    near, far = u.equals(1), u.of("IsInf", dtype=bool_)
    return near.where(x, far.where(u, u.of("Log") * (x / near.where(1, rest))))


@formula
def expm1(x: OnnxNumbers) -> OnnxNumbers:
    """`(u - 1) * x / log(u)` of `u = exp(x)`: the rounding of u cancels (Kahan)."""
    u = x.of("Exp")
    rest = u - 1
    plain = rest.equals(-1) | u.of("IsInf", dtype=bool_)
    near = u.equals(1)
    return near.where(x, plain.where(rest, rest * (x / (near | plain).where(1, u.of("Log")))))


@formula
def sech2(x: OnnxNumbers) -> OnnxNumbers:
    """`4 t / (1 + t)**2` of `t = exp(-2 |x|)`."""
    t = (x.of("Abs") * -2).of("Exp")
    whole = t + 1
    return (t * 4) / whole / whole


@formula
def signbit(x: OnnxNumbers) -> OnnxNumbers:
    """Of a NaN, ONNX does not tell."""
    return x.below(0) | (x.equals(0) & x.of("Reciprocal").below(0))


@formula
def logaddexp(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    top = a.larger(b)
    same = a.equals(b)  # infinities among them
    gap = same.where(0, a - b).of("Abs")
    return top + log1p((-gap).of("Exp"))


@formula
def hypot(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    """Scaled by the larger, which nothing overflows then."""
    a, b = a.of("Abs"), b.of("Abs")
    top = a.larger(b)
    plain = top.equals(0) | top.of("IsInf", dtype=bool_) | nan(top)
    scale = plain.where(1, top)
    p, q = a / scale, b / scale
    either = a.of("IsInf", dtype=bool_) | b.of("IsInf", dtype=bool_)
    return either.where(math.inf, plain.where(top, scale * (p * p + q * q).of("Sqrt")))


@formula
def atan2(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    """By the arc tangent of the smaller part over the larger."""
    steep = a.of("Abs").above(b.of("Abs"))
    low, high = steep.where(b, a).of("Abs"), steep.where(a, b).of("Abs")
    same = low.equals(high)  # zeros and infinities among them
    ratio = same.where(high.equals(0).where(low.like(0), 1), low / high)
    t = ratio.of("Atan")
    t = steep.where(t.like(math.pi / 2) - t, t)
    t = signbit(b).where(t.like(math.pi) - t, t)
    t = (nan(a) | nan(b)).where(math.nan, t)
    return signbit(a).where(-t, t)


def _divisor(b: OnnxNumbers) -> OnnxNumbers:
    """An integer to divide by: 0, and -1 of the least integer, are faults of the processor."""
    bad = b.equals(0) | b.equals(-1) if b.dtype.kind == "int" else b.equals(0)
    return bad.where(1, b)


@formula
def floor_div(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    """As NumPy has it: the remainder is taken away first, so that the quotient is whole."""
    if a.dtype.kind in ("int", "uint"):
        none, safe = b.equals(0), _divisor(b)
        rest = a.of("Mod", safe)
        # The multiple of b below a may not be a number of the dtype; the one above it then is.
        apart = (a.below(0) & b.above(0)) | (a.above(0) & b.below(0))
        apart = apart & ~rest.equals(0)
        multiple = apart.where(a + (safe - rest), a - rest)
        whole = (multiple / safe) - apart.cast(a.dtype)
        return none.where(0, b.equals(-1).where(-a, whole) if a.dtype.kind == "int" else whole)
    quotient = (a - mod(a, b)) / b
    whole = quotient.of("Floor")
    whole = (quotient - whole).above(0.5).where(whole + 1, whole)
    zero = signbit(a / b).where(-0.0, quotient.like(0.0))
    return b.equals(0).where(a / b, whole.equals(0).where(zero, whole))


@formula
def mod(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    if a.dtype.kind in ("int", "uint"):
        return b.equals(0).where(a, a.of("Mod", _divisor(b)))
    rest = a.of("Mod", b, fmod=1)
    other = (rest.below(0) & b.above(0)) | (rest.above(0) & b.below(0))
    zero = signbit(b).where(-0.0, rest.like(0.0))
    return rest.equals(0).where(zero, other.where(rest + b, rest))


@formula
def pow_(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    if a.dtype.kind == "float":
        return a.of("Pow", b)
    # By squares: an engine may take integers through floating numbers, which would round.
    base = a.cast(int64)
    y = base.like(1)
    exponent = b.cast(_UNSIGNED[b.dtype.itemsize])
    for bit in range(8 * b.dtype.itemsize):
        there = exponent.of("BitShift", bit, direction="RIGHT").of("BitwiseAnd", 1).equals(1)
        y = there.where(y * base, y)
        base = base * base
    y = y.cast(a.dtype)
    return b.below(0).where(0, y) if a.dtype.kind == "int" else y


_UNSIGNED = {1: uint8, 2: uint16, 4: uint32, 8: uint64}


@formula
def shift_left(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    return _shifted(a, b, "LEFT")


@formula
def shift_right(a: OnnxNumbers, b: OnnxNumbers) -> OnnxNumbers:
    if a.dtype.kind == "uint":
        return _shifted(a, b, "RIGHT")
    negative = a.below(0)  # the bits of `-1 - a` are those of a, each turned
    turned = negative.where(a.of("BitwiseNot"), a)
    y = _shifted(turned, b, "RIGHT")
    return negative.where(y.of("BitwiseNot"), y)


def _shifted(a: OnnxNumbers, b: OnnxNumbers, direction: str) -> OnnxNumbers:
    """ONNX shifts unsigned numbers, by less than their width."""
    unsigned, width = _UNSIGNED[a.dtype.itemsize], 8 * a.dtype.itemsize
    outside = b.above(width - 1)
    if b.dtype.kind == "int":
        outside = outside | b.below(0)
    count = outside.where(0, b).cast(unsigned)
    y = a.cast(unsigned).of("BitShift", count, direction=direction)
    return outside.where(0, y.cast(a.dtype))


@rule(Cast)
def cast(w: OnnxWriter, node: Node, names: list[str]) -> str:
    """ONNX leaves open what becomes of numbers that the integer dtype cannot hold."""
    before, after = node.inputs[0].dtype, node.dtype
    x = OnnxNumbers(w, names[0], before)
    if after is bool_:
        return (~x.equals(0)).name if before is not bool_ else names[0]
    w.code(after)
    if not before.is_float or after.is_float:
        if after.is_half and before is float64:
            x = x.cast(float32)
        return x.cast(after).name
    x = x.cast(float32) if before.is_half else x
    ends = np.iinfo(after.dtype)
    x = x.cast(float64)
    low, high = x.below(float(ends.min)), x.above(float(ends.max)) | x.equals(float(ends.max + 1))
    inside = (low | high | nan(x)).where(0, x).cast(after)
    return low.where(ends.min, high.where(ends.max, inside)).name
