"""Random programs: each step applies a public function to what there is already.

All arrays have shapes made of two sizes, so that most things fit each other; values are kept small
by a bounded function every few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from scripts.house.programs.case import Case

SIZES = {"N": 5, "M": 4}
TYPES = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
Rng = np.random.Generator


class Step(NamedTuple):
    """A function applied to values by their numbers. Values are matrices `[N, M]`."""

    f: Callable[..., Any]
    inputs: tuple[int, ...]


def cases(count: int = 48, steps: int = 8) -> Iterator[Case]:
    for seed in range(count):
        rng = np.random.default_rng(1000 + seed)
        program, dtype = draw(rng, steps), str(rng.choice(TYPES))
        arrays = [rng.normal(size=(SIZES["N"], SIZES["M"])).astype(np.float32) for _ in range(2)]
        arrays.append(rng.normal(size=SIZES["M"]).astype(np.float32))
        shapes, orders = ("N M", "N M", "M"), 1 + seed % 2
        yield Case(f"random {seed} {dtype}", run(program, dtype), arrays, shapes, orders)


def run(program: list[Step], dtype: str) -> Callable[..., Any]:
    def f(a: Any, b: Any, row: Any) -> Any:
        values = [rg.astype(x, dtype) for x in (a, b, a * row)]
        for step in program:
            values.append(rg.astype(step.f(*(values[i] for i in step.inputs)), dtype))
        results = [*values[-2:], sum(values[1:], values[0])]
        return [rg.astype(y, "float32" if "16" in dtype else dtype) for y in results]

    return f


def draw(rng: Rng, steps: int) -> list[Step]:
    """Steps on three values that are there and what they add."""
    made: list[Step] = []
    for at in range(steps):
        arity, functions = KINDS[rng.integers(len(KINDS))]
        f = functions[rng.integers(len(functions))]
        latest = 2 + at
        picked = [int((latest, rng.integers(3 + at))[rng.integers(2)]) for _ in range(arity)]
        made.append(Step(bounded(f) if rng.random() < 0.5 else f, tuple(picked)))
    return made


def bounded(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: rg.tanh(f(*given))


def rows_in_turn(x: Any) -> Any:
    """A recurrence along the first axis."""
    return rg.scan(lambda c, r: (rg.tanh(0.5 * c + r), c * r), rg.sum(x, axis=0) * 0.1, x)[1]


def halved(x: Any) -> Any:
    return rg.while_loop(lambda s: (s * s).sum() > 1.0, lambda s: s * 0.5, x, max_steps=60)


def chosen(x: Any, y: Any) -> Any:
    return rg.cond((x.sum() > y.sum()), lambda a, b: a * b, lambda a, b: a - 2.0 * b, x, y)


def folded(x: Any, y: Any) -> Any:
    return rg.fori_loop(0, 3, lambda i, s: 0.5 * s + y * 0.25, x)


def gathered(x: Any, y: Any) -> Any:
    return rg.take_along_axis(x, rg.argsort(y, axis=0), axis=0)


def in_wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """Of functions that take float32 and float64 only."""

    def wide(*given: Any) -> Any:
        half = [g.dtype.name in ("float16", "bfloat16") for g in given]
        return f(*[rg.astype(g, "float32") if h else g for g, h in zip(given, half, strict=True)])

    return wide


def definite(x: Any) -> Any:
    """A positive definite matrix made of a value."""
    return rg.matrix_transpose(x) @ x + 2.0 * rg.eye(x.shape[1], dtype=x.dtype)


UNARY = [
    rg.sin, rg.cos, rg.tanh, rg.sigmoid, rg.softplus, rg.square, rg.erf, rg.relu, rg.gelu, rg.silu,
    rg.abs, rg.negative, rg.atan, rg.asinh, rg.cbrt, rg.sign, rg.floor, rg.round, rg.elu,
    rg.log_sigmoid, rg.erfc, rg.leaky_relu, lambda x: rg.exp(0.3 * x), lambda x: rg.expm1(0.3 * x),
    lambda x: rg.log1p(rg.abs(x)), lambda x: rg.sqrt(rg.abs(x) + 0.1),
    lambda x: 1.0 / (x * x + 1.0),
    lambda x: rg.rsqrt(rg.square(x) + 0.5), lambda x: rg.clip(x, -0.5, 0.5), lambda x: x**3,
    lambda x: rg.log2(rg.abs(x) + 1.0), lambda x: rg.exp2(rg.minimum(x, 2.0)), rg.stop_gradient,
]  # fmt: skip
BINARY = [
    rg.add, rg.subtract, rg.multiply, rg.maximum, rg.minimum, rg.hypot, rg.atan2, rg.logaddexp,
    rg.copysign, lambda x, y: x / (y * y + 1.0), lambda x, y: rg.where(x > y, x, 0.5 * y),
    lambda x, y: rg.pow(rg.abs(x) + 0.5, rg.tanh(y)), lambda x, y: x * y + x,
    lambda x, y: x - y * y,
    lambda x, y: rg.remainder(x, rg.abs(y) + 1.0), lambda x, y: rg.floor_divide(x, rg.abs(y) + 1.0),
]  # fmt: skip
REDUCED = [
    lambda x: x - rg.mean(x, axis=1, keepdims=True), lambda x: x * rg.sum(x, axis=0),
    lambda x: x - rg.max(x, axis=1, keepdims=True), lambda x: x + rg.min(x),
    lambda x: x + rg.var(x), lambda x: x * rg.prod(rg.tanh(x), axis=0),
    lambda x: x - rg.logsumexp(x, axis=1, keepdims=True),
    lambda x: x / (1.0 + rg.std(x + 0.0, axis=0)),
    lambda x: x + rg.astype(rg.argmax(x, axis=0), x.dtype),
    lambda x: x * rg.astype(rg.any(x > 1.0, axis=0), x.dtype),
    lambda x: rg.softmax(x, axis=-1), lambda x: rg.log_softmax(x, axis=0), rg.layer_norm,
    rg.rms_norm,
]  # fmt: skip
PRODUCTS = [
    lambda x, y: (x @ rg.matrix_transpose(y)) @ x, lambda x, y: rg.einsum("ij,kj,kl->il", x, y, y),
    lambda x, y: x @ rg.softmax(rg.matrix_transpose(x) @ y, axis=-1),
    lambda x, y: rg.nn.functional.scaled_dot_product_attention(x, y, y),
    lambda x, y: rg.nn.functional.linear(x, rg.matrix_transpose(x) @ y),
]  # fmt: skip
MOVED = [
    lambda x: rg.flip(x, axis=0), lambda x: rg.roll(x, 1, axis=1), lambda x: rg.tril(x),
    lambda x: rg.concat([x, 2.0 * x], axis=0)[::2], lambda x: rg.pad(x, ((1, 0), (0, 0)))[:-1],
    lambda x: rg.reshape(rg.reshape(x, (-1,)), x.shape), lambda x: rg.stack([x, x * x]).sum(axis=0),
    lambda x: rg.broadcast_to(x[:, :1], x.shape), lambda x: x + x[0], lambda x: x[::-1] * x,
    lambda x: rg.matrix_transpose(rg.matrix_transpose(x) * 2.0),
]  # fmt: skip
SCANS = [
    lambda x: rg.cumsum(x, axis=0), lambda x: rg.cumprod(rg.tanh(x), axis=1), rows_in_turn,
    lambda x: rg.cummax(x, axis=0), in_wide(lambda x: rg.logcumsumexp(x, axis=1)), halved,
]  # fmt: skip
ORDERED = [
    lambda x: rg.sort(x, axis=0), lambda x: rg.sort(x, axis=1) * x,
    lambda x: rg.take(x, (rg.arange(x.shape[0]) * 3) // 2 % x.shape[0], axis=0),
    lambda x: rg.scatter_add(x, rg.tensor([1, 1, 3]), x[:3]),
    lambda x: rg.segment_sum(x, rg.arange(x.shape[0]) // 2, x.shape[0]),
]  # fmt: skip
CONTROL = [chosen, folded, gathered]
ALGEBRA = [
    in_wide(lambda x: x @ rg.linalg.inv(definite(x))),
    in_wide(lambda x: rg.matrix_transpose(rg.linalg.solve(definite(x), rg.matrix_transpose(x)))),
    in_wide(lambda x: x @ rg.linalg.cholesky(definite(x))),
    in_wide(lambda x: x * rg.linalg.slogdet(definite(x))[1]),
    in_wide(lambda x: x * rg.linalg.eigvalsh(definite(x))),
    in_wide(lambda x: rg.linalg.qr(x)[0]), in_wide(lambda x: x * rg.linalg.svdvals(x)),
    in_wide(lambda x: x @ rg.linalg.expm(0.1 * definite(x))),
    in_wide(lambda x: x + rg.matrix_transpose(rg.linalg.pinv(x))),
]  # fmt: skip
COMPLEX = [
    in_wide(lambda x: rg.abs(rg.complex(x, x * x))), in_wide(lambda x: rg.real(rg.fft.fft(x))),
    in_wide(lambda x: rg.imag(rg.exp(rg.complex(0.1 * x, x)))),
    in_wide(lambda x: rg.fft.irfft(rg.fft.rfft(x), n=x.shape[1])),
    in_wide(lambda x: rg.angle(rg.complex(x, x + 1.0))),
]  # fmt: skip
DRAWN = [
    lambda x: x + rg.astype(rg.random.Generator(3).normal(x.shape), x.dtype),
    lambda x: x * rg.astype(rg.random.Generator(4).uniform(x.shape), x.dtype),
    lambda x: rg.nn.functional.dropout(x, 0.3, True, generator=rg.random.Generator(5)),
]  # fmt: skip
# How many inputs, and the functions; kinds that stand here several times are drawn more often.
KINDS: tuple[tuple[int, list[Callable[..., Any]]], ...] = (
    *[(1, UNARY)] * 4, *[(2, BINARY)] * 5, *[(1, REDUCED)] * 3, *[(2, PRODUCTS)] * 2,
    *[(1, MOVED)] * 2, (1, SCANS), (1, ORDERED), (2, CONTROL), (1, ALGEBRA), (1, COMPLEX),
    (1, DRAWN),
)  # fmt: skip
