"""Elementwise operations: a table of mathematics.

Each line gives the name, the meaning in NumPy, the kinds of dtype it takes, and per input the
derivative as a function of `g` (the cotangent of the output), `y` (the output) and the inputs. The
derivative is linear in `g`, so the same line is the reverse rule (for the cotangent) and the
forward rule (for each input's tangent, summed).

Two products keep gradients sound where the forward pass is singular: `zmul(g, d)` is `g * d`, and
`zdiv(g, d)` is `g / d`, except that a `g` of exactly zero gives zero whatever `d` is, infinities and
NaN included. A branch that `where` did not take sends back exactly zero, and so contributes zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, DType, Node, Op, TensorType, bool_, declare, full, register
from retrograd.ops.shape import stack_front

Derivative = Callable[..., Node] | None
FLOAT, NUMBER, INTEGER, BOOLEAN = "float", "float int uint", "int uint", "bool"
BITS, ANY = "bool int uint", "bool float int uint"


class Elementwise(Op):
    """An op applied to each element of inputs of one shape and one dtype."""

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        derivatives: Sequence[Derivative],
        kinds: str,
        result: DType | None = None,
    ) -> None:
        self.name = name
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
            raise DTypeError(f"{self.name} takes {self.kinds} inputs, not {first}")
        return first if self.result is None else first.with_dtype(self.result)

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return self._reference(*arrays)

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
        if c.dtype is not bool_ or c.shape != a.shape:
            raise DTypeError(f"select takes bool{list(a.shape)} as its condition, not {c}")
        _same("select", types, a, b)
        return a


ELEMENTWISE: dict[str, Elementwise] = {}


def _add(op: Elementwise) -> Elementwise:
    ELEMENTWISE[op.name] = op
    register(op.name, lambda: op)
    return op


def unary(
    name: str,
    reference: Callable[..., Any],
    derivative: Derivative = None,
    kinds: str = FLOAT,
    result: DType | None = None,
) -> Elementwise:
    return _add(Elementwise(name, reference, (derivative,), kinds, result))


def binary(
    name: str,
    reference: Callable[..., Any],
    da: Derivative = None,
    db: Derivative = None,
    kinds: str = NUMBER,
    result: DType | None = None,
) -> Elementwise:
    return _add(Elementwise(name, reference, (da, db), kinds, result))


def compare(name: str, reference: Callable[..., Any]) -> Elementwise:
    return _add(Elementwise(name, reference, (None, None), ANY, bool_))


def keep_if(c: Node, g: Node) -> Node:
    """`g` where `c`, zero elsewhere."""
    return select(c, g, full(0, g.type))


def drop_if(c: Node, g: Node) -> Node:
    """Zero where `c`, `g` elsewhere."""
    return select(c, full(0, g.type), g)


def _in_double(f: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python floats applied to each element, in double precision."""
    each = np.vectorize(f, otypes=[np.float64])
    return lambda x: each(x).astype(x.dtype)


def _via_float32(f: Callable[..., Any]) -> Callable[..., Any]:
    """For dtypes NumPy's function does not know (bfloat16): compute in float32, round once."""

    def g(*arrays: Any) -> Any:
        if arrays[0].dtype.itemsize > 2 or arrays[0].dtype.kind in "iub":
            return f(*arrays)
        return f(*[a.astype(np.float32) for a in arrays]).astype(arrays[0].dtype)

    return g


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def _integer_div(a: Any, b: Any) -> Any:
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _floor_div(a: Any, b: Any) -> Any:
    return np.floor_divide(a, b) if a.dtype.kind not in "iu" else _integer_div(a, b)


def _mod(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iu":
        return np.remainder(a, b)
    return (a - _integer_div(a, b) * b).astype(a.dtype)


def _div(a: Any, b: Any) -> Any:
    return np.divide(a, b)


def _pow(a: Any, b: Any) -> Any:
    if a.dtype.kind != "i":
        return np.power(a, b)
    return np.where(b < 0, 0, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _bitwise(f: Callable[..., Any], shift: bool = False) -> Callable[..., Any]:
    def g(a: Any, b: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        return np.where(inside, f(a, np.where(inside, b, 0)), f(a, bits - 1) if not shift else 0)

    return g


# fmt: off
# Products that a zero cotangent absorbs.
zmul = binary("zmul", lambda a, b: np.where(a == 0, a, a * b),
              lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a), FLOAT)
zdiv = binary("zdiv", lambda a, b: np.where(a == 0, a, a / b),
              lambda g, y, a, b: zdiv(g, b), lambda g, y, a, b: -zdiv(zmul(g, y), b), FLOAT)

# Arithmetic.
add = binary("add", np.add, lambda g, y, a, b: g, lambda g, y, a, b: g)
sub = binary("sub", np.subtract, lambda g, y, a, b: g, lambda g, y, a, b: -g)
mul = binary("mul", np.multiply, lambda g, y, a, b: zmul(g, b), lambda g, y, a, b: zmul(g, a))
div = binary("div", _div, lambda g, y, a, b: zdiv(g, b),
             lambda g, y, a, b: -zdiv(zmul(g, y), b), FLOAT)
floor_div = binary("floor_div", _floor_div)
mod = binary("mod", _mod, lambda g, y, a, b: g, lambda g, y, a, b: -zmul(g, floor(a / b)))
neg = unary("neg", np.negative, lambda g, y, x: -g, NUMBER)
abs = unary("abs", np.abs, lambda g, y, x: g * sign(x), NUMBER)
sign = unary("sign", np.sign, None, NUMBER)
floor = unary("floor", np.floor)
ceil = unary("ceil", np.ceil)
trunc = unary("trunc", np.trunc)
round = unary("round", np.rint)
reciprocal = unary("reciprocal", lambda x: 1 / x, lambda g, y, x: -zmul(zmul(g, y), y))

# Powers, exponentials, logarithms.
sqrt = unary("sqrt", np.sqrt, lambda g, y, x: zdiv(g, 2 * y))
rsqrt = unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda g, y, x: zmul(g, -0.5 * y / x))
cbrt = unary("cbrt", _via_float32(np.cbrt), lambda g, y, x: zdiv(zdiv(g, 3 * y), y))
exp = unary("exp", np.exp, lambda g, y, x: zmul(g, y))
exp2 = unary("exp2", _via_float32(np.exp2), lambda g, y, x: zmul(g, y) * math.log(2))
expm1 = unary("expm1", np.expm1, lambda g, y, x: zmul(g, exp(x)))
log = unary("log", np.log, lambda g, y, x: zdiv(g, x))
log2 = unary("log2", np.log2, lambda g, y, x: zdiv(g, x * math.log(2)))
log10 = unary("log10", np.log10, lambda g, y, x: zdiv(g, x * math.log(10)))
log1p = unary("log1p", np.log1p, lambda g, y, x: zdiv(g, 1 + x))
pow = binary("pow", _pow,
             lambda g, y, a, b: zmul(zmul(g, b), pow(a, select(eq(b, full(0, b.type)), b, b - 1))),
             lambda g, y, a, b: zmul(g, zmul(y, log(_one_if(eq(a, full(0, a.type)), a)))))
logaddexp = binary("logaddexp", _via_float32(np.logaddexp),
                   lambda g, y, a, b: zmul(g, exp(a - _finite_or_zero(y))),
                   lambda g, y, a, b: zmul(g, exp(b - _finite_or_zero(y))), FLOAT)
hypot = binary("hypot", _via_float32(np.hypot), lambda g, y, a, b: zmul(g, zdiv(a, y)),
               lambda g, y, a, b: zmul(g, zdiv(b, y)), FLOAT)

# Trigonometric and hyperbolic functions.
sin = unary("sin", np.sin, lambda g, y, x: zmul(g, cos(x)))
cos = unary("cos", np.cos, lambda g, y, x: -zmul(g, sin(x)))
tan = unary("tan", np.tan, lambda g, y, x: zmul(g, 1 + y * y))
asin = unary("asin", np.arcsin, lambda g, y, x: zdiv(g, sqrt((1 - x) * (1 + x))))
acos = unary("acos", np.arccos, lambda g, y, x: -zdiv(g, sqrt((1 - x) * (1 + x))))
atan = unary("atan", np.arctan, lambda g, y, x: zdiv(g, 1 + x * x))
atan2 = binary("atan2", _via_float32(np.arctan2),
               lambda g, y, a, b: zmul(g, zdiv(zdiv(b, hypot(a, b)), hypot(a, b))),
               lambda g, y, a, b: -zmul(g, zdiv(zdiv(a, hypot(a, b)), hypot(a, b))), FLOAT)
sinh = unary("sinh", np.sinh, lambda g, y, x: zmul(g, cosh(x)))
cosh = unary("cosh", np.cosh, lambda g, y, x: zmul(g, sinh(x)))
tanh = unary("tanh", np.tanh, lambda g, y, x: zmul(g, (1 - y) * (1 + y)))
asinh = unary("asinh", np.arcsinh, lambda g, y, x: zdiv(g, hypot(x, full(1, x.type))))
acosh = unary("acosh", np.arccosh, lambda g, y, x: zdiv(zdiv(g, sqrt(x - 1)), sqrt(x + 1)))
atanh = unary("atanh", np.arctanh, lambda g, y, x: zdiv(g, (1 - x) * (1 + x)))

# Functions of learning.
erf = unary("erf", _in_double(math.erf),
            lambda g, y, x: zmul(g, (2 / math.sqrt(math.pi)) * exp(-(x * x))))
erfc = unary("erfc", _in_double(math.erfc),
             lambda g, y, x: -zmul(g, (2 / math.sqrt(math.pi)) * exp(-(x * x))))
relu = unary("relu", lambda x: np.maximum(x, x.dtype.type(0)),
             lambda g, y, x: keep_if(x > 0, g), NUMBER)
sigmoid = unary("sigmoid", _sigmoid, lambda g, y, x: zmul(g, y * sigmoid(-x)))
softplus = unary("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
                 lambda g, y, x: zmul(g, sigmoid(x)))

# Comparisons, choice and bounds. Ties of max and min share the gradient.
eq = compare("eq", np.equal)
ne = compare("ne", np.not_equal)
lt = compare("lt", np.less)
le = compare("le", np.less_equal)
gt = compare("gt", np.greater)
ge = compare("ge", np.greater_equal)
isnan = unary("isnan", np.isnan, None, FLOAT, bool_)
isinf = unary("isinf", np.isinf, None, FLOAT, bool_)
isfinite = unary("isfinite", np.isfinite, None, FLOAT, bool_)
max = binary("max", np.maximum, lambda g, y, a, b: select(eq(a, b), 0.5 * g, keep_if(a > b, g)),
             lambda g, y, a, b: select(eq(a, b), 0.5 * g, keep_if(b > a, g)), ANY)
min = binary("min", np.minimum, lambda g, y, a, b: select(eq(a, b), 0.5 * g, keep_if(a < b, g)),
             lambda g, y, a, b: select(eq(a, b), 0.5 * g, keep_if(b < a, g)), ANY)
select = _add(Select("select", np.where, (
    None, lambda g, y, c, a, b: keep_if(c, g), lambda g, y, c, a, b: drop_if(c, g)), ANY))
clamp = _add(Elementwise("clamp", lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi), (
    lambda g, y, x, lo, hi: keep_if((x > lo) & (x < hi), g),
    lambda g, y, x, lo, hi: keep_if((x <= lo) & (lo < hi), g),
    lambda g, y, x, lo, hi: keep_if((x >= hi) | (lo >= hi), g)), NUMBER))

# Bits. A shift by the width of the dtype or more moves every bit out.
bitwise_not = unary("bitwise_not", np.invert, None, BITS)
bitwise_and = binary("bitwise_and", np.bitwise_and, kinds=BITS)
bitwise_or = binary("bitwise_or", np.bitwise_or, kinds=BITS)
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, kinds=BITS)
shift_left = binary("shift_left", _bitwise(np.left_shift, shift=True), kinds=INTEGER)
shift_right = binary("shift_right", _bitwise(np.right_shift), kinds=INTEGER)
# fmt: on


def _one_if(c: Node, x: Node) -> Node:
    return select(c, full(1, x.type), x)


def _finite_or_zero(y: Node) -> Node:
    return keep_if(isfinite(y), y)


@declare
class Cast(Op):
    """Convert to another dtype: float to integer truncates, anything to bool is `x != 0`."""

    name = "cast"
    arity = 1
    dtype: DType

    def infer(self, *types: TensorType) -> TensorType:
        return types[0].with_dtype(self.dtype)

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return arrays[0].astype(self.dtype.dtype)

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        (x,) = inputs
        return (cast(g, x.dtype) if x.dtype.is_float and self.dtype.is_float else None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        (t,) = tangents
        return self(t) if t is not None and self.dtype.is_float else None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


def cast(x: Node, dtype: DType) -> Node:
    """`x` as another dtype; itself where it has that dtype."""
    return x if x.dtype is dtype else Cast(dtype)(x)
