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


# -- updates ---------------------------------------------------------------------------------------
KEYS = [
    np.array([0, 2, 0]), (slice(None), np.array([1, 1])), (np.array([0, 1]), np.array([2, 2])),
    (np.array([0, 0]), slice(1, 3)), slice(0, 2), (0, slice(None, None, -1)), (Ellipsis, 1), 1,
    (np.array([[0], [2]]), np.array([[1, 1]])),
]  # fmt: skip


@pytest.mark.parametrize("key", range(len(KEYS)))
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16])
def test_updates_against_numpy(key, dtype):
    rng = np.random.default_rng(key)
    x = rng.integers(1, 9, (3, 4)).astype(dtype)
    value = rng.integers(1, 9, x[KEYS[key]].shape).astype(dtype)
    at = rg.tensor(x).at[KEYS[key]]
    np.testing.assert_array_equal(at.get().numpy(), x[KEYS[key]])
    for name, ufunc in (
        ("add", np.add), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum),
    ):  # fmt: skip
        expected = x.copy()
        ufunc.at(expected, KEYS[key], value)
        np.testing.assert_array_equal(getattr(at, name)(value).numpy(), expected)
    expected = x.copy()
    expected[KEYS[key]] = value
    np.testing.assert_array_equal(at.set(value).numpy(), expected)


def test_the_last_update_stays_and_gets_the_gradient():
    x, u = rg.tensor([1.0, 2.0, 3.0]), rg.tensor([5.0, 6.0, 7.0])
    f = rg.jit(lambda x, u, i: x.at[i].set(u), shapes={"u": "N", "i": "N"})
    i = np.array([2, 0, 2])
    assert f(x, u, i).tolist() == [6, 2, 7]
    gx, gu = rg.grad(lambda x, u: (f(x, u, i) * rg.tensor([1.0, 10.0, 100.0])).sum(), (0, 1))(x, u)
    assert gx.tolist() == [0, 10, 0]
    assert gu.tolist() == [0, 1, 100]


def test_masks():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = np.array([True, False])
    for m in (mask, rg.tensor(mask)):
        assert x.at[m].set(0.0).tolist() == [[0, 0], [3, 4]]
        assert x.at[m].add(rg.tensor([1.0, 5.0])).tolist() == [[2, 7], [3, 4]]
        assert x.at[m].set([[8.0, 9.0]]).tolist() == [[8, 9], [3, 4]]
    f = rg.jit(lambda x: x.at[x > 2].multiply(10.0))
    assert f(x).tolist() == [[1, 2], [30, 40]]
    assert rg.grad(lambda x: f(x).sum())(x).tolist() == [[1, 1], [10, 10]]
    with pytest.raises(rg.IndexRangeError):
        x.at[rg.tensor([True])].set(0.0)
    with pytest.raises(rg.TraceError, match="mask"):
        rg.jit(lambda x: x.at[x > 2].set([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))(rg.tensor([1.0, 3.0]))


def test_put_along_axis():
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal((3, 5)), np.array([[0, 3], [1, 1], [4, 0]])
    for mode in ("set", "add", "multiply", "min", "max"):
        v = rng.standard_normal((3, 2))
        expected = x.copy()
        for r in range(3):
            for k in range(2):
                old = expected[r, i[r, k]]
                expected[r, i[r, k]] = {
                    "set": v[r, k], "add": old + v[r, k], "multiply": old * v[r, k],
                    "min": min(old, v[r, k]), "max": max(old, v[r, k]),
                }[mode]  # fmt: skip
        np.testing.assert_allclose(rg.put_along_axis(x, i, v, 1, mode).numpy(), expected)
        turned = rg.put_along_axis(x.T.copy(), i.T.copy(), v.T.copy(), 0, mode).numpy()
        np.testing.assert_allclose(turned.T, expected)
    assert rg.put_along_axis([[1, 2], [3, 4]], [[1]], 9).tolist() == [[1, 9], [3, 9]]


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
