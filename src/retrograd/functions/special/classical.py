"""Gamma, error and Bessel functions, entropies: operations, and formulas on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError
from retrograd.functions.elementwise import described
from retrograd.functions.special.operands import floats
from retrograd.ir import Node, float32, full
from retrograd.ops import elementwise as el
from retrograd.ops.identity import StopGradient
from retrograd.ops.special import functions as ops
from retrograd.tensor_type import Tensor


def _elementwise(
    op: el.Elementwise, name: str, doc: str, slope: str = "", *, example: str
) -> Callable[..., Tensor]:
    """A function of one or two arguments that is an op."""
    if op.arity == 1:

        def unary(x: ArrayLike, /) -> Any:
            return op(*floats(x))

        call: Callable[..., Any] = unary
    else:

        def binary(x1: ArrayLike, x2: ArrayLike, /) -> Any:
            return op(*floats(x1, x2))

        call = binary
    call.__name__ = call.__qualname__ = name
    call.__doc__ = described(doc, op, example, f"rg.special.{name}", slope, floating=True)
    return op_function(call, numbers=op.arity == 2)


# fmt: off
gamma = _elementwise(ops.gamma, "gamma", "The gamma function of x; NaN at the negative integers, "
                     "±inf at ±0.",
                     slope="gamma(x) digamma(x)", example="[5.0, 0.5] -> [24.0, 1.772]")
gammaln = _elementwise(ops.lgamma, "gammaln", "`log |Gamma(x)|`; inf at 0 and the negative "
                       "integers.",
                       slope="digamma(x)", example="[5.0, 0.5] -> [3.178, 0.5724]")
digamma = _elementwise(ops.digamma, "digamma", "The derivative of `gammaln`; NaN at the negative "
                       "integers, ∓inf at ±0.",
                       slope="polygamma(1, x)", example="[1.0, 0.5] -> [-0.5772, -1.964]")
betaln = _elementwise(ops.betaln, "betaln", "`log |B(x1, x2)|`, accurate for large arguments too, "
                      "at poles too (see `beta`).",
                      slope="digamma(x1) - digamma(x1 + x2), digamma(x2) - digamma(x1 + x2)",
                      example="2.0, [1.0, 3.0] -> [-0.6931, -2.485]")
gammainc = _elementwise(
    ops.gammainc, "gammainc",
    "The regularised lower incomplete gamma function\n\n"
    "    `P(a, x) = int_0^x t^(a-1) exp(-t) dt / Gamma(a)`, `a, x >= 0`; NaN elsewhere.\n\n"
    "Gradients in x are of every order; in a the first and second are computed as integrals of\n"
    "the density times powers of its score, higher ones are NaN. Within `4 + |log P| / 2` units\n"
    "in the last place for float64, or of 1 where `1 - P` is computed (`x >= a`).",
                        example="1.0, [1.0, 2.0] -> [0.6321, 0.8647]")
gammaincc = _elementwise(
    ops.gammaincc, "gammaincc",
    "The regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`, accurate where it\n"
    "is small. Gradients as those of `gammainc`.",
                         example="1.0, [1.0, 2.0] -> [0.3679, 0.1353]")
erfcx = _elementwise(ops.erfcx, "erfcx", "`exp(x**2) erfc(x)`, which neither under- nor overflows "
                     "for positive x.",
                     slope="2 x erfcx(x) - 2 / sqrt(pi)", example="[0.0, 10.0] -> [1.0, 0.05614]")
erfinv = _elementwise(ops.erfinv, "erfinv", "The inverse of erf on [-1, 1], ±inf at its ends; NaN "
                      "outside.",
                      slope="sqrt(pi) / 2 exp(erfinv(x)**2)",
                      example="[0.0, 0.5] -> [0.0, 0.4769]")
erfcinv = _elementwise(ops.erfcinv, "erfcinv", "The inverse of erfc on [0, 2]; NaN outside.",
                       slope="-sqrt(pi) / 2 exp(erfcinv(x)**2)",
                       example="[1.0, 0.5] -> [-0.0, 0.4769]")
ndtr = _elementwise(ops.ndtr, "ndtr", "The normal distribution function, accurate in its tail.",
                    slope="exp(-x**2 / 2) / sqrt(2 pi)", example="[0.0, 1.96] -> [0.5, 0.975]")
ndtri = _elementwise(ops.ndtri, "ndtri", "The inverse of `ndtr` on [0, 1], ±inf at its ends; NaN "
                     "outside.",
                     slope="sqrt(2 pi) exp(ndtri(x)**2 / 2)",
                     example="[0.5, 0.975] -> [0.0, 1.96]")
logit = _elementwise(ops.logit, "logit", "`log(x / (1 - x))`, the inverse of expit; NaN outside of "
                     "[0, 1].",
                     slope="1 / (x (1 - x))", example="[0.5, 0.9] -> [0.0, 2.197]")
xlogy = _elementwise(ops.xlogy, "xlogy", "`x1 log(x2)`, 0 where x1 is 0 unless x2 is NaN. The "
                     "gradient in x1 is `log(x2)` there too.",
                     example="[0.0, 2.0], [0.0, 3.0] -> [0.0, 2.197]")
xlog1py = _elementwise(ops.xlog1py, "xlog1py", "`x1 log(1 + x2)`, 0 where x1 is 0 unless x2 is "
                       "NaN. The gradient in x1 is `log(1 + x2)` there too.",
                       example="[0.0, 2.0], [-1.0, 1.0] -> [0.0, 1.386]")
entr = _elementwise(ops.entr, "entr", "`-x log(x)`, 0 at 0, -inf below. The gradient at 0 is inf.",
                    slope="-log(x) - 1", example="[0.0, 0.5] -> [0.0, 0.3466]")
rel_entr = _elementwise(ops.rel_entr, "rel_entr", "`x1 log(x1 / x2)` of positive arguments, 0 "
                        "where x1 is 0 and x2 is not negative, inf elsewhere. The gradient in x1 "
                        "at 0 is -inf, inf where x2 is 0.",
                        example="[0.0, 2.0], 1.0 -> [0.0, 1.386]")
j0 = _elementwise(ops.j0, "j0", "The Bessel function of the first kind of order 0.",
                  slope="-j1(x)", example="[0.0, 1.0] -> [1.0, 0.7652]")
j1 = _elementwise(ops.j1, "j1", "The Bessel function of the first kind of order 1.",
                  slope="j0(x) - j1(x) / x", example="[0.0, 1.0] -> [0.0, 0.4401]")
i0e = _elementwise(ops.i0e, "i0e", "`exp(-|x|) I_0(x)`; its derivative at the kink at 0 is 0.",
                   slope="i1e(x) - sign(x) i0e(x)", example="[0.0, 1.0] -> [1.0, 0.4658]")
i1e = _elementwise(ops.i1e, "i1e", "`exp(-|x|) I_1(x)`.",
                   slope="i0e(x) - i1e(x) (sign(x) + 1 / x)",
                   example="[0.0, 1.0] -> [0.0, 0.2079]")
y0 = _elementwise(ops.y0, "y0", "The Bessel function of the second kind of order 0; -inf at 0, NaN "
                  "below.",
                  slope="-y1(x)", example="[1.0, 2.0] -> [0.08826, 0.5104]")
y1 = _elementwise(ops.y1, "y1", "The Bessel function of the second kind of order 1; -inf at 0, NaN "
                  "below.",
                  slope="y0(x) - y1(x) / x", example="[1.0, 2.0] -> [-0.7812, -0.107]")
k0e = _elementwise(ops.k0e, "k0e", "`exp(x) K_0(x)`, inf at 0, NaN below.",
                   slope="k0e(x) - k1e(x)", example="[1.0, 2.0] -> [1.144, 0.8416]")
k1e = _elementwise(ops.k1e, "k1e", "`exp(x) K_1(x)`, inf at 0, NaN below.",
                   slope="k1e(x) (1 - 1 / x) - k0e(x)", example="[1.0, 2.0] -> [1.636, 1.033]")
# fmt: on


def _wide(*nodes: Node) -> tuple[Node, ...]:
    """Half precision as float32, for formulas of several steps."""
    return tuple(el.cast(x, float32) if x.dtype.is_half else x for x in nodes)


@op_function
def polygamma(n: ArrayLike, x: ArrayLike, /) -> Any:
    """The n-th derivative of `digamma` for whole n, `(-1)**(n+1) n! zeta(n + 1, x)` from 1 on.

    As n is whole there is no gradient in it: it is NaN. Within `8 + n` units in the last place for
    float64.

    Elementwise: the shapes broadcast; integers x are taken as float32. `OptionError` for a negative
    Python integer n, `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.polygamma(1, 1.0).item()
    1.645
    """
    if isinstance(n, int):
        (x,) = floats(x)
        if n < 0:
            raise OptionError(f"polygamma takes orders from 0 on, not {n}")
        if n < 2:
            return (ops.digamma, ops.trigamma)[n](x)
        (y,) = _wide(x)
        value = (-1) ** (n + 1) * math.factorial(n) * ops.zeta(ops.like(n + 1, y), y)
        return el.cast(value, x.dtype)
    order, x = floats(n, x)
    given, y = _wide(order, x)
    k = StopGradient()(given)
    odd = el.mod(k, full(2, k.type)) > 0.5
    size = ops.gamma(k + 1) * ops.zeta(k + 1, y)
    value = el.select(el.is_zero(k), ops.digamma(y), el.select(odd, size, -size))
    nothing = el.select(el.isinf(given), ops.like(0, k), given - k)  # with a derivative that is NaN
    return el.cast(value + ops.undefined(nothing, y), x.dtype)


@op_function
def zeta(x: ArrayLike, q: ArrayLike | None = None, /) -> Any:
    """Hurwitz' zeta function `sum_k (k + q)**-x` for `x > 1`, Riemann's (`q = 1`) without q.

    For negative q that is not whole, x must be; at whole `q <= 0` there are poles, inf, as at
    `x = 1`; below NaN. Gradients are exact and of every order; that in x is NaN for `q <= 0`, where
    x has to be whole. Within `8 + x / 2` units in the last place for float64.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.zeta([2.0, 4.0]).tolist()
    [1.645, 1.082]
    """
    s, q = floats(x, 1.0 if q is None else q)
    return ops.zeta(s, q)


@op_function
def gammasgn(x: ArrayLike, /) -> Any:
    """The sign of the gamma function: of the zeros' own sign at 0, NaN at the negative integers.

    Elementwise: the result has the shape of x and is 1, -1 or NaN in its floating dtype; derivative
    0. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.gammasgn([0.5, -0.5]).tolist()
    [1.0, -1.0]
    """
    (x,) = floats(x)
    whole = el.floor(x)
    odd = el.mod(whole, full(2, x.type)) > 0.5
    sign = el.select(odd, full(-1, x.type), full(1, x.type))
    pole = (x < 0) & el.eq(whole, x)
    sign = el.select(pole, full(math.nan, x.type), sign)
    sign = el.select(x < 0, sign, full(1, x.type))
    return el.select(el.is_zero(x), el.sign(el.reciprocal(x)), sign)


@op_function
def multigammaln(a: ArrayLike, d: int, /) -> Any:
    """The logarithm of the multivariate gamma function of dimension d, for `a > (d - 1) / 2`:
    `d (d - 1) / 4 log(pi) + sum_{j < d} gammaln(a - j / 2)`.

    Elementwise in a: the result has its shape. `OptionError` for `d < 1`, `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> rg.special.multigammaln(3.0, 2).item()
    1.5501
    """
    (a,) = floats(a)
    if d < 1:
        raise OptionError(f"multigammaln takes a dimension from 1 on, not {d}")
    (x,) = _wide(a)
    total = full(d * (d - 1) / 4 * math.log(math.pi), x.type)
    for j in range(d):
        total = total + ops.lgamma(x - j / 2)
    return el.cast(total, a.dtype)


@op_function
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    """The regularised incomplete beta function

        `I_x(a, b) = int_0^x t^(a-1) (1-t)^(b-1) dt / B(a, b)`

    for `a, b >= 0` and x between 0 and 1; NaN elsewhere. Gradients in x are of every order; in a
    and b the first and second (mixed ones too) are computed as integrals of the density times
    powers of its scores, higher ones are NaN. For float64 within `8 + |log I|` units in the last
    place, or of 1 where it is computed as `1 - I_{1-x}(b, a)`.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.betainc(2.0, 2.0, [0.25, 0.5]).tolist()
    [0.15625, 0.5]
    """
    return ops.betainc(*floats(a, b, x))


@op_function
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    """`1 - I_x(a, b) = I_{1-x}(b, a)`; see `betainc`.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.betaincc(2.0, 2.0, 0.25).item()
    0.84375
    """
    a, b, x = floats(a, b, x)
    return ops.betainc(b, a, 1 - x)


@op_function
def log_ndtr(x: ArrayLike, /) -> Any:
    """`log(ndtr(x))`, accurate in both tails, as are its gradients.

    Elementwise: the result has the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.log_ndtr([0.0, -20.0]).tolist()
    [-0.6931, -203.917]
    """
    (x,) = floats(x)
    (z,) = _wide(x)
    low = z < -1
    t = el.select(low, z, full(-1, z.type)) * -math.sqrt(0.5)
    lower = el.log(0.5 * ops.erfcx(t)) - t * t
    upper = el.log1p(-ops.ndtr(-el.select(low, full(0, z.type), z)))
    return el.cast(el.select(low, lower, upper), x.dtype)


@op_function
def kl_div(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """`x1 log(x1 / x2) - x1 + x2` of positive arguments, x2 where x1 is 0 and x2 is not negative,
    inf elsewhere. The loss of that name is `rg.nn.functional.kl_div`.

    Elementwise: the shapes broadcast. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.kl_div(2.0, [1.0, 2.0]).tolist()
    [0.3863, 0.0]
    """
    a, b = floats(x1, x2)
    return ops.rel_entr(a, b) - a + b


def _unscaled(op: el.Elementwise, x: ArrayLike, order: int) -> Node:
    """`I_n` from `exp(-|x|) I_n(x)`, times the exponential in two steps as the result may be less
    than that; below 1 by its power series, as derivatives of the product would cancel."""
    (x,) = floats(x)
    (z,) = _wide(x)
    size = el.abs(z)
    near = size < 1
    small = el.select(near, z, full(0, z.type))
    # Ten terms: the next is less than 2**-60 of the first.
    terms = [math.factorial(order) / math.factorial(k) / math.factorial(k + order) / 4**k
             for k in range(10)]  # fmt: skip
    square, series = small * small, full(terms[-1], z.type)
    for term in reversed(terms[:-1]):
        series = term + square * series
    first = 0.5 * small * series if order else series
    far = el.select(near, full(1, z.type), z)
    half = el.exp(0.5 * el.abs(far))
    return el.cast(el.select(near, first, op(far) * half * half), x.dtype)


@op_function
def i0(x: ArrayLike, /) -> Any:
    """The modified Bessel function of the first kind of order 0, from `i0e`.

    Elementwise: the result has the shape of x. Derivative: `i1(x)`. `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> rg.special.i0([0.0, 1.0]).tolist()
    [1.0, 1.266]
    """
    return _unscaled(ops.i0e, x, 0)


@op_function
def i1(x: ArrayLike, /) -> Any:
    """The modified Bessel function of the first kind of order 1, from `i1e`.

    Elementwise: the result has the shape of x. Derivative: `i0(x) - i1(x) / x`. `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.special.i1([0.0, 1.0]).tolist()
    [0.0, 0.5652]
    """
    return _unscaled(ops.i1e, x, 1)


def _decaying(op: el.Elementwise, x: ArrayLike) -> Node:
    (x,) = floats(x)
    (z,) = _wide(x)
    return el.cast(op(z) * el.exp(-z), x.dtype)


@op_function
def k0(x: ArrayLike, /) -> Any:
    """The modified Bessel function of the second kind of order 0, from `k0e`; inf at 0, NaN below.

    Elementwise: the result has the shape of x. Derivative: `-k1(x)`. `DTypeError` for complex
    numbers.

    >>> import retrograd as rg
    >>> round(rg.special.k0(rg.tensor(1.0)).item(), 4)
    0.421
    """
    return _decaying(ops.k0e, x)


@op_function
def k1(x: ArrayLike, /) -> Any:
    """The modified Bessel function of the second kind of order 1, from `k1e`; inf at 0, NaN
    below.

    Elementwise: the result has the shape of x. Derivative: `-k0(x) - k1(x) / x`. `DTypeError` for
    complex numbers.

    >>> import retrograd as rg
    >>> rg.special.k1([1.0, 2.0]).tolist()
    [0.6019, 0.1399]
    """
    return _decaying(ops.k1e, x)


@op_function
def sinc(x: ArrayLike, /) -> Any:
    """`sin(pi x) / (pi x)`, 1 at 0; below 1/4 its series, so that gradients hold at 0 too.

    Elementwise: the result has the shape of x. `DTypeError` for complex numbers.

    >>> import retrograd as rg
    >>> rg.special.sinc([0.0, 0.5, 1.0]).tolist()
    [1.0, 0.6366, 0.0]
    """
    (x,) = floats(x)
    (z,) = _wide(x)
    near = el.abs(z) < 0.25
    small = el.select(near, z, full(0, z.type)) * math.pi
    square = small * small
    series = full(0, z.type)
    for k in range(10, 0, -1):
        series = square * (-1 / ((2 * k) * (2 * k + 1))) * (1 + series)
    far = el.select(near, full(1, z.type), z)
    # sin(pi z) by the distance of z from a whole number, which is exact.
    whole = el.round(far)
    sine = el.sin((far - whole) * math.pi)
    odd = el.mod(whole, full(2, z.type)) > 0.5
    wave = el.select(odd, -sine, sine) / (far * math.pi)
    return el.cast(el.select(near, 1 + series, wave), x.dtype)


psi = digamma
bessel_j0, bessel_j1 = j0, j1
bessel_y0, bessel_y1 = y0, y1
modified_bessel_i0, modified_bessel_i1 = i0, i1
modified_bessel_k0, modified_bessel_k1 = k0, k1
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = k0e, k1e
