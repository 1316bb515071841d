"""Samples that are counts or choices, from keys; without gradients."""

from __future__ import annotations

from typing import Any

from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import as_node, broadcast, broadcast_to
from retrograd.functions.random.continuous import draw, given
from retrograd.ir import as_shape, float64, full, int64
from retrograd.ops import elementwise as el
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.shape import expand, reshape, slice_axis


@op_function
def geometric(key: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """How many trials up to the first success, from 1 on."""
    _, wide, size = given(shape, p)
    return el.cast(draw("geometric", key, size, *wide), int64)


@op_function
def poisson(key: ArrayLike, rate: ArrayLike, shape: Any) -> Any:
    """Counts of events of a rate."""
    _, wide, size = given(shape, rate)
    return el.cast(draw("poisson", key, size, *wide), int64)


@op_function
def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """Counts of successes in n trials."""
    _, wide, size = given(shape, el.cast(as_node(n), float64), p)
    return el.cast(draw("binomial", key, size, *wide), int64)


@op_function
def by_probability(key: ArrayLike, p: ArrayLike, shape: Any) -> Any:
    """Numbers of the elements of p, drawn with these probabilities, by inversion."""
    (wide,) = (el.cast(broadcast(p, floating=True)[0], float64),)
    if wide.type.rank != 1 or wide.shape[0] == 0:
        raise ShapeError(f"choice: the probabilities are a vector, not of shape {wide.shape}")
    total = CumSum(0)(wide)
    last = slice_axis(total, 0, wide.shape[0] - 1, wide.shape[0])
    size = as_shape(shape)
    u = draw("unit", key, size) * broadcast_to(reshape(last, ()), size)
    rank = len(size)
    every = (*size, wide.shape[0])
    above = expand(u, every, (rank,)) >= expand(total, every, tuple(range(rank)))
    count = ReduceSum((rank,))(el.cast(above, int64))
    return el.min(count, full(wide.shape[0] - 1, count.type))


@op_function
def races(key: ArrayLike, p: ArrayLike) -> Any:
    """Exponential times of rates p: the first to arrive are a sample without replacement (P. S.
    Efraimidis, P. G. Spirakis, 2006)."""
    rates = el.cast(broadcast(p, floating=True)[0], float64)
    return draw("exponential", key, rates.shape) / rates
