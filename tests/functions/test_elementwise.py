"""The functions of the top level against NumPy, with broadcasting, axes and bad arguments."""

from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd as rg

rng = np.random.default_rng(0)
A = rng.normal(size=(3, 4)).astype(np.float32)
B = rng.normal(size=(4,)).astype(np.float32)
C = rng.normal(size=(2, 3, 4)).astype(np.float32)
I = rng.integers(-9, 9, (3, 4))  # noqa: E741
P = np.abs(A) + 0.1


@pytest.fixture(autouse=True)
def on_reference():
    with rg.backend("reference"):
        yield


def same(got, expected, rtol=2e-6):
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=1e-6)


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
@pytest.mark.sample(30)
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


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, -2, -3)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
@pytest.mark.sample(30)
def test_reductions(name, axis, keepdims):
    x = C > 0.2 if name in ("any", "all") else C
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    same(getattr(rg, name)(x, axis=axis, keepdims=keepdims), expected, 1e-5)


def test_more_reductions():
    same(rg.logsumexp(C, axis=1), special.logsumexp(C, axis=1), 1e-5)
    same(rg.var(C, axis=0, correction=1), C.var(0, ddof=1), 1e-5)
    axes: list[Any] = [None, 0, -1]
    for axis in axes:
        same(rg.argmax(C, axis=axis), C.argmax(axis))
        same(rg.argmin(C, axis=axis, keepdims=True), C.argmin(axis, keepdims=True))
    same(rg.cumulative_sum(C, axis=1), C.cumsum(1), 1e-5)
    same(rg.cumsum(B), B.cumsum(), 1e-5)
    assert rg.sum(rg.tensor([True, True])).item() == 2
    assert rg.sum(rg.tensor([200, 100], dtype="uint8")).item() == 300


def test_reductions_over_nothing():
    empty = rg.zeros((0, 3))
    assert empty.sum().item() == 0
    assert empty.prod(axis=0).tolist() == [1, 1, 1]
    assert empty.logsumexp(axis=0).tolist() == [-np.inf] * 3
    assert np.isnan(empty.mean().item())
    assert rg.all(empty).item() is True
    with pytest.raises(rg.ShapeError, match="no elements"):
        empty.max()


def test_manipulation():
    same(rg.reshape(C, (4, -1)), C.reshape(4, -1))
    same(rg.permute_dims(C, (2, 0, 1)), C.transpose(2, 0, 1))
    same(rg.moveaxis(C, 0, -1), np.moveaxis(C, 0, -1))
    same(rg.moveaxis(C, (0, 1), (1, 2)), np.moveaxis(C, (0, 1), (1, 2)))
    same(rg.swapaxes(C, 0, 2), C.swapaxes(0, 2))
    same(rg.expand_dims(C, axis=(0, -1)), np.expand_dims(C, (0, -1)))
    same(rg.squeeze(C[:, :1], axis=1), C[:, 0])
    same(rg.broadcast_to(B, (3, 4)), np.broadcast_to(B, (3, 4)))
    same(rg.concat([A, A[:1]], axis=0), np.concatenate([A, A[:1]]))
    same(rg.concat([A, B], axis=None), np.concatenate([A, B], axis=None))
    same(rg.stack([A, A + 1], axis=1), np.stack([A, A + 1], 1))
    same(rg.flip(C, axis=(0, 2)), np.flip(C, (0, 2)))
    same(rg.roll(C, 3, axis=1), np.roll(C, 3, 1))
    same(rg.roll(C, -1, axis=2), np.roll(C, -1, 2))
    same(rg.repeat(A, 2, axis=1), np.repeat(A, 2, 1))
    same(rg.repeat(A, 2), np.repeat(A, 2))
    same(rg.tile(A, (2, 3)), np.tile(A, (2, 3)))
    same(rg.tile(A, (2, 1, 3)), np.tile(A, (2, 1, 3)))
    same(rg.pad(A, [(1, 2), (0, 3)], value=7), np.pad(A, [(1, 2), (0, 3)], constant_values=7))
    for k in (-1, 0, 2):
        same(rg.tril(C, k=k), np.tril(C, k))
        same(rg.triu(A, k=k), np.triu(A, k))
    for got, expected in zip(rg.split(A, [1, 3], axis=1), np.split(A, [1], 1), strict=True):
        same(got, expected)
    for got, expected in zip(rg.unstack(A, axis=1), A.T, strict=True):
        same(got, expected)
    for indexing in ("xy", "ij"):
        grids = rg.meshgrid(B, A[:, 0], indexing=indexing)
        for got, expected in zip(grids, np.meshgrid(B, A[:, 0], indexing=indexing), strict=True):
            same(got, expected)


def test_products():
    same(rg.matmul(A, C[0].T), A @ C[0].T)
    same(rg.matmul(B, A.T), B @ A.T)
    same(rg.matmul(C, B), C @ B)
    same(rg.matmul(A[0], C.swapaxes(1, 2)), A[0] @ C.swapaxes(1, 2))
    same(rg.matmul(C[:, None], C.swapaxes(1, 2)), C[:, None] @ C.swapaxes(1, 2), 1e-5)
    same(rg.tensordot(C, A, axes=2), np.tensordot(C, A, 2), 1e-5)
    same(rg.tensordot(C, A, axes=((1,), (0,))), np.tensordot(C, A, ((1,), (0,))), 1e-5)
    same(rg.vecdot(A, B), (A * B).sum(-1), 1e-5)
    same(rg.outer(B, A[0]), np.outer(B, A[0]))
    for order in (2, 1, 0, 3, np.inf, -np.inf):
        expected = np.linalg.norm(A, order, axis=1)
        same(rg.vector_norm(A, axis=1, ord=order), expected, 1e-5)
    huge = np.array([3e30, 4e30], np.float32)
    assert rg.vector_norm(huge).item() == pytest.approx(5e30)
    assert rg.vector_norm(rg.zeros(0)).item() == 0


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
        ("iji->j", [(3, 2, 3)]), ("i,j", [(2,), (3,)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 2)]), ("ihd,jhd->hij", [(3, 2, 4), (5, 2, 4)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]), ("ab,b,cb->ac", [(2, 3), (3,), (4, 3)]),
    ],
)  # fmt: skip
def test_einsum(subscripts, shapes):
    arrays = [rng.normal(size=s) for s in shapes]
    if subscripts == "...ij,...jk->...ik":
        arrays[1] = np.broadcast_to(arrays[1], (2, 4, 2))
    same(rg.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays), 1e-12)


X = np.arange(60).reshape(3, 4, 5)
J, K = np.array([0, -1]), np.array([[1], [2]])
KEYS = [
    0, -1, np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[-2:0:-1], np.s_[:, 1], np.s_[..., -1],
    np.s_[None],
    np.s_[:, None, ..., 2:4], np.s_[5:2], np.s_[J], np.s_[J, K], np.s_[:, J], np.s_[:, J, K],
    np.s_[J, :, K], np.s_[0, :, J], np.s_[J, 1:, 2], np.s_[..., J], np.s_[X[:, 0, 0] > 10],
    np.s_[X > 30], np.s_[:, X[0, :, 0] > 5, J[0]], np.s_[[0, 1], [1, 2]], np.s_[[]], np.s_[1, 2, 3],
    np.s_[None, J, None], np.s_[10:], np.s_[:, -3:-1, ::3], np.s_[()], np.s_[..., None],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing(key):
    got = rg.asarray(X)[key]
    assert got.shape == X[key].shape
    np.testing.assert_array_equal(got.numpy(), X[key])


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (3, IndexError, "3"), (np.s_[:, :, 5], IndexError, "axis 2"), (np.s_[0, 0, 0, 0],
        IndexError, "4"),
        (np.s_[0, -5], IndexError, "-5"), (1.5, TypeError, "1.5"), ("a", TypeError, "a"),
        (np.s_[[0.5]], TypeError, "integers"),
        (np.s_[..., 0, ...], IndexError, "one"),
    ],
)  # fmt: skip
def test_bad_indices(key, error, words):
    with pytest.raises(error, match=words):
        rg.asarray(X)[key]


def test_bad_indices_in_arrays_are_found_when_computed():
    with pytest.raises(rg.IndexRangeError, match="7"):
        rg.asarray(X)[[0, 7]].numpy()


def test_bad_indices_name_the_line_and_what_there_is():
    for f in (rg.scatter_add, rg.scatter_max, rg.scatter_set):  # programs of theirs are shared
        with pytest.raises(rg.IndexRangeError, match=r"-4 to 3.*test_elementwise\.py") as caught:
            f(rg.zeros(4), rg.tensor([0, 7]), rg.ones(2)).numpy()
        assert "f32[4]" in str(caught.value)
    x = rg.zeros((2, 3))
    for key in (5, (0, 0, 0), rg.tensor([True, False, True])):
        with pytest.raises(rg.IndexRangeError, match=r"test_elementwise\.py"):
            x[key]
    with pytest.raises(rg.ShapeError, match=r"\(arange at .*test_elementwise\.py"):
        rg.arange(0, 3, 0)


def test_take_and_scatter():
    same(rg.take(A, [2, 0], axis=0), A[[2, 0]])
    same(rg.take(A, [[1, 1], [0, 3]], axis=1), np.take(A, [[1, 1], [0, 3]], 1))
    index = A.argsort(1)
    same(rg.take_along_axis(A, index, axis=1), np.take_along_axis(A, index, 1))
    expected = np.zeros(4, np.float32)
    np.add.at(expected, [1, 1, 3], [1.0, 2.0, 5.0])
    same(rg.scatter_add(rg.zeros(4), [1, 1, 3], [1.0, 2.0, 5.0]), expected)
    assert rg.one_hot([0, 2, 5], 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(rg.DTypeError, match="integers"):
        rg.take(A, [0.5], axis=0)


def test_creation():
    same(rg.arange(5), np.arange(5))
    same(rg.arange(1.0, 2.0, 0.25), np.arange(1, 2, 0.25))
    same(rg.arange(5, 0, -2), np.arange(5, 0, -2))
    same(rg.linspace(0, 1, 5), np.linspace(0, 1, 5))
    same(rg.eye(3, 4, k=1), np.eye(3, 4, 1))
    same(rg.full((2, 2), 7), np.full((2, 2), 7))
    assert rg.full((), True).dtype == rg.bool
    assert rg.zeros_like(rg.tensor([1, 2])).dtype == rg.int64
    assert rg.ones((2, 0)).tolist() == [[], []]
    assert rg.isdtype(rg.float32, ("bool", "real floating"))
    assert not rg.isdtype(rg.float32, "integral")


def test_normalisations():
    mean, var = C.mean(-1, keepdims=True), C.var(-1, keepdims=True)
    same(rg.layer_norm(C, B, B + 1), (C - mean) / np.sqrt(var + 1e-5) * B + B + 1, 1e-4)
    same(rg.rms_norm(C, B), C / np.sqrt((C**2).mean(-1, keepdims=True) + 1e-5) * B, 1e-5)
    same(rg.softmax(C, axis=0), special.softmax(C, 0), 1e-5)
    same(rg.log_softmax(C, axis=1), special.log_softmax(C, 1), 1e-5)
    same(rg.softmax(np.array([1e30, 0], np.float32)), [1, 0])
    same(rg.clip(A, -0.5, 0.5), A.clip(-0.5, 0.5))
    same(rg.clip(A, min=B), np.maximum(A, B))
    same(rg.where(A > 0, A, 0.0), np.where(A > 0, A, 0))


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


@pytest.mark.parametrize(("n", "correction"), [(0, 0), (0, 1), (1, 1), (2, 3), (1, 0), (3, 1.5)])
def test_variance_of_too_few_is_nan(n, correction):
    x = np.arange(n, dtype=np.float64)
    f = rg.jit(lambda x: rg.var(x, correction=correction), shapes={"x": "N"})
    expected = np.nan if n <= correction else np.sum((x - x.mean()) ** 2) / (n - correction)
    for y in (rg.var(x, correction=correction), f(x), rg.std(x, correction=correction) ** 2):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)
