"""Segments and scatters, against NumPy and PyTorch, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

REDUCE = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}
EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


def cases():
    rng = np.random.default_rng(0)
    for n, k, shape in ((0, 3, ()), (1, 1, (2,)), (40, 7, ()), (40, 9, (3,)), (25, 5, (2, 3))):
        ids = rng.integers(0, k, n)
        x = rng.standard_normal((n, *shape))
        x[rng.random(x.shape) < 0.2] = 0
        for order in (ids, np.sort(ids)):
            yield x, order, k


@pytest.mark.torch
@pytest.mark.parametrize("name", REDUCE)
def test_values_and_gradients_against_torch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    f = getattr(rg, f"segment_{name}")
    for x, ids, k in cases():
        t = torch.tensor(x, requires_grad=True)
        index = torch.tensor(ids).reshape(-1, *[1] * (x.ndim - 1)).expand(*x.shape)
        start = torch.full((k, *x.shape[1:]), EMPTY[name], dtype=torch.float64)
        y = start.scatter_reduce(0, index, t, REDUCE[name], include_self=False)
        leaf = rg.tensor(x, requires_grad=True)
        found = f(leaf, ids, k)
        np.testing.assert_allclose(found.numpy(), y.detach(), rtol=1e-12, atol=1e-14)
        seed = np.random.default_rng(1).standard_normal(y.shape)
        if y.numel() and x.size:
            y.backward(torch.tensor(seed))
            found.backward(seed)
            np.testing.assert_allclose(leaf.grad.numpy(), t.grad, rtol=1e-10, atol=1e-12)
        if len(ids):
            guessed = f(x, ids).numpy()
            np.testing.assert_array_equal(guessed, found.numpy()[: ids.max() + 1])


@pytest.mark.torch
def test_softmax():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    for x, ids, k in cases():
        found = rg.segment_softmax(x, ids, k).numpy()
        for s in range(k):
            rows = torch.softmax(torch.tensor(x[ids == s]), 0) if (ids == s).any() else None
            if rows is not None:
                np.testing.assert_allclose(found[ids == s], rows, rtol=1e-12)
    big = rg.segment_softmax([1000.0, 1000.0, -1000.0], [0, 0, 1], 2)
    assert big.tolist() == [0.5, 0.5, 1.0]
    gradient = rg.grad(lambda x: rg.segment_softmax(x, [0, 0, 1], 2)[0])
    np.testing.assert_allclose(gradient(rg.tensor([0.0, 0.0, 3.0])).numpy(), [0.25, -0.25, 0])


def test_second_derivative_of_a_product_with_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0])
    ids = np.array([0, 0, 1, 0])
    gradient = rg.grad(lambda v: rg.segment_prod(v, ids, 2).sum())
    np.testing.assert_array_equal(gradient(rg.tensor(x)).numpy(), [0, 0, 1, 0])
    row = rg.grad(lambda v: gradient(v)[1])(rg.tensor(x)).numpy()
    np.testing.assert_array_equal(row, [0, 0, 0, 2])


def test_half_precision_is_combined_in_float32():
    x = np.full(5000, 1.0, np.float16)
    assert rg.segment_sum(x, np.zeros(5000, int), 1).item() == 5000
    assert rg.segment_sum(x, np.zeros(5000, int), 1).dtype is rg.float16


def test_integers_and_empty_segments():
    x = np.array([5, 3], np.int8)
    assert rg.segment_max(x, [0, 2], 3).tolist() == [5, -128, 3]
    assert rg.segment_min(x, [0, 2], 3).tolist() == [5, 127, 3]
    assert rg.segment_sum(x, [0, 2], 3).dtype is rg.int8
    assert rg.segment_mean(x, [0, 0], 1).tolist() == [4.0]


@pytest.mark.parametrize("shape", [(), (16,), (5,)])
def test_bits_do_not_depend_on_threads(shape):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((20_000, *shape)) * 10.0 ** rng.integers(-6, 6)).astype(np.float32)
    for k in (1, 3, 5000):
        ids = rng.integers(0, k, len(x))
        f = rg.jit(
            lambda x, ids, k=k: [
                g(x, ids, k) for g in (rg.segment_sum, rg.segment_prod, rg.segment_softmax)
            ]
        )
        with rg.num_threads(1):
            one = [y.numpy().tobytes() for y in f(x, ids)]
        for n in (2, 3, 7):
            with rg.num_threads(n):
                assert [y.numpy().tobytes() for y in f(x, ids)] == one


def test_symbolic_sizes_and_vmap():
    f = rg.jit(lambda x, i: rg.segment_sum(x, i, 4), shapes={"x": "N 3", "i": "N"})
    for n in (0, 1, 9):
        x, i = np.random.default_rng(n).standard_normal((n, 3)), np.arange(n) % 4
        expected = np.zeros((4, 3))
        np.add.at(expected, i, x)
        np.testing.assert_allclose(f(x, i).numpy(), expected)
    rows, ids = np.random.default_rng(0).standard_normal((5, 6)), np.arange(30).reshape(5, 6) % 4
    batched = rg.vmap(lambda x, i: rg.segment_max(x, i, 4))
    found = batched(rg.tensor(rows), rg.tensor(ids)).numpy()
    for k in range(5):
        np.testing.assert_array_equal(found[k], rg.segment_max(rows[k], ids[k], 4).numpy())


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda: rg.segment_sum([1.0, 2.0], [0], 1), rg.ShapeError),
        (lambda: rg.segment_sum([1.0], [[0]], 1), rg.ShapeError),
        (lambda: rg.segment_sum([1.0], [0.5], 1), rg.DTypeError),
        (lambda: rg.segment_sum([True], [0], 1), rg.DTypeError),
        (lambda: rg.segment_sum([1.0], [1], 1).numpy(), rg.IndexRangeError),
        (lambda: rg.segment_sum([1.0], [0], -1), rg.ShapeError),
        (lambda: rg.jit(rg.segment_sum)([1.0], np.array([0])), rg.TraceError),
        (lambda: rg.put_along_axis([1.0], [0], 1.0, mode="xor"), rg.OptionError),
        (lambda: rg.put_along_axis([1.0], [[0]], 1.0), rg.ShapeError),
        (lambda: rg.scatter_max([1.0], [0], [1.0, 2.0]), rg.ShapeError),
        (lambda: rg.scatter_mul([1], [0], [1.5]), rg.DTypeError),
        (lambda: rg.tensor([True]).at[0].add(True), rg.DTypeError),
    ],
)
def test_bad_input(f, error):
    with pytest.raises(error):
        f()
