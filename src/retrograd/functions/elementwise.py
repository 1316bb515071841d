"""Elementwise functions with broadcasting and dtype promotion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from retrograd.eager.conversion import integer_range
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, OptionError
from retrograd.functions.broadcasting import (
    as_node,
    broadcast,
    broadcast_shapes,
    broadcast_to,
    promote_to_float,
    rounded,
)
from retrograd.ir import Node, as_dtype, bool_, full
from retrograd.ops import elementwise as ops
from retrograd.ops.complex import complex_, imag, real
from retrograd.ops.identity import StopGradient
from retrograd.tensor_type import Tensor

P = ParamSpec("P")


def _named(
    call: Callable[P, Any], name: str, doc: str, numbers: bool = False
) -> Callable[P, Tensor]:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return op_function(call, numbers)


KINDS = {"bool": "booleans", "int": "integers", "float": "floats", "complex": "complex numbers"}


def described(
    doc: str, op: ops.Elementwise, example: str, call: str, slope: str = "", *,
    floating: bool = False, boolean: bool = False, kinds: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """The docstring of an elementwise function: the mathematics as given; shapes, dtypes and errors
    as they follow from the op and the `kinds` of dtypes that the function takes, by default those
    of the op; and an example, `arguments -> result`. Functions that convert integers to floats are
    `floating`, those whose result is converted to a boolean are `boolean`."""
    boolean = boolean or op.result is not None
    given, promoted = ("x", "") if op.arity == 1 else ("x1 and x2", ", promoted")
    shape = "the shape of x" if op.arity == 1 else f"the shape that those of {given} broadcast to"
    dtype = "is boolean" if boolean else "has its dtype" if op.arity == 1 else "has their dtype"
    text = [f"Elementwise: the result has {shape} and {dtype}{promoted * (not boolean)}."]
    if floating:
        text.append("Integers and booleans are taken as float32.")
    if slope:
        text.append(f"Derivative{'s' * (op.arity != 1)} in {given}: {slope}.")
    kinds = kinds or (*op.kinds, *(("bool", "int") if floating else ()))
    refused = ", ".join(word for kind, word in KINDS.items() if kind not in kinds)
    refused = f"{refused} and what" if refused else "what"
    broadcast = ", `ShapeError` where they do not broadcast" if op.arity != 1 else ""
    text.append(f"`DTypeError` for {refused} is no array of numbers{broadcast}.")
    arguments, result = example.split(" -> ")
    imports = "import math, retrograd as rg" if "math." in arguments else "import retrograd as rg"
    shown = [f">>> {imports}", f">>> {call}({arguments}).tolist()", result]
    return "\n".join([doc, "", *text, "", *shown])


def _unary(
    name: str, doc: str, op: ops.Elementwise, floating: bool = True, slope: str = "", *,
    example: str,
) -> Callable[[ArrayLike], Tensor]:  # fmt: skip
    def call(x: ArrayLike, /) -> Any:
        return op(*broadcast(x, floating=floating))

    return _named(call, name, described(doc, op, example, f"rg.{name}", slope, floating=floating))


def _binary(
    name: str, doc: str, op: ops.Elementwise, floating: bool = False, slope: str = "", *,
    example: str, booleans: ops.Elementwise | None = None,
) -> Callable[[ArrayLike, ArrayLike], Tensor]:  # fmt: skip
    def call(x1: ArrayLike, x2: ArrayLike, /) -> Any:
        operands = broadcast(x1, x2, floating=floating)
        if booleans is not None and operands[0].dtype is bool_:
            return booleans(*operands)
        return op(*operands)

    kinds = None if booleans is None else (*op.kinds, "bool")
    text = described(doc, op, example, f"rg.{name}", slope, floating=floating, kinds=kinds)
    return _named(call, name, text, numbers=True)


# fmt: off
add = _binary("add", "`x1 + x2`; of booleans `x1 | x2`, as in NumPy.", ops.add, slope="1, 1",
              booleans=ops.bitwise_or, example="[1, 2], 10 -> [11, 12]")
subtract = _binary("subtract", "`x1 - x2`.", ops.sub,
                   slope="1, -1", example="[1, 2], 10 -> [-9, -8]")
multiply = _binary("multiply", "`x1 * x2`; of booleans `x1 & x2`, as in NumPy. An exactly zero "
                   "cotangent stays zero whatever the other factor is.", ops.mul, slope="x2, x1",
                   booleans=ops.bitwise_and, example="[1, 2], 10 -> [10, 20]")
divide = _binary("divide", "`x1 / x2` in floating point.", ops.div, floating=True,
                 slope="1 / x2, -x1 / x2**2", example="[1, 3], 2 -> [0.5, 1.5]")
floor_divide = _binary("floor_divide", "`x1 // x2`, rounded down; integers over 0 give 0.",
                       ops.floor_div, slope="0, 0", example="[7, -7], 2 -> [3, -4]")
remainder = _binary("remainder", "`x1 % x2` with the sign of x2; integers modulo 0 give x1.",
                    ops.mod, slope="1, -floor(x1 / x2)", example="[7, -7], 3 -> [1, 2]")
maximum = _binary("maximum", "The larger of both; NaN if one is NaN. Ties share the gradient.",
                  ops.max, slope="1 for the larger, 0 for the other", example="[1, 5], 3 -> [3, 5]")
minimum = _binary("minimum", "The smaller of both; NaN if one is NaN. Ties share the gradient.",
                  ops.min,
                  slope="1 for the smaller, 0 for the other", example="[1, 5], 3 -> [1, 3]")
atan2 = _binary("atan2", "The angle of the point (x2, x1), in radians.", ops.atan2, floating=True,
                slope="x2 / r, -x1 / r with r = x1**2 + x2**2",
                example="[0.0, 1.0], 1.0 -> [0.0, 0.7854]")
hypot = _binary("hypot", "`sqrt(x1**2 + x2**2)` without overflow; gradient 0 at the origin.",
                ops.hypot, floating=True,
                slope="x1 / y, x2 / y", example="[3.0, 0.0], 4.0 -> [5.0, 4.0]")
logaddexp = _binary("logaddexp", "`log(exp(x1) + exp(x2))` without overflow.", ops.logaddexp,
                    floating=True,
                    slope="exp(x1 - y), exp(x2 - y)",
                    example="[0.0, 1000.0], 0.0 -> [0.6931, 1000.0]")
copysign = _binary("copysign", "The size of x1 with the sign of x2, be that a zero or a NaN. "
                   "The gradient with respect to x1 is 1 or -1, 0 at 0; that of x2 is 0.",
                   ops.copysign, floating=True, example="[1.0, -2.0], -0.0 -> [-1.0, -2.0]")
nextafter = _binary("nextafter", "The number of the dtype next to x1 in the direction of x2; x2 "
                    "where they are equal. The derivative in x1 is 1, in x2 0.", ops.nextafter,
                    floating=True, example="1.0, 2.0 -> 1.0")
equal = _binary("equal", "`x1 == x2`.", ops.eq, example="[1, 2], 2 -> [False, True]")
not_equal = _binary("not_equal", "`x1 != x2`.", ops.ne, example="[1, 2], 2 -> [True, False]")
less = _binary("less", "`x1 < x2`.", ops.lt, example="[1, 2], 2 -> [True, False]")
less_equal = _binary("less_equal", "`x1 <= x2`.", ops.le, example="[1, 2], 2 -> [True, True]")
greater = _binary("greater", "`x1 > x2`.", ops.gt, example="[1, 2], 1 -> [False, True]")
greater_equal = _binary("greater_equal", "`x1 >= x2`.", ops.ge,
                        example="[1, 2], 2 -> [False, True]")
bitwise_and = _binary("bitwise_and", "`x1 & x2` of booleans or integers.", ops.bitwise_and,
                      example="[6, 1], 3 -> [2, 1]")
bitwise_or = _binary("bitwise_or", "`x1 | x2` of booleans or integers.", ops.bitwise_or,
                     example="[6, 1], 3 -> [7, 3]")
bitwise_xor = _binary("bitwise_xor", "`x1 ^ x2` of booleans or integers.", ops.bitwise_xor,
                      example="[6, 1], 3 -> [5, 2]")
bitwise_left_shift = _binary("bitwise_left_shift", "`x1 << x2`.", ops.shift_left,
                             example="[1, 3], 2 -> [4, 12]")
bitwise_right_shift = _binary("bitwise_right_shift", "`x1 >> x2`.", ops.shift_right,
                              example="[8, -8], 2 -> [2, -2]")

negative = _unary("negative", "`-x`.", ops.neg, floating=False,
                  slope="-1", example="[1.0, -2.0] -> [-1.0, 2.0]")
signbit = _unary("signbit", "Whether the sign is negative, that of a zero or a NaN included.",
                 ops.signbit, slope="0", example="[1.0, -0.0] -> [False, True]")
exp = _unary("exp", "e to the power x.", ops.exp,
             slope="exp(x)", example="[0.0, 1.0] -> [1.0, 2.718]")
exp2 = _unary("exp2", "2 to the power x.", ops.exp2,
              slope="log(2) 2**x", example="[0.0, 3.0] -> [1.0, 8.0]")
expm1 = _unary("expm1", "`exp(x) - 1`, accurate near 0.", ops.expm1,
               slope="exp(x)", example="[0.0, 1e-6] -> [0.0, 1e-06]")
log = _unary("log", "Natural logarithm; -inf at 0, NaN below.", ops.log,
             slope="1 / x", example="[1.0, 10.0] -> [0.0, 2.303]")
log2 = _unary("log2", "Logarithm to base 2.", ops.log2,
              slope="1 / (x log(2))", example="[1.0, 8.0] -> [0.0, 3.0]")
log10 = _unary("log10", "Logarithm to base 10.", ops.log10,
               slope="1 / (x log(10))", example="[1.0, 100.0] -> [0.0, 2.0]")
log1p = _unary("log1p", "`log(1 + x)`, accurate near 0.", ops.log1p,
               slope="1 / (1 + x)", example="[0.0, 1.0] -> [0.0, 0.6931]")
sqrt = _unary("sqrt", "Square root; NaN below 0.", ops.sqrt,
              slope="1 / (2 sqrt(x))", example="[4.0, 9.0] -> [2.0, 3.0]")
rsqrt = _unary("rsqrt", "`1 / sqrt(x)`.", ops.rsqrt,
               slope="-1 / (2 x sqrt(x))", example="[4.0, 1.0] -> [0.5, 1.0]")
cbrt = _unary("cbrt", "Cube root.", ops.cbrt,
              slope="1 / (3 cbrt(x)**2)", example="[8.0, -27.0] -> [2.0, -3.0]")
reciprocal = _unary("reciprocal", "`1 / x`.", ops.reciprocal,
                    slope="-1 / x**2", example="[2.0, 4.0] -> [0.5, 0.25]")
sin = _unary("sin", "Sine of x in radians.", ops.sin,
             slope="cos(x)", example="[0.0, 0.5] -> [0.0, 0.4794]")
cos = _unary("cos", "Cosine of x in radians.", ops.cos,
             slope="-sin(x)", example="[0.0, 0.5] -> [1.0, 0.8776]")
tan = _unary("tan", "Tangent of x in radians.", ops.tan,
             slope="1 + tan(x)**2", example="[0.0, 0.5] -> [0.0, 0.5463]")
asin = _unary("asin", "Inverse sine, in radians.", ops.asin,
              slope="1 / sqrt(1 - x**2)", example="[0.0, 1.0] -> [0.0, 1.571]")
acos = _unary("acos", "Inverse cosine, in radians.", ops.acos,
              slope="-1 / sqrt(1 - x**2)", example="[1.0, 0.0] -> [0.0, 1.571]")
atan = _unary("atan", "Inverse tangent, in radians.", ops.atan,
              slope="1 / (1 + x**2)", example="[0.0, 1.0] -> [0.0, 0.7854]")
sinh = _unary("sinh", "Hyperbolic sine.", ops.sinh,
              slope="cosh(x)", example="[0.0, 1.0] -> [0.0, 1.175]")
cosh = _unary("cosh", "Hyperbolic cosine.", ops.cosh,
              slope="sinh(x)", example="[0.0, 1.0] -> [1.0, 1.543]")
tanh = _unary("tanh", "Hyperbolic tangent.", ops.tanh,
              slope="1 - tanh(x)**2", example="[0.0, 0.5] -> [0.0, 0.4621]")
asinh = _unary("asinh", "Inverse hyperbolic sine.", ops.asinh,
               slope="1 / sqrt(1 + x**2)", example="[0.0, 1.0] -> [0.0, 0.8814]")
acosh = _unary("acosh", "Inverse hyperbolic cosine.", ops.acosh,
               slope="1 / sqrt(x**2 - 1)", example="[1.0, 2.0] -> [0.0, 1.317]")
atanh = _unary("atanh", "Inverse hyperbolic tangent.", ops.atanh,
               slope="1 / (1 - x**2)", example="[0.0, 0.5] -> [0.0, 0.5493]")
erf = _unary("erf", "Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
             ops.erf, slope="2 / sqrt(pi) exp(-x**2)", example="[0.0, 1.0] -> [0.0, 0.8427]")
erfc = _unary("erfc", "`1 - erf(x)`, accurate for large x.", ops.erfc,
              slope="-2 / sqrt(pi) exp(-x**2)", example="[0.0, 1.0] -> [1.0, 0.1573]")
sigmoid = _unary("sigmoid", "`1 / (1 + exp(-x))`, accurate in both tails.", ops.sigmoid,
                 slope="sigmoid(x) (1 - sigmoid(x))", example="[0.0, 2.0] -> [0.5, 0.8808]")
softplus = _unary("softplus", "`log(1 + exp(x))`, without overflow.", ops.softplus,
                  slope="sigmoid(x)", example="[0.0, 2.0] -> [0.6931, 2.127]")
relu = _unary("relu", "`max(x, 0)`; its derivative at 0 is 0.", ops.relu, floating=False,
              slope="1 above 0, else 0", example="[-1.0, 2.0] -> [0.0, 2.0]")
bitwise_invert = _unary("bitwise_invert", "`~x` of booleans or integers.", ops.bitwise_not,
                        floating=False, example="[0, 5] -> [-1, -6]")
# fmt: on


def _rounding(
    name: str, doc: str, op: ops.Elementwise, example: str
) -> Callable[[ArrayLike], Tensor]:
    def call(x: ArrayLike, /) -> Any:
        (x,) = broadcast(x)
        return op(x) if x.dtype.is_inexact else x

    doc, kinds = f"{doc} Integers stay as they are.", ("bool", "int", *op.kinds)
    return _named(call, name, described(doc, op, example, f"rg.{name}", "0", kinds=kinds))


def _testing(
    name: str, doc: str, op: ops.Elementwise, join: ops.Elementwise, example: str
) -> Callable[[ArrayLike], Tensor]:
    def call(x: ArrayLike, /) -> Any:
        (x,) = broadcast(x, floating=True)
        return join(op(real(x)), op(imag(x))) if x.dtype.is_complex else op(x)

    text = described(doc, op, example, f"rg.{name}", kinds=tuple(KINDS))
    return _named(call, name, text)


isnan = _testing(
    "isnan",
    "Whether x, or a part of it, is NaN.",
    ops.isnan,
    ops.bitwise_or,
    example="[1.0, math.nan] -> [False, True]",
)
isinf = _testing(
    "isinf",
    "Whether x, or a part of it, is infinite.",
    ops.isinf,
    ops.bitwise_or,
    example="[1.0, -math.inf] -> [False, True]",
)
isfinite = _testing("isfinite", "Whether x is neither NaN nor infinite, nor a part of it.",
                    ops.isfinite, ops.bitwise_and,
                    example="[1.0, math.inf] -> [True, False]")  # fmt: skip


floor = _rounding(
    "floor", "The largest integer not above x.", ops.floor, example="[1.5, -1.5] -> [1.0, -2.0]"
)
ceil = _rounding(
    "ceil", "The smallest integer not below x.", ops.ceil, example="[1.5, -1.5] -> [2.0, -1.0]"
)
trunc = _rounding(
    "trunc", "The integer part of x.", ops.trunc, example="[1.5, -1.5] -> [1.0, -1.0]"
)


@op_function
def round(x: ArrayLike, /) -> Any:
    """The nearest integer, ties to even; of complex numbers each part.

    Elementwise; its derivative is 0, integers stay as they are.

    The result has the shape and dtype of x. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.round([0.5, 1.5, -1.2]).tolist()
    [0.0, 2.0, -1.0]
    """
    (x,) = broadcast(x)
    if x.dtype.is_complex:
        return complex_(ops.round(real(x)), ops.round(imag(x)))
    return ops.round(x) if x.dtype.is_float else x


@op_function
def abs(x: ArrayLike, /) -> Any:
    """`|x|`, elementwise; its derivative at 0 is 0. Of complex numbers a real number, without
    overflow; its gradient is `x / |x|`.

    The result has the shape of x, and its dtype or that of its parts. Derivative: the sign of x.
    `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.abs([-2.0, 3.0]).tolist(), rg.abs(3 + 4j).item()
    ([2.0, 3.0], 5.0)
    """
    (x,) = broadcast(x)
    return ops.hypot(real(x), imag(x)) if x.dtype.is_complex else ops.abs(x)


@op_function
def sign(x: ArrayLike, /) -> Any:
    """-1, 0 or 1, elementwise; of complex numbers `x / |x|`, 0 at 0, and NaN in both parts where
    one is NaN or both are infinite.

    The result has the shape and dtype of x; its derivative is 0, except for complex numbers.
    `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.sign([-2.0, 0.0, 3.0]).tolist()
    [-1.0, 0.0, 1.0]
    """
    (x,) = broadcast(x)
    if not x.dtype.is_complex:
        return ops.sign(x)
    parts = real(x), imag(x)
    size = ops.hypot(*parts)
    far, zero = ops.isinf(size), full(0, size.type)
    # Beside an infinite part a finite one is nothing; of a number that is NaN so are both parts.
    a, b = (ops.select(far, ops.select(ops.isinf(p), ops.sign(p), p * zero), p) for p in parts)
    both = ops.isinf(parts[0]) & ops.isinf(parts[1])
    odd = ops.isnan(parts[0]) | ops.isnan(parts[1]) | both
    size = ops.one_if(ops.is_zero(size) | far, size)
    size = ops.select(odd, full(math.nan, size.type), size)
    zeros = ops.is_zero(a) & ops.is_zero(b)
    return complex_(*(ops.select(zeros, zero, p / size) for p in (a, b)))


@op_function
def positive(x: ArrayLike, /) -> Any:
    """`+x`: the numbers as they are; booleans are refused.

    Elementwise: shape and dtype stay. `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.positive([1, -2]).tolist()
    [1, -2]
    """
    (x,) = broadcast(x)
    if x.dtype is bool_:
        raise DTypeError("booleans have no sign; cast them to a number")
    return x


@op_function
def square(x: ArrayLike, /) -> Any:
    """`x * x`, elementwise.

    The result has the shape and dtype of x. Derivative: `2 x`. `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.square([3.0, -2.0]).tolist()
    [9.0, 4.0]
    """
    (x,) = broadcast(x)
    return ops.mul(x, x)


@op_function
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`x1 ** x2`, elementwise, with broadcasting and dtype promotion.

    Gradients: `x2 * x1**(x2-1)` and `x1**x2 * log(x1)`, where the latter is 0 at `x1 == 0`. The
    powers -1, 0.5, 1 and 2 given as Python numbers become `1/x`, `sqrt(x)`, `x`, `x*x`; the powers
    3, -2 and -0.5 are computed as `x*x*x`, `1/x/x` and `1/sqrt(x)` wherever they come from.
    Complex powers are `exp(x2 log(x1))`, products where x2 is a Python integer up to 64.

    `DTypeError` for booleans, and for negative powers of integers that are known; `ShapeError`
    where the shapes do not broadcast.

    >>> import retrograd as rg
    >>> rg.pow([2.0, 3.0], [3.0, 2.0]).tolist()
    [8.0, 9.0]
    """
    if isinstance(x1, Node) and not isinstance(x2, Node):
        if isinstance(x2, int) and x2 < 0 and x1.dtype.is_integer:
            raise DTypeError(
                f"{x1.dtype} has no powers of {x2}, which are fractions; write x ** {float(x2)}"
            )
        if x2 == 2:
            return ops.mul(x1, x1)
        if x2 == 1:
            return broadcast(x1, x2)[0]
        if x2 == 0.5:
            return ops.sqrt(*broadcast(x1, floating=True))
        if x2 == -1 and x1.dtype.is_inexact:
            return ops.reciprocal(x1)
        if x1.dtype.is_complex and isinstance(x2, int) and -64 <= x2 <= 64:
            return whole_power(x1, x2)
    a, b = broadcast(x1, x2)
    if a.dtype.is_complex:
        return complex_power(a, b)
    if a.dtype is bool_:
        raise DTypeError("booleans have no powers; cast them to a number")
    return ops.pow(a, b)


def whole_power(x: Node, n: int) -> Node:
    """`x ** n` by squaring."""
    result, square = full(1, x.type), x
    for bit in bin(-n if n < 0 else n)[:1:-1]:
        result = ops.mul(result, square) if bit == "1" else result
        square = ops.mul(square, square)
    return ops.reciprocal(result) if n < 0 else result


def complex_power(a: Node, b: Node) -> Node:
    """`exp(b log(a))`; 1 where b is 0, and 0 to a power of positive real part is 0."""
    zero = ops.is_zero(a)
    found = ops.exp(ops.mul(b, ops.log(ops.one_if(zero, a))))
    positive = ops.gt(real(b), full(0, b.type.with_dtype(b.dtype.real)))
    at_zero = ops.select(positive, full(0, a.type), full(complex("nan+nanj"), a.type))
    found = ops.select(zero, at_zero, found)
    return ops.one_if(ops.is_zero(b), found)


def _logical(
    name: str, doc: str, op: ops.Elementwise, example: str
) -> Callable[[ArrayLike, ArrayLike], Tensor]:
    def call(x1: ArrayLike, x2: ArrayLike, /) -> Any:
        a, b = broadcast(x1, x2)
        return op(ops.cast(a, bool_), ops.cast(b, bool_))

    doc = f"{doc} What is not zero counts as true."
    text = described(doc, op, example, f"rg.{name}", boolean=True, kinds=tuple(KINDS))
    return _named(call, name, text)


logical_and = _logical(
    "logical_and",
    "Whether both are true.",
    ops.bitwise_and,
    example="[0, 2], True -> [False, True]",
)
logical_or = _logical(
    "logical_or", "Whether one is true.", ops.bitwise_or, example="[0, 2], False -> [False, True]"
)
logical_xor = _logical(
    "logical_xor",
    "Whether exactly one is true.",
    ops.bitwise_xor,
    example="[0, 2], True -> [True, False]",
)


@op_function
def logical_not(x: ArrayLike, /) -> Any:
    """Whether x is zero or false.

    Elementwise: the result has the shape of x and is boolean. `DTypeError` for what is no array of
    numbers.

    >>> import retrograd as rg
    >>> rg.logical_not([0, 2]).tolist()
    [True, False]
    """
    return ops.bitwise_not(ops.cast(broadcast(x)[0], bool_))


@op_function
def where(condition: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None, /) -> Any:
    """`x1` where the condition is true, `x2` elsewhere, with broadcasting and dtype promotion.

    The branch that is not taken gets a gradient of exactly 0, even where its value or derivative is
    infinite or NaN.

    The result has the shape that all three broadcast to, or it is a `ShapeError`; `DTypeError` for
    what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.where([True, False], [1.0, 2.0], -1.0).tolist()
    [1.0, -1.0]
    """
    if x1 is None or x2 is None:
        raise OptionError("where takes two branches; rg.nonzero(condition) lists where it is true")
    c = ops.cast(as_node(condition), bool_)
    a, b = broadcast(x1, x2)
    shape = broadcast_shapes(c.shape, a.shape)
    return ops.select(*(broadcast_to(n, shape) for n in (c, a, b)))


@op_function
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Any:
    """`x` limited to the range from `min` to `max`; None means no limit.

    The gradient with respect to x is 0 at the limits and beyond.

    Elementwise: the shapes broadcast, or it is a `ShapeError`; dtypes are promoted. `DTypeError`
    for booleans and complex numbers.

    >>> import retrograd as rg
    >>> rg.clip([-2.0, 0.5, 2.0], -1.0, 1.0).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min is None and max is None:
        return broadcast(x)[0]
    x = as_node(x)
    if x.dtype is bool_:
        raise DTypeError("booleans have no range to clip to; cast them to a number")
    if x.dtype.is_integer and (isinstance(min, float) or isinstance(max, float)):
        x = promote_to_float(x)
    lowest, highest = integer_range(x.dtype) if x.dtype.is_integer else (-math.inf, math.inf)
    parts = broadcast(x, lowest if min is None else min, highest if max is None else max)
    if parts[0].dtype.is_complex:
        raise DTypeError("complex numbers have no order to clip by; clip their real or abs instead")
    return ops.clamp(*parts)


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` converted to another dtype. Floats become integers by truncation, limited to the range of
    the dtype; NaN becomes 0. Tensors are not changed, so that a copy differs in identity only: with
    `copy=False` a tensor of the dtype is returned itself.

    The shape stays; gradients are converted back. `DTypeError` for what is no dtype, `OptionError`
    for a device other than the CPU.

    >>> import retrograd as rg
    >>> rg.astype([1.7, -1.7], rg.int64).tolist()
    [1, -1]
    """
    if device not in (None, "cpu"):
        raise OptionError(f"tensors are on the CPU, not on device {device!r}")
    if not copy and isinstance(x, LazyTensor) and x.dtype is as_dtype(dtype):
        return x  # type: ignore[return-value]
    return _astype(x, dtype)


def _cast(x: ArrayLike, dtype: Any, /) -> Any:
    return rounded(as_node(x), as_dtype(dtype))


_astype = _named(_cast, "astype", astype.__doc__ or "")


@op_function
def stop_gradient(x: ArrayLike, /) -> Any:
    """`x`, taken as a constant by differentiation.

    The value, shape and dtype are those of x; the derivative is 0. `DTypeError` for what is no
    array of numbers.

    >>> import retrograd as rg
    >>> rg.grad(lambda x: x * rg.stop_gradient(x))(3.0).item()
    3.0
    """
    return StopGradient()(as_node(x))
