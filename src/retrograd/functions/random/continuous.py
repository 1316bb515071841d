"""Samples of distributions from keys, differentiable in the parameters.

Everything random is computed in double precision by correctly rounded operations, so that the same
key gives the same samples everywhere (`ops/sampling`).
"""

from __future__ import annotations

from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.modes import current_trace
from retrograd.errors import ShapeError
from retrograd.functions.activations import softmax
from retrograd.functions.broadcasting import (
    alike,
    as_node,
    broadcast,
    broadcast_shapes,
    broadcast_to,
    normal_axis,
    number,
)
from retrograd.functions.contractions import matmul
from retrograd.functions.elementwise import divide, floor_divide, less, minimum, where
from retrograd.functions.indexing import take
from retrograd.functions.manipulation import positions
from retrograd.ir import Dim, DType, Graph, Node, TensorType, as_shape, float64, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.control import WhileLoop
from retrograd.ops.control.draw import Draw
from retrograd.ops.identity import StopGradient, items
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.random import implicit_gradients
from retrograd.ops.random.threefry import RandomBits
from retrograd.ops.reduce import ArgMax, LogSumExp, ReduceMax
from retrograd.ops.shape import expand, pad, reshape, slice_axis
from retrograd.ops.special.portable import portable_exp, portable_log


def draw(
    law: str, key: Node, shape: Any, *parameters: Node, settings: tuple[float, ...] = ()
) -> Node:
    """Samples in double precision: one operation at a prompt, where it is mostly interpreted;
    inside a function that is compiled, those that it stands for."""
    op = Draw(law, tuple(shape), settings)
    return op(key, *parameters) if current_trace() is None else op.written(key, *parameters)


def keys(key: Node, count: int) -> list[Node]:
    """Independent keys made from one."""
    bits = RandomBits((count, 2))(key)
    return [reshape(slice_axis(bits, 0, i, i + 1), (2,)) for i in range(count)]


def normal(key: Node, shape: Any, dtype: DType) -> Node:
    """Normal numbers of a shape; those of float64 in double precision, others in single."""
    return el.cast(draw("normal" if dtype is float64 else "normal32", key, shape), dtype)


def given(shape: Any, *parameters: ArrayLike) -> tuple[list[Node], list[Node], Any]:
    """Parameters in the shape of the result, in their dtype; and as constants in doubles."""
    nodes = broadcast(*parameters, floating=True)
    size = nodes[0].shape if shape is None else as_shape(shape)
    if broadcast_shapes(nodes[0].shape, size) != size:
        broadcast_to(nodes[0], size)  # raises
    nodes = [broadcast_to(n, size) for n in nodes]
    return nodes, [el.cast(StopGradient()(n), float64) for n in nodes], size


def minus_log(x: Node) -> Node:
    y: Node = -portable_log(x)
    return y


def _located(draw: Node, loc: Node, scale: Node) -> Node:
    return el.cast(draw, loc.dtype) * scale + loc


# -- location and scale --------------------------------------------------------------------------
@op_function
def located(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, name: str, shape: Any) -> Any:
    """A distribution of location and scale."""
    (at, by), _, size = given(shape, loc, scale)
    return _located(draw(name, key, size), at, by)


@op_function
def cauchy(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Any) -> Any:
    """The quotient of two normal numbers."""
    (at, by), _, size = given(shape, loc, scale)
    return _located(draw("cauchy", key, size), at, by)


@op_function
def lognormal(key: ArrayLike, mean: ArrayLike, std: ArrayLike, shape: Any) -> Any:
    """`exp(mean + std z)`"""
    (at, by), (m, s), size = given(shape, mean, std)
    z = normal(key, size, float64)
    value = el.cast(portable_exp(m + s * z), at.dtype)
    return implicit_gradients.implicit_exp(at + by * el.cast(z, at.dtype), value)


@op_function
def truncated_normal(
    key: ArrayLike, mean: ArrayLike, std: ArrayLike, low: float, high: float, shape: Any
) -> Any:
    """By inversion; the bounds in standard deviations from the mean, on the side of the tail."""
    (at, by), _, size = given(shape, mean, std)
    return _located(draw("truncated_normal", key, size, settings=(low, high)), at, by)


# -- gamma and what is made of it ----------------------------------------------------------------
@op_function
def gamma(key: ArrayLike, a: ArrayLike, scale: ArrayLike, shape: Any) -> Any:
    """Of shape `a`, times a scale."""
    (p, s), (wide, _), size = given(shape, a, scale)
    drawn = draw("gamma", key, size, wide)
    return implicit_gradients.implicit_gamma(p, el.cast(drawn, p.dtype)) * s


@op_function
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Any) -> Any:
    """`X / (X + Y)` of gamma samples, in logarithms."""
    (p, q), (wide_p, wide_q), size = given(shape, a, b)
    drawn = draw("beta", key, size, wide_p, wide_q)
    return implicit_gradients.implicit_beta(p, q, el.cast(drawn, p.dtype))


@op_function
def dirichlet(key: ArrayLike, a: ArrayLike, shape: Any) -> Any:
    """Gamma samples divided by their sum, along the last axis."""
    (p,), (wide,), size = given(shape, a)
    logs = draw("log_gamma", key, size, wide)
    axis = (p.type.rank - 1,)
    e = portable_exp(logs - expand(ReduceMax(axis)(logs), logs.shape, axis))
    drawn = el.cast(e / expand(_total(e), e.shape, axis), p.dtype)
    moved = implicit_gradients.implicit_log_gamma(p, el.cast(logs, p.dtype))
    return implicit_gradients.implicit_exp(
        moved - expand(LogSumExp(axis)(moved), p.shape, axis), drawn
    )


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
    axis, one = x.type.rank - 1, TensorType(int64, ())
    values, count = input_node(x.type), input_node(one)
    test = Graph([values, count], [el.gt(count, full(1, one))])
    values, count = input_node(x.type), input_node(one)
    half = as_node(floor_divide(count + full(1, one), 2))
    place = Iota((n,), 0, int64)()
    partner = place + expand(half, (n,), (0,))
    other = take(values, minimum(partner, n - 1), axis=-1)
    folded = as_node(where(less(partner, count), values + other, values))
    body = Graph([values, count], [folded, half])
    total, *_ = items(WhileLoop(test, body, 2)(x, number(n, int64)))
    return reshape(slice_axis(total, axis, 0, 1), x.shape[:axis])


@op_function
def chi2(key: ArrayLike, df: ArrayLike, shape: Any) -> Any:
    """Twice a gamma sample of half the degrees."""
    return 2.0 * gamma(key, 0.5 * broadcast(df, floating=True)[0], 1.0, shape)


@op_function
def gumbel_softmax(key: ArrayLike, logits: ArrayLike, tau: ArrayLike, hard: bool, axis: int) -> Any:
    """Of the logits plus Gumbel noise; with `hard` straight through."""
    (x,), _, size = given(None, logits)
    y = as_node(softmax(divide(x + el.cast(draw("gumbel", key, size), x.dtype), tau), axis=axis))
    if not hard:
        return y
    at = normal_axis(axis, x.type.rank, "gumbel_softmax")
    best = expand(ArgMax(at)(y), y.shape, (at,))
    one = el.cast(el.eq(best, positions(y.shape, at)), y.dtype)
    return one + (y - StopGradient()(y))


@op_function
def multivariate_normal(key: ArrayLike, mean: ArrayLike, scale_tril: ArrayLike, shape: Any) -> Any:
    """`mean + L z`"""
    m, factor = alike(mean, scale_tril, floating=True)
    if m.type.rank < 1 or factor.type.rank < 2 or factor.shape[-2:] != m.shape[-1:] * 2:
        raise ShapeError(
            f"multivariate_normal: a mean [..., D] and a factor [..., D, D], not {m.shape} and "
            f"{factor.shape}"
        )
    lead = broadcast_shapes(m.shape[:-1], factor.shape[:-2])
    size = (*as_shape(shape), *lead, m.shape[-1])
    z = normal(key, size, m.dtype)
    moved = as_node(matmul(factor, reshape(z, (*size, 1))))
    return reshape(moved, size) + broadcast_to(m, size)


@op_function
def student_t(key: ArrayLike, df: ArrayLike, shape: Any) -> Any:
    """A normal number divided by the root of the mean of `df` squares of others."""
    (p,), (wide,), size = given(shape, df)
    one, two = keys(key, 2)
    half = 0.5 * p
    drawn = draw("gamma", one, size, 0.5 * wide)
    g = implicit_gradients.implicit_gamma(half, el.cast(drawn, p.dtype))
    return el.cast(normal(two, size, float64), p.dtype) * el.sqrt(half / g)


@op_function
def von_mises(key: ArrayLike, mean: ArrayLike, k: ArrayLike, shape: Any) -> Any:
    """About a mean."""
    (m, p), (_, wide), size = given(shape, mean, k)
    angle = draw("von_mises", key, size, wide)
    return implicit_gradients.implicit_von_mises(p, el.cast(angle, p.dtype)) + m
