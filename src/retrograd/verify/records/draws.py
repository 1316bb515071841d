"""The record of the operation that draws samples: SciPy's quantiles at the uniform numbers that the
words of a key make, and the rejection of gamma samples, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.ir import TensorType, float32, float64, uint32
from retrograd.lazy_import import need
from retrograd.ops.control import Draw
from retrograd.ops.random.threefry import RandomBits
from retrograd.verify.records.common import N
from retrograd.verify.records.leaves import random_words
from retrograd.verify.records.record import Array, Failure, Record, Sample, Symbolic, rng_for

SHAPES: tuple[tuple[int, ...], ...] = ((), (4,), (2, 3), (0,))
# Of each distribution, parameters between bounds, and settings.
LAWS: dict[str, tuple[tuple[tuple[float, float], ...], tuple[float, ...]]] = {
    "normal": ((), ()),
    "normal32": ((), ()),
    "unit": ((), ()),
    "exponential": ((), ()),
    "laplace": ((), ()),
    "logistic": ((), ()),
    "gumbel": ((), ()),
    "cauchy": ((), ()),
    "truncated_normal": ((), (-0.5, 2.0)),
    "gamma": (((0.2, 4),), ()),
    "log_gamma": (((0.2, 4),), ()),
    "geometric": (((0.1, 0.9),), ()),
    "poisson": (((0.1, 9),), ()),
}


def scipy_module(name: str) -> Any:
    return need(f"scipy.{name}", "the quantiles of a distribution")


def words(key: Array, *shape: int) -> Array:
    return random_words(RandomBits(shape), key)


def uniform(key: Array, *shape: int) -> Array:
    high, low = words(key, 2, *shape) >> 6
    return (high * 2.0**26 + low + 0.5) * 2.0**-52


def normal(key: Array, *shape: int) -> Array:
    high, low = words(key, 2, *shape).astype(np.int64)
    middle = (((high << 20) | (low >> 12)) - 2**51 + 0.5) * 2.0**-52
    return np.asarray(np.copysign(scipy_module("special").ndtri(0.5 - np.abs(middle)), middle))


def gamma(key: Array, shape: tuple[int, ...], a: Array) -> Array:
    """The logarithms."""
    keys = words(key, 3, 2)
    x, u = normal(keys[0], 12, *shape), uniform(keys[1], 12, *shape)
    boost, y = uniform(keys[2], *shape), np.empty(shape)
    for i in np.ndindex(shape):
        d = a[i] - 1 / 3 + (a[i] < 1)
        for j in range(12):
            v = (1 + x[(j, *i)] / math.sqrt(9 * d)) ** 3
            z = x[(j, *i)]
            if v > 0 and math.log(u[(j, *i)]) < z * z / 2 + d - d * v + d * math.log(v):
                break
        y[i] = math.log(d * v) + (math.log(boost[i]) / a[i] if a[i] < 1 else 0)
    return y


def drawn(op: Any, key: Array, *parameters: Array) -> Any:
    law, shape = op.law, op.shape
    if law == "normal":
        return normal(key, *shape)
    if law == "normal32":
        middle = ((words(key, *shape) >> 8).astype(np.int64) - 2**23 + 0.5) * 2.0**-24
        return scipy_module("special").ndtri(middle + 0.5).astype(np.float32)
    if law == "cauchy":
        a, b = (normal(k, *shape) for k in words(key, 2, 2))
        return a / b
    if law in ("gamma", "log_gamma"):
        y = gamma(key, shape, *parameters)
        return y if law == "log_gamma" else np.exp(y)
    if law == "poisson":
        return scipy_module("stats").poisson.ppf(uniform(words(key, 3, 2)[0], *shape), *parameters)
    u = uniform(key, *shape)
    if law == "unit":
        return u
    if law == "geometric":
        return scipy_module("stats").geom.isf(u, *parameters)
    name = {"exponential": "expon", "gumbel": "gumbel_r"}.get(law, law)
    if law in ("exponential", "gumbel"):
        return (
            getattr(scipy_module("stats"), name).isf(u)
            if law == "exponential"
            else -np.log(-np.log(u))
        )
    if law == "truncated_normal":
        return scipy_module("stats").truncnorm.ppf(u, *op.settings)
    return getattr(scipy_module("stats"), name).ppf(u)


def samples() -> Iterator[Sample]:
    rng = rng_for("draw")
    for law, (bounds, settings) in LAWS.items():
        for shape in SHAPES:
            key = rng.integers(0, 2**32, (2,)).astype(np.uint32)
            parameters = [np.asarray(rng.uniform(low, high, shape)) for low, high in bounds]
            yield Sample(Draw(law, shape, settings), (key, *parameters))


def records() -> list[Record]:
    key, three = TensorType(uint32, (2,)), TensorType(float64, (3,))
    return [
        Record(
            "draw", samples, drawn, ulps=256,
            failures=(
                Failure(Draw("gamma", (3,)), (key,), ShapeError),
                Failure(Draw("gamma", (3,)), (key, three.with_shape((2,))), ShapeError),
                Failure(Draw("gamma", (3,)), (key, three.with_dtype(float32)), DTypeError),
                Failure(Draw("normal", (3,)), (three,), DTypeError),
                Failure(Draw("normal", (3,)), (key.with_shape((3,)),), ShapeError),
                Failure(Draw("normal", (-3,)), (key,), ShapeError),
                Failure(Draw("normal", (3,), (1.0,)), (key,), ShapeError),
                Failure(Draw("unknown", (3,)), (key,), OptionError),
            ),
            symbolic=tuple(
                Symbolic(Draw(law, (N,)), types, ({"N": 3}, {"N": 0}), below=99)
                for law, types in (
                    ("normal", (key,)),
                    ("gamma", (key, TensorType(float64, (N,)))),
                    ("poisson", (key, TensorType(float64, (N,)))),
                )
            ),
        ),
    ]  # fmt: skip
