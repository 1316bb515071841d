"""Sorting, searching in what is sorted, and quantiles, against NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograd as rg
from retrograd.functions.sorting import METHODS
from tests.sampling import examples

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-40])
DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.float16,
          np.float32, np.float64]  # fmt: skip


def stable_descending(x, axis):
    keys = -x if x.dtype.kind == "f" else ~x
    return np.argsort(keys, axis, kind="stable")


@examples(60)
@given(st.data())
def test_against_numpy(data):
    x = data.draw(hnp.arrays(np.float32, SHAPES, elements=SPECIAL))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    up, down = np.argsort(x, axis, kind="stable"), stable_descending(x, axis)
    for order, descending in ((up, False), (down, True)):
        found = rg.argsort(x, axis=axis, descending=descending).numpy()
        np.testing.assert_array_equal(found, order)
        values = rg.sort(x, axis=axis, descending=descending).numpy()
        assert values.tobytes() == np.take_along_axis(x, order, axis).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 39, 40, 41, 300, 5000])
@pytest.mark.sample(10)
def test_every_length(dtype, n):
    rng = np.random.default_rng(n)
    if np.dtype(dtype).kind == "f":
        x = np.round(rng.standard_normal(n) * 4, 1).astype(dtype)
        x[rng.random(n) < 0.1] = np.nan
        x[rng.random(n) < 0.1] = -0.0
    else:
        x = rng.integers(0, 2**62, n).astype(dtype)
    for view in (x, x[::-1], np.sort(x), x[::2]):
        for descending in (False, True):
            order = stable_descending(view, 0) if descending else np.argsort(view, kind="stable")
            found = rg.argsort(view, descending=descending).numpy()
            np.testing.assert_array_equal(found, order)
            values = rg.sort(view, descending=descending).numpy()
            assert values.tobytes() == view[order].tobytes()


def test_wide_keys_and_extremes():
    x = np.array([2**63 - 1, -(2**63), 0, -1, 1] * 30)
    np.testing.assert_array_equal(rg.sort(x).numpy(), np.sort(x))
    y = np.array([2**64 - 1, 2**63, 0, 1] * 30, np.uint64)
    np.testing.assert_array_equal(rg.sort(y, descending=True).numpy(), np.sort(y)[::-1])


@pytest.mark.torch
def test_gradients_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    rng = np.random.default_rng(0)
    x, seed = rng.standard_normal((3, 9)), rng.standard_normal((3, 9))
    t = torch.tensor(x, requires_grad=True)
    torch.sort(t, 1, descending=True)[0].backward(torch.tensor(seed))
    leaf = rg.tensor(x, requires_grad=True)
    rg.sort(leaf, descending=True).backward(seed)
    np.testing.assert_array_equal(leaf.grad.numpy(), t.grad.numpy())
    values, indices = rg.topk(x, 4, axis=0 - 1)
    expected = torch.topk(torch.tensor(x), 4)
    np.testing.assert_array_equal(values.numpy(), expected.values)
    np.testing.assert_array_equal(indices.numpy(), expected.indices)
    small = rg.topk(x, 2, axis=0, largest=False).values.numpy()
    np.testing.assert_array_equal(small, np.sort(x, 0)[:2])


@pytest.mark.torch
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 64, 1000):
        row = np.sort(np.round(rng.standard_normal(n), 1))
        row[n - n // 8 :] = np.nan
        v = np.array([*np.round(rng.standard_normal(50), 1), np.inf, -np.inf, np.nan, -0.0])
        expected = np.searchsorted(row, v, side)
        np.testing.assert_array_equal(rg.searchsorted(row, v, side=side).numpy(), expected)
    x = rng.permutation(20)
    order = np.argsort(x)
    found = rg.searchsorted(x, [3, 30], side=side, sorter=order).numpy()
    np.testing.assert_array_equal(found, np.searchsorted(x, [3, 30], side, order))
    rows, values = np.sort(rng.standard_normal((4, 6))), rng.standard_normal((4, 3))
    found = rg.searchsorted(rows, values, side=side).numpy()
    expected = torch.searchsorted(torch.tensor(rows), torch.tensor(values), side=side)
    np.testing.assert_array_equal(found, expected)
    bins = np.array([0.0, 1.0, 2.0])
    points = np.array([-1, 0, 0.5, 1, 2, 3])
    for right in (False, True):
        found = rg.digitize(points, bins, right).numpy()
        np.testing.assert_array_equal(found, np.digitize(points, bins, right))
        down, digitize = bins[::-1].copy(), rg.jit(rg.digitize, static_argnames="right")
        found = digitize(points, down, right=right).numpy()
        np.testing.assert_array_equal(found, np.digitize(points, down, right))


@examples(80)
@given(st.data())
def test_quantile_against_numpy(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    elements = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([np.inf, 3.0]))
    x = data.draw(hnp.arrays(np.float64, shape, elements=elements))
    if data.draw(st.integers(0, 9)) == 0:
        x.flat[0] = np.nan
    axis = data.draw(st.sampled_from([None, 0, -1, tuple(range(x.ndim))]))
    keep = data.draw(st.booleans())
    method = data.draw(st.sampled_from(METHODS))
    q = data.draw(st.sampled_from([0, 1, 0.5, 0.25, 0.1, [0.1, 0.9], [[0.0], [0.3]]]))
    with np.errstate(all="ignore"):
        expected = np.quantile(x, q, axis, method=method, keepdims=keep)
        middle = np.median(x, axis, keepdims=keep)
    found = rg.quantile(x, q, axis, method=method, keepdims=keep).numpy()
    assert found.shape == np.shape(expected)
    # Where infinities meet, NumPy has NaN for what is between two equal ones.
    known = ~np.isnan(expected) | ~np.isinf(x).any()
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-12, atol=1e-14)
    percent = rg.percentile(x, np.multiply(q, 100), axis, method=method, keepdims=keep).numpy()
    np.testing.assert_allclose(percent, found, rtol=1e-9, atol=1e-12)
    if not np.isinf(x).any():
        np.testing.assert_allclose(rg.median(x, axis, keepdims=keep).numpy(), middle, rtol=1e-14)


def test_quantile_gradients():
    x, q = np.array([5.0, 1.0, 3.0, 8.0]), 0.4
    gx, gq = rg.grad(rg.quantile, argnums=(0, 1))(rg.tensor(x), rg.tensor(np.array(q)))
    # Place 1.2 of 1, 3, 5, 8: 0.8 of the 3 and 0.2 of the 5.
    np.testing.assert_allclose(gx.numpy(), [0.2, 0, 0.8, 0], atol=1e-12)
    np.testing.assert_allclose(gq.numpy(), 3 * (5 - 3))


def test_symbolic_sizes_and_vmap():
    f = rg.jit(lambda x: (rg.sort(x), rg.argsort(x), rg.median(x)), shapes={"x": "N"})
    for n in (1, 6, 50):
        x = np.random.default_rng(n).standard_normal(n)
        values, order, middle = f(x)
        np.testing.assert_array_equal(values.numpy(), np.sort(x))
        np.testing.assert_array_equal(order.numpy(), np.argsort(x))
        np.testing.assert_allclose(middle.numpy(), np.median(x))
    rows = np.random.default_rng(0).standard_normal((4, 6))
    np.testing.assert_array_equal(
        rg.vmap(lambda x: rg.topk(x, 2).values)(rg.tensor(rows)).numpy(),
        -np.sort(-rows)[:, :2],
    )
    for one, two in ((rows, rows[0]), (rows[0], rows)):
        axes = (0 if one.ndim == 2 else None, 0 if two.ndim == 2 else None)
        search = rg.vmap(lambda a, v: rg.searchsorted(rg.sort(a), v), axes)
        found = search(rg.tensor(one), rg.tensor(two)).numpy()
        expected = [
            np.searchsorted(np.sort(rows[i] if one.ndim == 2 else rows[0]),
                            rows[i] if two.ndim == 2 else rows[0])
            for i in range(4)
        ]  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def test_bits_do_not_depend_on_threads():
    x = np.random.default_rng(0).standard_normal((400, 333)).astype(np.float32)
    x[::7, ::5] = np.nan
    f = rg.jit(lambda x: (rg.sort(x), rg.argsort(x * 2), rg.sort(x, axis=0, descending=True)))
    with rg.num_threads(1):
        one = [y.numpy().tobytes() for y in f(x)]
    for n in (2, 3, 5):
        with rg.num_threads(n):
            assert [y.numpy().tobytes() for y in f(x)] == one


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda: rg.sort(1.0), rg.ShapeError),
        (lambda: rg.argsort([1.0], axis=1), rg.ShapeError),
        (lambda: rg.topk([1.0], 2), rg.ShapeError),
        (lambda: rg.topk([1.0], -1), rg.ShapeError),
        (lambda: rg.searchsorted([1.0], [1.0], side="middle"), rg.OptionError),
        (lambda: rg.searchsorted(1.0, [1.0]), rg.ShapeError),
        (lambda: rg.searchsorted([[1.0]], [[1.0], [2.0]]), rg.ShapeError),
        (lambda: rg.quantile([1.0], 1.5), rg.OptionError),
        (lambda: rg.quantile([1.0], 0.5, method="cubic"), rg.OptionError),
        (lambda: rg.quantile([], 0.5), rg.ShapeError),
        (lambda: rg.median(np.ones((2, 0)), axis=1), rg.ShapeError),
    ],
)
def test_bad_input(f, error):
    with pytest.raises(error):
        f()


def test_the_slope_of_a_quantile_at_whole_places():
    """Towards the next place; at the last one, from the place before."""
    x = rg.tensor([0.0, 3.0, 1.0], dtype="float64")
    slopes = [rg.grad(lambda q: rg.quantile(x, q))(q).item() for q in (0.0, 0.25, 0.5, 1.0)]
    assert slopes == [2, 2, 4, 4]
    assert rg.grad(lambda q: rg.quantile(rg.tensor([5.0]), q))(0.5).item() == 0


def test_topk_of_as_many_as_a_size_with_a_name():
    f = rg.jit(lambda x, y: rg.topk(x, y.shape[0]), shapes={"x": "N", "y": "K"})
    x = np.array([3.0, 1.0, 2.0, 5.0])
    for k in (0, 2, 4):
        values, places = f(x, np.ones(k))
        assert values.tolist() == sorted(x, reverse=True)[:k]
        assert places.tolist() == np.argsort(-x)[:k].tolist()
    with pytest.raises(rg.ShapeError, match="5 places are not among the 4"):
        f(x, np.ones(5))
