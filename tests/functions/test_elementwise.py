"""The functions of the top level against NumPy, with broadcasting, axes and bad arguments."""

from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd as rg
from tests.functions.numpy_arrays import A, B, C, I, P, same

pytestmark = pytest.mark.usefixtures("reference")

UNARY: dict[str, Any] = {
    "exp": np.exp, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "abs": np.abs,
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round,
    "square": np.square, "negative": np.negative, "exp2": np.exp2, "cbrt": np.cbrt,
    "erf": special.erf, "erfc": special.erfc, "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0), "relu": lambda x: np.maximum(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0), "silu": lambda x: x * special.expit(x),
    "gelu": lambda x: x * special.ndtr(x), "isnan": np.isnan, "isfinite": np.isfinite,
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "reciprocal": np.reciprocal,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x), "logical_not": np.logical_not,
}  # fmt: skip
POSITIVE: dict[str, Any] = {
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "acosh": lambda x: np.arccosh(x + 1),
}  # fmt: skip
WITHIN_ONE: dict[str, Any] = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}
BINARY: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "maximum": np.maximum,
    "minimum": np.minimum, "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    same(getattr(rg, name)(A), UNARY[name](A), 1e-5)


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive_numbers(name):
    x = P + 1 if name == "acosh" else P
    same(getattr(rg, name)(x), POSITIVE[name](P), 1e-5)


@pytest.mark.parametrize("name", WITHIN_ONE)
def test_unary_within_one(name):
    same(getattr(rg, name)(np.tanh(A)), WITHIN_ONE[name](np.tanh(A)), 1e-5)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("x", "y"), [(A, B), (C, A), (A[:, :1], B), (A, 0.5), (2.0, B)])
@pytest.mark.sample(16)
def test_binary_with_broadcasting(name, x, y):
    one, two = (np.float32(v) for v in (x, y))
    same(getattr(rg, name)(rg.asarray(x), rg.asarray(y)), BINARY[name](one, two), 1e-5)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name):
    same(getattr(rg, name)(I, 6), getattr(np, name)(I, 6))
    same(rg.bitwise_invert(I), ~I)
    same(rg.bitwise_left_shift(I, 2), I << 2)
    same(rg.bitwise_right_shift(I, 1), I >> 1)


@pytest.mark.parametrize("x2", [-1, 0, 0.5, 1, 2, 3, 2.5])
def test_pow_with_numbers(x2):
    same(rg.pow(P, x2), P**x2, 1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: rg.sum(A, axis=2), rg.ShapeError),
        (lambda: rg.sum(A, axis=(0, 0)), rg.ShapeError),
        (lambda: rg.sum(A, axis=1.5), rg.ShapeError),  # type: ignore[arg-type]
        (lambda: rg.reshape(A, (5, -1)), rg.ShapeError),
        (lambda: rg.reshape(A, (-1, -1)), rg.ShapeError),
        (lambda: rg.permute_dims(A, (0, 0)), rg.ShapeError),
        (lambda: rg.concat([A, C], axis=0), rg.ShapeError),
        (lambda: rg.concat([], axis=0), rg.ShapeError),
        (lambda: rg.stack([A, B]), rg.ShapeError),
        (lambda: rg.squeeze(A, axis=0), rg.ShapeError),
        (lambda: rg.split(A, 5), rg.ShapeError),
        (lambda: rg.matmul(A, 2.0), rg.ShapeError),
        (lambda: rg.matmul(A, A), rg.ShapeError),
        (lambda: rg.einsum("ij,jk->il", A, A.T), rg.ShapeError),
        (lambda: rg.einsum("ij->ij", C), rg.ShapeError),
        (lambda: rg.einsum("ij,ij->", A, A.T), rg.ShapeError),
        (lambda: rg.broadcast_to(A, (3,)), rg.ShapeError),
        (lambda: rg.zeros((-1,)), rg.ShapeError),
        (lambda: rg.zeros((1.5,)), rg.ShapeError),
        (lambda: rg.bitwise_and(A, A), rg.DTypeError),
        (lambda: rg.astype(A, "complex256"), rg.DTypeError),
        (lambda: rg.add(A, None), rg.DTypeError),
        (lambda: rg.gelu(A, approximate="maybe"), ValueError),
        (lambda: rg.arange(0, 5, 0), rg.ShapeError),
    ],
)
def test_wrong_calls(call, error):
    with pytest.raises(error):
        call()
