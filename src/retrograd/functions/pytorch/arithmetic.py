"""Elementwise functions under PyTorch's names, and those that only PyTorch has."""

from __future__ import annotations

from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function, with_options
from retrograd.errors import OptionError
from retrograd.functions import elementwise as functions
from retrograd.functions import special
from retrograd.functions.broadcasting import as_node, broadcast, promote_to_float
from retrograd.functions.complex import make_complex
from retrograd.ir import Node, full
from retrograd.ops import elementwise as el

absolute, neg, sgn, fix = functions.abs, functions.negative, functions.sign, functions.trunc
bitwise_not, mul, true_divide = functions.bitwise_invert, functions.multiply, functions.divide
arccos, arccosh, arcsin, arcsinh = functions.acos, functions.acosh, functions.asin, functions.asinh
arctan, arctan2, arctanh = functions.atan, functions.atan2, functions.atanh
eq, ne, lt, le = functions.equal, functions.not_equal, functions.less, functions.less_equal
gt, ge = functions.greater, functions.greater_equal
digamma, lgamma, erfinv = special.digamma, special.gammaln, special.erfinv
i0, xlogy = special.i0, special.xlogy
igamma, igammac, mvlgamma = special.gammainc, special.gammaincc, special.multigammaln


def scaled(other: Any, alpha: Any) -> Any:
    """`alpha * other`."""
    if isinstance(alpha, int | float) and alpha == 1:
        return other
    if isinstance(other, int | float | complex) and isinstance(alpha, int | float | complex):
        return other * alpha
    return functions.multiply(other, alpha)


@op_function
def sub(x: ArrayLike, other: ArrayLike, /, *, alpha: ArrayLike = 1) -> Any:
    """`x - alpha * other`: `subtract`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`. `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.sub(rg.tensor([5.0]), 2.0, alpha=2).tolist()
    [1.0]
    """
    return functions.subtract(x, scaled(other, alpha))


with_options(functions.subtract, sub)


@op_function
def rsub(x: ArrayLike, other: ArrayLike, /, *, alpha: ArrayLike = 1) -> Any:
    """`other - alpha * x`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`. `DTypeError` for booleans.

    >>> import retrograd as rg
    >>> rg.rsub(rg.tensor([5.0]), 2.0).tolist()
    [-3.0]
    """
    return functions.subtract(other, scaled(x, alpha))


@op_function
def add(x: ArrayLike, other: ArrayLike, /, *, alpha: ArrayLike = 1) -> Any:
    """`x + alpha * other`: the method `x.add(other, alpha=alpha)`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.tensor([5.0]).add(2.0, alpha=2).tolist()
    [9.0]
    """
    return functions.add(x, scaled(other, alpha))


with_options(functions.add, add)


@op_function
def div(x: ArrayLike, other: ArrayLike, /, *, rounding_mode: str | None = None) -> Any:
    """`x / other`, or the integer part of it ("trunc"), or the largest integer not above it
    ("floor").

    Elementwise: the shapes broadcast, or it is a `ShapeError`. `OptionError` for another mode.

    >>> import retrograd as rg
    >>> rg.div(rg.tensor([-7, 7]), 2, rounding_mode="trunc").tolist()
    [-3, 3]
    """
    if rounding_mode is None:
        return functions.divide(x, other)
    if rounding_mode == "floor":
        return functions.floor_divide(x, other)
    if rounding_mode != "trunc":
        raise OptionError(f"div: rounding_mode is None, 'trunc' or 'floor', not {rounding_mode!r}")
    a, b = broadcast(x, other)
    if a.dtype.is_inexact:
        return el.trunc(el.div(a, b))
    if a.dtype.kind == "uint":
        return el.floor_div(a, b)
    quotient = el.floor_div(el.abs(a), el.abs(b))
    apart = el.ne(el.lt(a, full(0, a.type)), el.lt(b, full(0, b.type)))
    return el.select(apart, -quotient, quotient)


divide = div
with_options(functions.divide, div)


@op_function
def round(x: ArrayLike, /, decimals: int = 0) -> Any:
    """The nearest number of so many decimal places, ties to even; negative ones round to tens,
    hundreds and so on: the method `x.round(decimals=2)`.

    Elementwise; integers stay as they are for `decimals >= 0`. `DTypeError` for what is no array.

    >>> import retrograd as rg
    >>> rg.tensor([1.25, 1.35]).round(decimals=1).tolist()
    [1.2, 1.4]
    """
    x = as_node(x)
    if decimals == 0 or (x.dtype.is_integer and decimals > 0):
        return functions.round(x)
    by = 10.0 ** abs(decimals)
    wide = promote_to_float(x)
    by_node = full(by, wide.type)
    if decimals > 0:
        return el.div(el.round(el.mul(wide, by_node)), by_node)
    return el.cast(el.mul(el.round(el.div(wide, by_node)), by_node), x.dtype)


with_options(functions.round, round)


@op_function
def clamp(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Any:
    """x limited to the range from `min` to `max`, numbers or arrays: `clip`.

    The gradient in x is 0 at the limits and beyond. Elementwise: the shapes broadcast, or it is a
    `ShapeError`. `OptionError` without a limit, `DTypeError` for booleans and complex numbers.

    >>> import retrograd as rg
    >>> rg.clamp(rg.tensor([-2.0, 0.5, 2.0]), min=0).tolist()
    [0.0, 0.5, 2.0]
    """
    if min is None and max is None:
        raise OptionError("clamp takes min, max or both")
    return functions.clip(x, min, max)


@op_function
def clamp_min(x: ArrayLike, /, min: ArrayLike) -> Any:
    """x where it is at least `min`: `clamp(x, min=min)`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.clamp_min(rg.tensor([-2.0, 0.5]), 0).tolist()
    [0.0, 0.5]
    """
    return functions.clip(x, min, None)


@op_function
def clamp_max(x: ArrayLike, /, max: ArrayLike) -> Any:
    """x where it is at most `max`: `clamp(x, max=max)`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.clamp_max(rg.tensor([-2.0, 0.5]), 0).tolist()
    [-2.0, 0.0]
    """
    return functions.clip(x, None, max)


@op_function
def frac(x: ArrayLike, /) -> Any:
    """The part of x behind the point, with its sign: `x - trunc(x)`.

    Elementwise. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.frac(rg.tensor([1.5, -1.5])).tolist()
    [0.5, -0.5]
    """
    x = as_node(x)
    return functions.subtract(x, functions.trunc(x))


@op_function
def lerp(x: ArrayLike, end: ArrayLike, weight: ArrayLike, /) -> Any:
    """`x + weight * (end - x)`: a share of the way from x to `end`.

    Computed from the nearer end, so that it meets both. Elementwise: the shapes broadcast, or it is
    a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.lerp(rg.tensor([0.0]), rg.tensor([10.0]), 0.3).tolist()
    [3.0]
    """
    x, end, weight = broadcast(x, end, weight)
    way = end - x
    share = as_node(functions.abs(weight))
    near = el.lt(share, full(0.5, share.type))
    return el.select(near, x + weight * way, end - way * (1 - weight))


@op_function
def addcmul(
    x: ArrayLike, tensor1: ArrayLike, tensor2: ArrayLike, /, *, value: ArrayLike = 1
) -> Any:
    """`x + value * tensor1 * tensor2`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.addcmul(rg.tensor([1.0]), rg.tensor([2.0]), rg.tensor([3.0]), value=10).tolist()
    [61.0]
    """
    return functions.add(x, scaled(functions.multiply(tensor1, tensor2), value))


@op_function
def addcdiv(
    x: ArrayLike, tensor1: ArrayLike, tensor2: ArrayLike, /, *, value: ArrayLike = 1
) -> Any:
    """`x + value * tensor1 / tensor2`.

    Elementwise: the shapes broadcast, or it is a `ShapeError`.

    >>> import retrograd as rg
    >>> rg.addcdiv(rg.tensor([1.0]), rg.tensor([6.0]), rg.tensor([3.0])).tolist()
    [3.0]
    """
    return functions.add(x, scaled(functions.divide(tensor1, tensor2), value))


@op_function
def logit(x: ArrayLike, /, eps: float | None = None) -> Any:
    """`log(x / (1 - x))`, of x limited to the range from `eps` to `1 - eps` where that is given.

    Elementwise; NaN outside of [0, 1] without `eps`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.logit(rg.tensor([0.5])).tolist()
    [0.0]
    """
    node: Node = promote_to_float(x)
    return special.logit(node if eps is None else functions.clip(node, eps, 1 - eps))


@op_function
def polygamma(n: int, x: ArrayLike, /) -> Any:
    """The n-th derivative of `digamma`.

    Elementwise. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.polygamma(0, rg.tensor([1.0])).tolist()
    [-0.5772]
    """
    return special.polygamma(n, x)


@op_function
def polar(abs: ArrayLike, angle: ArrayLike, /) -> Any:
    """The complex number of a magnitude and an angle in radians.

    Elementwise: the shapes broadcast, or it is a `ShapeError`. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.polar(rg.tensor(2.0), rg.tensor(0.0)).item()
    (2+0j)
    """
    size, turn = broadcast(abs, angle, floating=True)
    return make_complex(size * el.cos(turn), size * el.sin(turn))


@op_function
def threshold(x: ArrayLike, /, threshold: float, value: float) -> Any:
    """x where it is above a threshold, a number elsewhere.

    Elementwise. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.threshold(rg.tensor([0.5, 2.0]), 1.0, -1.0).tolist()
    [-1.0, 2.0]
    """
    x = as_node(x)
    return functions.where(functions.greater(x, threshold), x, value)
