"""Samples of distributions from keys, differentiable in the parameters.

Everything random is computed in double precision by correctly rounded operations, so that the same
key gives the same samples everywhere. Rejection is bounded: each sample is the first of so many
proposals that is accepted, and that none is has a probability below 1e-15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograd.errors import ShapeError
from retrograd.frontend.activations import softmax
from retrograd.frontend.broadcasting import (
    as_node,
    broadcast_shapes,
    broadcast_to,
    normal_axis,
    number,
    together,
)
from retrograd.frontend.control import while_loop
from retrograd.frontend.creation import arange
from retrograd.frontend.elementwise import ArrayLike, minimum, where
from retrograd.frontend.function import function
from retrograd.frontend.indexing import take
from retrograd.frontend.manipulation import positions
from retrograd.frontend.normal import inverse_normal_cdf, quantile
from retrograd.frontend.products import matmul
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Dim, Node, TensorType, as_shape, float32, float64, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops import implicit
from retrograd.ops.control import StopGradient
from retrograd.ops.index import Gather
from retrograd.ops.portable import (
    portable_atan,
    portable_exp,
    portable_log,
)
from retrograd.ops.random import RandomBits
from retrograd.ops.reduce import ArgMax, LogSumExp, ReduceMax
from retrograd.ops.shape import expand, pad, permute, reshape, slice_axis

PROPOSALS = 32  # acceptance is at least 0.66


def keys(key: Node, count: int) -> list[Node]:
    """Independent keys made from one."""
    bits = RandomBits((count, 2))(key)
    return [reshape(slice_axis(bits, 0, i, i + 1), (2,)) for i in range(count)]


def unit(key: Node, shape: Any) -> Node:
    """Uniform on odd multiples of 2**-53 in (0, 1), in double precision."""
    bits = RandomBits((2, *shape))(key)
    high, low = (reshape(slice_axis(bits, 0, i, i + 1), shape) for i in (0, 1))
    high = el.cast(el.shift_right(high, full(6, high.type)), float64)
    low = el.cast(el.shift_right(low, full(6, low.type)), float64)
    return ((high * 2.0**26 + low) + 0.5) * 2.0**-52


def given(shape: Any, *parameters: ArrayLike) -> tuple[list[Node], list[Node], Any]:
    """Parameters in the shape of the result, in their dtype; and as constants in doubles."""
    nodes = together(*parameters, floating=True)
    size = nodes[0].shape if shape is None else as_shape(shape)
    if broadcast_shapes(nodes[0].shape, size) != size:
        broadcast_to(nodes[0], size)  # raises
    nodes = [broadcast_to(n, size) for n in nodes]
    return nodes, [el.cast(StopGradient()(n), float64) for n in nodes], size


def minus_log(x: Node) -> Node:
    y: Node = -portable_log(x)
    return y


def _where(c: Node, x: Node) -> Node:
    """x where the parameters are in their range, NaN elsewhere."""
    return el.select(c, x, full(math.nan, x.type))


def _located(draw: Node, loc: Node, scale: Node) -> Node:
    return el.cast(draw, loc.dtype) * scale + loc


def first_accepted(values: Node, accepted: Node) -> Node:
    """Along axis 0, the first value that is accepted."""
    first = ArgMax(0)(el.cast(accepted, float32))
    rank = values.type.rank
    last = tuple(range(1, rank))
    stacked = permute(values, (*last, 0))
    index = reshape(first, (*first.shape, 1))
    return reshape(Gather(rank - 1, rank - 1)(stacked, index), first.shape)


def several(x: Node, count: int) -> Node:
    return expand(x, (count, *x.shape), (0,))


# -- location and scale --------------------------------------------------------------------------
def _exponential(u: Node) -> Node:
    return minus_log(u)


def _laplace(u: Node) -> Node:
    q = u - 0.5
    size = minus_log(1.0 - 2.0 * el.abs(q))
    return el.select(q < 0, -size, size)


def _logistic(u: Node) -> Node:
    return minus_log(1.0 - u) - minus_log(u)


def _gumbel(u: Node) -> Node:
    return -portable_log(minus_log(u))


STANDARD: dict[str, Callable[[Node], Node]] = {
    "exponential": _exponential,
    "laplace": _laplace,
    "logistic": _logistic,
    "gumbel": _gumbel,
}


@function
def located(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, name: str, shape: Any) -> Any:
    """A distribution of location and scale."""
    (at, by), _, size = given(shape, loc, scale)
    return _located(STANDARD[name](unit(key, size)), at, by)


@function
def cauchy(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Any) -> Any:
    """The quotient of two normal numbers."""
    (at, by), _, size = given(shape, loc, scale)
    a, b = (inverse_normal_cdf(k, size, float64) for k in keys(key, 2))
    return _located(a / b, at, by)


@function
def lognormal(key: ArrayLike, mean: ArrayLike, std: ArrayLike, shape: Any) -> Any:
    """`exp(mean + std z)`"""
    (at, by), (m, s), size = given(shape, mean, std)
    z = inverse_normal_cdf(key, size, float64)
    value = el.cast(portable_exp(m + s * z), at.dtype)
    return _moving(value, at + by * el.cast(z, at.dtype))


def _moving(value: Node, logarithm: Node) -> Node:
    """`value`, with the derivatives of `exp(logarithm)`."""
    return value * el.exp(logarithm - StopGradient()(logarithm))


@function
def truncated_normal(
    key: ArrayLike, mean: ArrayLike, std: ArrayLike, low: float, high: float, shape: Any
) -> Any:
    """By inversion; the bounds in standard deviations from the mean, on the side of the tail."""
    (at, by), _, size = given(shape, mean, std)
    mirrored = low > 0
    a, b = (-high, -low) if mirrored else (low, high)
    below, above = (0.5 * math.erfc(-x / math.sqrt(2)) for x in (a, b))
    p = below + unit(key, size) * (above - below)
    q = quantile(p - 0.5, -portable_log(el.select(p < 0.5, p, 1.0 - p)))
    z = el.clamp(q, full(a, q.type), full(b, q.type))
    return _located(-z if mirrored else z, at, by)


# -- gamma and what is made of it ----------------------------------------------------------------
def _gamma_draw(key: Node, a: Node) -> tuple[Node, Node]:
    """Gamma samples of doubles, and their logarithms, by G. Marsaglia and W. W. Tsang, "A simple
    method for generating gamma variables", ACM TOMS 26 (2000)."""
    count, shape = 12, a.shape  # proposals are accepted with probability 0.95 and more
    small = a < 1.0
    raised = el.select(a > 0.0, el.select(small, a + 1.0, a), full(1, a.type))
    d = raised - 1 / 3
    c = 1.0 / el.sqrt(9.0 * d)
    k = keys(key, 3)
    x = inverse_normal_cdf(k[0], (count, *shape), float64)
    u = unit(k[1], (count, *shape))
    t = 1.0 + several(c, count) * x
    inside = t > 0.0
    v = el.select(inside, t * t * t, full(1, t.type))
    wide = several(d, count)
    bound = 0.5 * x * x + wide * (1.0 - v + portable_log(v))
    v = first_accepted(v, inside & (-minus_log(u) < bound))
    boost = minus_log(unit(k[2], shape)) / el.select(small, a, full(1, a.type))
    boost = el.select(small, -boost, full(0, a.type))
    value = d * v * portable_exp(boost)
    logarithm = portable_log(d) + portable_log(v) + boost
    return _where(a > 0.0, value), _where(a > 0.0, logarithm)


@function
def gamma(key: ArrayLike, a: ArrayLike, scale: ArrayLike, shape: Any) -> Any:
    """Of shape `a`, times a scale."""
    (p, s), (wide, _), _ = given(shape, a, scale)
    draw, _ = _gamma_draw(key, wide)
    return implicit.implicit_gamma(p, el.cast(draw, p.dtype)) * s


@function
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Any) -> Any:
    """`X / (X + Y)` of gamma samples, in logarithms."""
    (p, q), (wide_p, wide_q), _ = given(shape, a, b)
    one, two = keys(key, 2)
    gap = _gamma_draw(two, wide_q)[1] - _gamma_draw(one, wide_p)[1]
    e = portable_exp(-el.abs(gap))
    draw = el.select(gap > 0, e, full(1, e.type)) / (1.0 + e)
    return implicit.implicit_beta(p, q, el.cast(draw, p.dtype))


@function
def dirichlet(key: ArrayLike, a: ArrayLike, shape: Any) -> Any:
    """Gamma samples divided by their sum, along the last axis."""
    (p,), (wide,), _ = given(shape, a)
    _, logs = _gamma_draw(key, wide)
    axis = (p.type.rank - 1,)
    e = portable_exp(logs - expand(ReduceMax(axis)(logs), logs.shape, axis))
    draw = el.cast(e / expand(_total(e), e.shape, axis), p.dtype)
    moved = implicit.implicit_log_gamma(p, el.cast(logs, p.dtype))
    return _moving(draw, moved - expand(LogSumExp(axis)(moved), p.shape, axis))


def _total(x: Node) -> Node:
    """The sum over the last axis, in an order of its own: the second half is added to the first,
    until there is one element."""
    axis = x.type.rank - 1
    if isinstance(x.shape[axis], Dim):
        return _total_of_named(x, x.shape[axis])
    while x.shape[axis] != 1:
        n = x.shape[axis]
        if n % 2:
            x = pad(x, (0,) * (axis + 1), (*(0,) * axis, 1))
        half = (n + 1) // 2
        x = slice_axis(x, axis, 0, half) + slice_axis(x, axis, half, 2 * half)
    return reshape(x, x.shape[:axis])


def _total_of_named(x: Node, n: int | Dim) -> Node:
    """The same of a number of elements that has a name: those that are left are the first ones."""
    place = arange(n)

    def fold(state: Any) -> Any:
        values, count = state
        half = (count + 1) // 2
        other = take(values, minimum(place + half, n - 1), axis=-1)
        return where(place + half < count, values + other, values), half

    start = (Tensor(x), Tensor(number(n, int64)))
    total, _ = while_loop(lambda state: state[1] > 1, fold, start)
    axis = x.type.rank - 1
    return reshape(slice_axis(total.node, axis, 0, 1), x.shape[:axis])


@function
def chi2(key: ArrayLike, df: ArrayLike, shape: Any) -> Any:
    """Twice a gamma sample of half the degrees."""
    return 2.0 * gamma(key, 0.5 * together(df, floating=True)[0], 1.0, shape)


@function
def gumbel_softmax(key: ArrayLike, logits: ArrayLike, tau: float, hard: bool, axis: int) -> Any:
    """Of the logits plus Gumbel noise; with `hard` straight through."""
    (x,), _, size = given(None, logits)
    y = softmax((x + el.cast(_gumbel(unit(key, size)), x.dtype)) / tau, axis=axis)
    if not hard:
        return y
    at = normal_axis(axis, x.type.rank, "gumbel_softmax")
    best = expand(ArgMax(at)(y), y.shape, (at,))
    one = el.cast(el.eq(best, positions(y.shape, at)), y.dtype)
    return one + (y - StopGradient()(y))


@function
def multivariate_normal(key: ArrayLike, mean: ArrayLike, scale_tril: ArrayLike, shape: Any) -> Any:
    """`mean + L z`"""
    m, factor = together_dtype(mean, scale_tril)
    if m.type.rank < 1 or factor.type.rank < 2 or factor.shape[-2:] != m.shape[-1:] * 2:
        raise ShapeError(
            f"multivariate_normal: a mean [..., D] and a factor [..., D, D], not {m.shape} and "
            f"{factor.shape}"
        )
    lead = broadcast_shapes(m.shape[:-1], factor.shape[:-2])
    size = (*as_shape(shape), *lead, m.shape[-1])
    z = el.cast(inverse_normal_cdf(key, size, m.dtype), m.dtype)
    moved = matmul(factor, reshape(z, (*size, 1)))
    return reshape(moved, size) + broadcast_to(m, size)


def together_dtype(*values: ArrayLike) -> list[Node]:
    """As floats of one dtype, each in its own shape."""
    nodes = [as_node(v) for v in values]
    dtype = together(*[full(0, TensorType(n.dtype, ())) for n in nodes], floating=True)[0].dtype
    return [el.cast(n, dtype) for n in nodes]


@function
def student_t(key: ArrayLike, df: ArrayLike, shape: Any) -> Any:
    """A normal number divided by the root of the mean of `df` squares of others."""
    (p,), (wide,), size = given(shape, df)
    one, two = keys(key, 2)
    half = 0.5 * p
    draw, _ = _gamma_draw(one, 0.5 * wide)
    g = implicit.implicit_gamma(half, el.cast(draw, p.dtype))
    return el.cast(inverse_normal_cdf(two, size, float64), p.dtype) * el.sqrt(half / g)


@function
def von_mises(key: ArrayLike, mean: ArrayLike, k: ArrayLike, shape: Any) -> Any:
    """By D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
    Statistics 28 (1979)."""
    (m, p), (_, wide), size = given(shape, mean, k)
    every = (PROPOSALS, *size)
    kappa = el.max(wide, full(1e-6, wide.type))
    tau = 1.0 + el.sqrt(1.0 + 4.0 * kappa * kappa)
    rho = (tau - el.sqrt(2.0 * tau)) / (2.0 * kappa)
    r = several((1.0 + rho * rho) / (2.0 * rho), PROPOSALS)
    k1, k2, k3, k4 = keys(key, 4)
    a, b = (inverse_normal_cdf(j, every, float64) for j in (k1, k2))
    z = a / el.sqrt(a * a + b * b)  # the cosine of a uniform angle
    f = (1.0 + r * z) / (r + z)
    c = several(kappa, PROPOSALS) * (r - f)
    u = unit(k3, every)
    accepted = (c * (2.0 - c) > u) | (portable_log(c / u) + 1.0 > c)
    f = el.clamp(first_accepted(f, accepted), full(-1, wide.type), full(1, wide.type))
    angle = 2.0 * portable_atan(el.sqrt((1.0 - f) / (1.0 + f + 2.0**-60)))
    angle = el.select(unit(k4, size) < 0.5, -angle, angle)
    return implicit.implicit_von_mises(p, el.cast(_where(wide >= 0.0, angle), p.dtype)) + m
