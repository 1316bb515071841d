"""Elementwise operations: a table of mathematics.

Each line gives the name, the meaning in NumPy, per input the derivative as a function of `g` (the
cotangent of the output), `y` (the output) and the inputs, and the kinds of dtype it takes. The
derivative is linear in `g`, so the same line is the reverse rule (for the cotangent) and the
forward rule (for each input's tangent, summed).

Two products keep gradients sound where the forward pass is singular: `zmul(g, d)` is `g * d`, and
`zdiv(g, d)` is `g / d`, except that a `g` of exactly zero gives zero whatever `d` is, infinities
and NaN included. A branch that `where` did not take sends back exactly zero, and so contributes
zero, to any order. The price: a `g` that is zero by computation is absorbed too (`sqrt(x)**2` at 0
gets 0, not 1). Nothing else is absorbed: an infinite `g` times a zero derivative is NaN.

Half precision is computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    Dim,
    DType,
    Node,
    Op,
    TensorType,
    Trait,
    bool_,
    declare,
    float64,
    full,
    register,
)
from retrograd.ir.trait import Traits
from retrograd.ops import even
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.identity import StopGradient
from retrograd.ops.numerics import arithmetic as num
from retrograd.ops.numerics.half import in_float32, is_half
from retrograd.ops.shape import stack_front

Derivative = Callable[..., Node] | None
FLOAT, INTEGER, BOOLEAN = ("float",), ("int", "uint"), ("bool",)
NUMBER, BITS, ANY = FLOAT + INTEGER, BOOLEAN + INTEGER, BOOLEAN + FLOAT + INTEGER
# Real functions that go on into the plane, and choices; others are written with the parts.
COMPLEX = ("complex",)
FIELD = FLOAT + COMPLEX
# Traits of the lines below.
CHEAP, HANDS_ON, COMMUTATIVE = Trait.CHEAP, Trait.HANDS_ON, Trait.COMMUTATIVE
ROUNDED_ONCE, UNROUNDED, REAL_LINEAR = Trait.ROUNDED_ONCE, Trait.UNROUNDED, Trait.REAL_LINEAR
PRODUCT, EVEN = Trait.PRODUCT, Trait.EVEN
WHOLE, SELECTING = Trait.WHOLE, Trait.SELECTING
DIVISION, TRANSCENDENTAL = Trait.DIVISION, Trait.TRANSCENDENTAL


class Elementwise(Op):
    """An op applied to each element of inputs of one shape and one dtype."""

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        derivatives: Sequence[Derivative],
        kinds: Sequence[str],
        result: DType | None = None,
        traits: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.traits = frozenset(traits)
        self.arity = len(derivatives)
        self.derivatives = tuple(derivatives)
        self.kinds = kinds
        self.result = result
        self._reference = reference

    def infer(self, *types: TensorType) -> TensorType:
        first = types[0]
        for other in types[1:]:
            _same(self.name, types, first, other)
        if first.dtype.kind not in self.kinds:
            listed = ", ".join(map(str, types))
            raise DTypeError(f"{self.name} takes {' or '.join(self.kinds)} inputs, not {listed}")
        return first if self.result is None else first.with_dtype(self.result)

    @property
    def formula(self) -> Callable[..., Any]:
        """`reference` for arrays that are not of half precision, where warnings are off already."""
        return self._reference

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return in_float32(self._reference, arrays)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return [d(g, y, *inputs) if d else None for d in self.derivatives]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        total: Node | None = None
        for t, d in zip(tangents, self.derivatives, strict=True):
            if t is not None and d is not None:
                part = d(t, y, *inputs)
                total = part if total is None else total + part
        return total

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*stack_front(size, batched, inputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)


def _by_name(name: str) -> Elementwise:
    return ELEMENTWISE[name]


def _same(name: str, types: Sequence[TensorType], a: TensorType, b: TensorType) -> None:
    if a == b:
        return
    error = ShapeError if a.shape != b.shape else DTypeError
    listed = ", ".join(map(str, types))
    raise error(f"{name} takes inputs of one shape and dtype, not {listed}")


class Select(Elementwise):
    """`where(c, a, b)`: the first input is boolean."""

    def infer(self, *types: TensorType) -> TensorType:
        c, a, b = types
        if c.dtype is not bool_:
            raise DTypeError(f"select takes a condition of dtype bool, not {c}, to choose from {a}")
        if c.shape != a.shape:
            raise ShapeError(f"select takes inputs of one shape, not {c}, {a}, {b}")
        _same("select", types[1:], a, b)
        return a


class NextAfter(Elementwise):
    """Every format has neighbours of its own, half precision too."""

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return self._reference(*arrays)


class Even(Elementwise):
    """Products and powers, and even functions: smooth of magnitudes that are not."""

    def smooth(self, *inputs: Node) -> even.Smooth | None:
        if self.arity == 1:
            return even.of_abs(self, *inputs)
        return even.product(*inputs) if self is mul else even.power(self, *inputs)


ELEMENTWISE: dict[str, Elementwise] = {}


def add_elementwise(op: Elementwise) -> Elementwise:
    """Make an op known by its name."""
    ELEMENTWISE[op.name] = op
    register(op.name, lambda: op)
    return op


def traits_of(name: str) -> Traits:
    """The traits of the elementwise op of this name, of which the scalars of a kernel are named."""
    op = ELEMENTWISE.get(name)
    return frozenset() if op is None else op.traits


def unary(
    name: str,
    reference: Callable[..., Any],
    derivative: Derivative = None,
    kinds: Sequence[str] = FLOAT,
    result: DType | None = None,
    traits: Sequence[str] = (),
) -> Elementwise:
    cls = Even if EVEN in traits else Elementwise
    return add_elementwise(cls(name, reference, (derivative,), kinds, result, traits))


def binary(
    name: str,
    reference: Callable[..., Any],
    da: Derivative = None,
    db: Derivative = None,
    kinds: Sequence[str] = NUMBER,
    result: DType | None = None,
    traits: Sequence[str] = (),
) -> Elementwise:
    cls = Even if EVEN in traits else Elementwise
    return add_elementwise(cls(name, reference, (da, db), kinds, result, traits))


def compare(
    name: str,
    reference: Callable[..., Any],
    kinds: Sequence[str] = ANY,
    traits: Sequence[str] = (),
) -> Elementwise:
    traits = (CHEAP, ROUNDED_ONCE, UNROUNDED, *traits)
    return add_elementwise(Elementwise(name, reference, (None, None), kinds, bool_, traits))


# Rules name ops that are declared on a later line.
mul: Elementwise
zmul: Elementwise
zdiv: Elementwise
zzmul: Elementwise
sign: Elementwise
round: Elementwise
pow: Elementwise
log: Elementwise
cos: Elementwise
cosh: Elementwise
sech2: Elementwise
sigmoid: Elementwise
eq: Elementwise
select: Elementwise
copysign: Elementwise

# fmt: off
# Products that a zero cotangent absorbs. Where it does they do not depend on `b`, hence the third,
# which a zero on either side absorbs and which is its own derivative.
zmul = binary("zmul", lambda a, b: np.where(a == 0, a, a * b),
              lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zzmul(g, a), FIELD,
              traits=(CHEAP, ROUNDED_ONCE, PRODUCT))
zdiv = binary("zdiv", lambda a, b: np.where(a == 0, a, a / b),
              lambda g, y, a, b: zdiv(g, b), lambda g, y, a, b: -zzmul(zdiv(g, b), y), FIELD,
              traits=(ROUNDED_ONCE, DIVISION))
zzmul = binary("zzmul", lambda a, b: np.where((a == 0) | (b == 0), 0, a * b),
               lambda g, y, a, b: zzmul(g, b), lambda g, y, a, b: zzmul(g, a), FIELD,
               traits=(CHEAP, ROUNDED_ONCE, PRODUCT))

# Arithmetic.
add = binary("add", np.add, lambda g, y, a, b: g, lambda g, y, a, b: g, NUMBER + COMPLEX,
             traits=(CHEAP, ROUNDED_ONCE, COMMUTATIVE))
sub = binary("sub", np.subtract, lambda g, y, a, b: g, lambda g, y, a, b: -g, NUMBER + COMPLEX,
             traits=(CHEAP, ROUNDED_ONCE))
mul = binary("mul", np.multiply, lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a),
             NUMBER + COMPLEX, traits=(CHEAP, ROUNDED_ONCE, COMMUTATIVE, PRODUCT, EVEN))
div = binary("div", np.divide, lambda g, y, a, b: zdiv(g, b),
             lambda g, y, a, b: -zmul(zdiv(g, b), y), FIELD, traits=(ROUNDED_ONCE, DIVISION))
floor_div = binary("floor_div", num.floor_div, traits=(DIVISION, WHOLE))
mod = binary("mod", num.mod, lambda g, y, a, b: g, lambda g, y, a, b: -zmul(g, round((a - y) / b)),
             traits=(DIVISION, WHOLE))
neg = unary("neg", np.negative, lambda g, y, x: -g, NUMBER + COMPLEX,
            traits=(CHEAP, ROUNDED_ONCE, UNROUNDED, HANDS_ON))
abs = unary("abs", np.abs, lambda g, y, x: zmul(g, sign(x)), NUMBER,
            traits=(CHEAP, ROUNDED_ONCE, UNROUNDED, HANDS_ON, EVEN))
sign = unary("sign", np.sign, lambda g, y, x: full(0, g.type), NUMBER,
             traits=(UNROUNDED, SELECTING))
copysign = binary("copysign", np.copysign,
                  lambda g, y, a, b: zmul(g, sign(a) * copysign(full(1, a.type), b)), None, FLOAT,
                  traits=(CHEAP, ROUNDED_ONCE, UNROUNDED, HANDS_ON))
signbit = unary("signbit", np.signbit, None, FLOAT, bool_, traits=(CHEAP, ROUNDED_ONCE, UNROUNDED))
# The neighbour of a number moves as the number does.
nextafter = add_elementwise(
    NextAfter("nextafter", num.nextafter, (lambda g, y, a, b: g, None), FLOAT,
    traits=(ROUNDED_ONCE, HANDS_ON)))
floor = unary("floor", np.floor, lambda g, y, x: full(0, g.type), traits=(ROUNDED_ONCE, UNROUNDED))
ceil = unary("ceil", np.ceil, lambda g, y, x: full(0, g.type), traits=(ROUNDED_ONCE, UNROUNDED))
trunc = unary("trunc", np.trunc, lambda g, y, x: full(0, g.type), traits=(ROUNDED_ONCE, UNROUNDED))
round = unary("round", np.rint, lambda g, y, x: full(0, g.type), traits=(ROUNDED_ONCE, UNROUNDED))
reciprocal = unary("reciprocal", lambda x: 1 / x, lambda g, y, x: -zmul(zmul(g, y), y), FIELD,
                   traits=(ROUNDED_ONCE, DIVISION))

# Powers, exponentials, logarithms. `0**b` counts as constant in `b` from b = 0 on.
sqrt = unary("sqrt", np.sqrt, lambda g, y, x: zdiv(g, 2 * y), FIELD,
             traits=(ROUNDED_ONCE, DIVISION))
rsqrt = unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda g, y, x: zmul(g, -0.5 * y / x),
              traits=(DIVISION,))
cbrt = unary("cbrt", np.cbrt, lambda g, y, x: zdiv(zdiv(g, 3 * y), y), traits=(TRANSCENDENTAL,))
exp = unary("exp", np.exp, lambda g, y, x: zmul(g, y), FIELD, traits=(TRANSCENDENTAL,))
exp2 = unary("exp2", np.exp2, lambda g, y, x: zmul(g, y) * math.log(2), FIELD,
             traits=(TRANSCENDENTAL,))
expm1 = unary("expm1", num.expm1, lambda g, y, x: zmul(g, exp(x)), FIELD, traits=(TRANSCENDENTAL,))
log = unary("log", np.log, lambda g, y, x: zdiv(g, x), FIELD, traits=(TRANSCENDENTAL,))
log2 = unary("log2", np.log2, lambda g, y, x: zdiv(g, x) * (1 / math.log(2)), FIELD,
             traits=(TRANSCENDENTAL,))
log10 = unary("log10", np.log10, lambda g, y, x: zdiv(g, x) * (1 / math.log(10)), FIELD,
              traits=(TRANSCENDENTAL,))
log1p = unary("log1p", np.log1p, lambda g, y, x: zdiv(g, 1 + x), FIELD, traits=(TRANSCENDENTAL,))
pow = binary("pow", num.pow, lambda g, y, a, b: zmul(g, zmul(b, pow(a, b - 1))),
             lambda g, y, a, b: zmul(g, zmul(y, log(one_if(is_zero(a) & (b >= 0), a)))),
             traits=(EVEN, TRANSCENDENTAL, WHOLE))
logaddexp = binary("logaddexp", np.logaddexp, lambda g, y, a, b: zmul(g, sigmoid(excess(a, b))),
                   lambda g, y, a, b: zmul(g, sigmoid(excess(b, a))), FLOAT,
                   traits=(TRANSCENDENTAL,))
hypot = binary("hypot", np.hypot, lambda g, y, a, b: zmul(g, zdiv(a, y)),
               lambda g, y, a, b: zmul(g, zdiv(b, y)), FLOAT, traits=(TRANSCENDENTAL,))

# Trigonometric and hyperbolic functions. 1 - tanh(x)**2 would lose what the last bit of a tangent
# does not hold, all of it where that is 1, so the slope is an op of its own.
sin = unary("sin", np.sin, lambda g, y, x: zmul(g, cos(x)), FIELD, traits=(TRANSCENDENTAL,))
cos = unary("cos", np.cos, lambda g, y, x: -zmul(g, sin(x)), FIELD, traits=(EVEN, TRANSCENDENTAL))
tan = unary("tan", np.tan, lambda g, y, x: zmul(g, 1 + y * y), FIELD, traits=(TRANSCENDENTAL,))
asin = unary("asin", np.arcsin, lambda g, y, x: zdiv(g, sqrt((1 - x) * (1 + x))), FIELD,
             traits=(TRANSCENDENTAL,))
acos = unary("acos", np.arccos, lambda g, y, x: -zdiv(g, sqrt((1 - x) * (1 + x))), FIELD,
             traits=(TRANSCENDENTAL,))
atan = unary("atan", np.arctan, lambda g, y, x: zdiv(g, 1 + x * x), FIELD, traits=(TRANSCENDENTAL,))
atan2 = binary("atan2", np.arctan2,
               lambda g, y, a, b: zmul(g, zdiv(zdiv(b, hypot(a, b)), hypot(a, b))),
               lambda g, y, a, b: -zmul(g, zdiv(zdiv(a, hypot(a, b)), hypot(a, b))), FLOAT,
               traits=(TRANSCENDENTAL,))
sinh = unary("sinh", np.sinh, lambda g, y, x: zmul(g, cosh(x)), FIELD, traits=(TRANSCENDENTAL,))
cosh = unary("cosh", np.cosh, lambda g, y, x: zmul(g, sinh(x)), FIELD,
             traits=(EVEN, TRANSCENDENTAL))
tanh = unary("tanh", np.tanh, lambda g, y, x: zmul(g, sech2(x))
             if x.dtype.is_float else zdiv(zdiv(g, cosh(x)), cosh(x)), FIELD,
             traits=(TRANSCENDENTAL,))
sech2 = unary("sech2", lambda x: np.square(1 / np.cosh(x)),
              lambda g, y, x: zmul(g, -2 * tanh(x) * y), traits=(EVEN, TRANSCENDENTAL))
asinh = unary("asinh", np.arcsinh, lambda g, y, x: zdiv(g, _root_of_square_plus_one(x)), FIELD,
              traits=(TRANSCENDENTAL,))
acosh = unary("acosh", np.arccosh, lambda g, y, x: zdiv(zdiv(g, sqrt(x - 1)), sqrt(x + 1)), FIELD,
              traits=(TRANSCENDENTAL,))
atanh = unary("atanh", np.arctanh, lambda g, y, x: zdiv(g, (1 - x) * (1 + x)), FIELD,
              traits=(TRANSCENDENTAL,))

# Functions of learning.
erf = unary("erf", num.each(math.erf),
            lambda g, y, x: zmul(g, (2 / math.sqrt(math.pi)) * bell(x)), traits=(TRANSCENDENTAL,))
erfc = unary("erfc", num.each(math.erfc),
             lambda g, y, x: -zmul(g, (2 / math.sqrt(math.pi)) * bell(x)), traits=(TRANSCENDENTAL,))
relu = unary("relu", lambda x: num.max(x, np.zeros_like(x)), lambda g, y, x: keep_if(x > 0, g),
             NUMBER, traits=(CHEAP, UNROUNDED, SELECTING))
sigmoid = unary("sigmoid", num.sigmoid, lambda g, y, x: zmul(g, y * sigmoid(-x)),
                traits=(TRANSCENDENTAL,))
softplus = unary("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
                 lambda g, y, x: zmul(g, sigmoid(x)), traits=(TRANSCENDENTAL,))

# Comparisons, choice and bounds. Ties of max and min share the gradient; beside a NaN both get it.
eq = compare("eq", np.equal, ANY + COMPLEX, traits=(COMMUTATIVE,))
ne = compare("ne", np.not_equal, ANY + COMPLEX, traits=(COMMUTATIVE,))
lt = compare("lt", np.less)
le = compare("le", np.less_equal)
gt = compare("gt", np.greater)
ge = compare("ge", np.greater_equal)
isnan = unary("isnan", np.isnan, None, FLOAT, bool_, traits=(ROUNDED_ONCE, UNROUNDED))
isinf = unary("isinf", np.isinf, None, FLOAT, bool_, traits=(ROUNDED_ONCE, UNROUNDED))
isfinite = unary("isfinite", np.isfinite, None, FLOAT, bool_, traits=(ROUNDED_ONCE, UNROUNDED))
max = binary("max", num.max, lambda g, y, a, b: select(eq(a, b), 0.5 * g, drop_if(a < b, g)),
             lambda g, y, a, b: select(eq(a, b), 0.5 * g, drop_if(a > b, g)), ANY,
             traits=(CHEAP, UNROUNDED, HANDS_ON, SELECTING))
min = binary("min", num.min, lambda g, y, a, b: select(eq(a, b), 0.5 * g, drop_if(a > b, g)),
             lambda g, y, a, b: select(eq(a, b), 0.5 * g, drop_if(a < b, g)), ANY,
             traits=(CHEAP, UNROUNDED, HANDS_ON, SELECTING))
select = add_elementwise(Select("select", np.where, (
    None, lambda g, y, c, a, b: keep_if(c, g), lambda g, y, c, a, b: drop_if(c, g)), ANY + COMPLEX,
    traits=(CHEAP, ROUNDED_ONCE, UNROUNDED, HANDS_ON, REAL_LINEAR)))
clamp = add_elementwise(Elementwise("clamp", lambda x, lo, hi: num.min(num.max(x, lo), hi), (
    lambda g, y, x, lo, hi: drop_if((x <= lo) | (x >= hi), g),
    lambda g, y, x, lo, hi: keep_if((x <= lo) & (lo < hi), g),
    lambda g, y, x, lo, hi: keep_if((x >= hi) | (lo >= hi), g)), NUMBER,
    traits=(UNROUNDED, SELECTING)))

# Bits. A shift by a negative count, or by the width of the dtype or more, moves every bit out.
bitwise_not = unary("bitwise_not", np.invert, None, BITS, traits=(CHEAP, ROUNDED_ONCE))
bitwise_and = binary("bitwise_and", np.bitwise_and, kinds=BITS,
                     traits=(CHEAP, ROUNDED_ONCE, COMMUTATIVE))
bitwise_or = binary("bitwise_or", np.bitwise_or, kinds=BITS,
                    traits=(CHEAP, ROUNDED_ONCE, COMMUTATIVE))
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, kinds=BITS, traits=(ROUNDED_ONCE, COMMUTATIVE))
shift_left = binary("shift_left", num.shift_left, kinds=INTEGER, traits=(ROUNDED_ONCE,))
shift_right = binary("shift_right", num.shift_right, kinds=INTEGER, traits=(ROUNDED_ONCE,))
# fmt: on

even.squared(abs)(even.of_size)
even.squared(hypot)(even.of_hypot)
even.squared(neg)(even.of_negated)
even.squared(mul, div)(even.of_scaled)
even.squared(select)(even.of_guarded(sqrt, eq))


def keep_if(c: Node, g: Node) -> Node:
    """`g` where `c`, zero elsewhere."""
    return select(c, g, full(0, g.type))


def drop_if(c: Node, g: Node) -> Node:
    """Zero where `c`, `g` elsewhere."""
    return select(c, full(0, g.type), g)


def one_if(c: Node, x: Node) -> Node:
    """One where `c`, `x` elsewhere."""
    return select(c, full(1, x.type), x)


def is_zero(x: Node) -> Node:
    return eq(x, full(0, x.type))


def bell(x: Node, c: float = 1.0) -> Node:
    """`exp(-c x**2)`. What a large square loses by its rounding would be digits of the exponential;
    it is found by the part h of x that has few digits, and made up for."""
    a = clamp(x, full(-64, x.type), full(64, x.type))
    square, fixed = a * a, StopGradient()(a)
    fine = 2.0**14 if x.dtype is float64 else 2.0**6
    h = round(fixed * fine) * (1 / fine)
    lost = (h * h - StopGradient()(square)) + (fixed - h) * (fixed + h)
    y: Node = exp(-c * square) * (1 - c * lost)
    return y


def _root_of_square_plus_one(x: Node) -> Node:
    """`sqrt(x**2 + 1)` without overflow; of complex numbers the branch that asinh takes."""
    if not x.dtype.is_complex:
        return hypot(x, full(1, x.type))
    turned = complex_(-imag(x), real(x))
    return mul(sqrt(1 + turned), sqrt(1 - turned))


def excess(a: Node, b: Node) -> Node:
    """`a - b`, but -inf where `a` is: what is -inf adds nothing to a sum of exponentials, even
    beside another -inf."""
    return select(eq(a, full(-math.inf, a.type)), a, a - b)


@declare
class Cast(Op):
    """Convert to another dtype.

    Float to integer drops the fraction; what the integer dtype cannot hold becomes its nearest
    end, and NaN becomes 0. Integer to integer keeps the low bits. Anything to bool is `x != 0`, so
    NaN is true. To float16 and bfloat16 it goes by way of float32. A real number becomes a complex
    one with imaginary part 0; the other way there is no cast.
    """

    name = "cast"
    traits = frozenset({Trait.CHEAP, Trait.ROUNDED_ONCE})
    arity = 1
    dtype: DType

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.is_complex and not (self.dtype.is_complex or self.dtype is bool_):
            raise DTypeError(
                f"cast of {x} to {self.dtype} would drop the imaginary part; take real(x) or abs(x)"
            )
        return x.with_dtype(self.dtype)

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return _convert(arrays[0], self.dtype)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        if not (x.dtype.is_inexact and self.dtype.is_inexact):
            return (None,)
        return (cast(g if x.dtype.is_complex else real(g), x.dtype),)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return self(t) if t is not None and self.dtype.is_inexact else None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


def _convert(x: Any, dtype: DType) -> Any:
    if dtype is bool_:
        return x != 0
    if dtype.is_complex:
        return (x.astype(np.float32) if is_half(x) else x).astype(dtype.dtype)
    if dtype.is_float:
        return (x.astype(np.float32) if dtype.is_half else x).astype(dtype.dtype)
    if x.dtype.kind in "iub":
        return x.astype(dtype.dtype)
    ends = np.iinfo(dtype.dtype)
    whole = np.trunc(x.astype(np.float64))
    below, above = whole < float(ends.min), whole >= float(ends.max + 1)
    inside = np.where(below | above | np.isnan(whole), 0, whole).astype(dtype.dtype)
    return np.where(below, ends.min, np.where(above, ends.max, inside)).astype(dtype.dtype)


def cast(x: Node, dtype: DType) -> Node:
    """`x` as another dtype; itself where it has that dtype."""
    return x if x.dtype is dtype else Cast(dtype)(x)
