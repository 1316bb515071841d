"""Positions, distinct elements, counts and repetitions, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograd as rg
from tests.sampling import examples

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
FEW = st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, np.inf])


@examples(60)
@given(st.data())
def test_positions(data):
    x = data.draw(hnp.arrays(np.float32, SHAPES, elements=FEW))
    assert rg.count_nonzero(x).item() == np.count_nonzero(x)
    if x.ndim == 0:
        with pytest.raises(rg.ShapeError):
            rg.nonzero(x)
        return
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    counts = rg.count_nonzero(x, axis=axis, keepdims=True).numpy()
    np.testing.assert_array_equal(counts, np.count_nonzero(x, axis=axis, keepdims=True))
    found = rg.nonzero(x)
    for a, b in zip(found, np.nonzero(x), strict=True):
        assert a.dtype is rg.int64
        np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(rg.argwhere(x).numpy(), np.argwhere(x))
    np.testing.assert_array_equal(rg.tensor(x)[rg.tensor(x) > 0].numpy(), x[x > 0])


def test_positions_of_a_given_number():
    f = rg.jit(lambda x, n: rg.nonzero(x, size=n, fill_value=-1), static_argnames=("n",))
    x = np.array([[0, 3, 0], [4, 0, 5]])
    for n in (0, 1, 3, 5):
        for a, b in zip(f(x, n), np.nonzero(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), [*b[:n], *[-1] * (n - 3)])
    select = rg.jit(lambda x: x[rg.nonzero(x > 1, size=2)])
    assert select(rg.tensor([1.0, 2.0, 0.0, 3.0])).tolist() == [2, 3]
    gradient = rg.grad(lambda x: (x[rg.nonzero(x > 1, size=2)] ** 2).sum())
    assert gradient(rg.tensor([1.0, 2.0, 0.0, 3.0])).tolist() == [0, 4, 0, 6]


@examples(60)
@given(st.data())
def test_distinct_elements(data):
    x = data.draw(hnp.arrays(np.float64, SHAPES, elements=FEW))
    expected = np.unique(x, True, True, True, equal_nan=False)
    found = rg.unique_all(x)
    nan = np.isnan(expected[0])
    np.testing.assert_array_equal(found.values.numpy(), expected[0])
    np.testing.assert_array_equal(found.counts.numpy(), expected[3])
    np.testing.assert_array_equal(found.indices.numpy()[~nan], expected[1][~nan])
    back = found.values.numpy()[found.inverse_indices.numpy()]
    np.testing.assert_array_equal(back, x)
    assert found.inverse_indices.shape == x.shape
    np.testing.assert_array_equal(rg.unique_values(x).numpy(), expected[0])
    np.testing.assert_array_equal(rg.unique_counts(x).counts.numpy(), expected[3])
    inverse = rg.unique_inverse(x)
    np.testing.assert_array_equal(inverse.inverse_indices.numpy(), found.inverse_indices.numpy())


def test_a_given_number_of_distinct_elements():
    f = rg.jit(lambda x: rg.unique_all(x, size=4))
    found = f(np.array([5, 1, 5, 3]))
    assert found.values.tolist() == [1, 3, 5, 1]
    assert found.counts.tolist() == [1, 1, 2, 0]
    assert found.inverse_indices.tolist() == [2, 0, 2, 1]
    g = rg.jit(lambda x: rg.unique_all(x, size=2))
    assert g(np.array([5, 1, 5, 3])).values.tolist() == [1, 3]


@examples(40)
@given(st.data())
def test_membership(data):
    x = data.draw(hnp.arrays(np.float64, SHAPES, elements=FEW))
    y = data.draw(hnp.arrays(np.float32, SHAPES, elements=FEW))
    for invert in (False, True):
        found = rg.isin(x, y, invert=invert).numpy()
        np.testing.assert_array_equal(found, np.isin(x, y, invert=invert))


@examples(40)
@given(st.data())
def test_counts(data):
    x = data.draw(hnp.arrays(np.uint8, st.integers(0, 20), elements=st.integers(0, 9)))
    w = data.draw(hnp.arrays(np.float64, x.shape, elements=st.floats(-2, 2, width=16)))
    least = data.draw(st.integers(0, 12))
    np.testing.assert_array_equal(rg.bincount(x, minlength=least), np.bincount(x, None, least))
    np.testing.assert_allclose(rg.bincount(x, w, least).numpy(), np.bincount(x, w, least))
    fixed = rg.jit(lambda x: rg.bincount(x, length=10))(x).numpy()
    np.testing.assert_array_equal(fixed, np.bincount(x, minlength=10))


@examples(60)
@given(st.data())
def test_histogram(data):
    x = data.draw(hnp.arrays(np.float64, st.integers(0, 30), elements=st.floats(-3, 3, width=16)))
    w = data.draw(hnp.arrays(np.float64, x.shape, elements=st.floats(0, 2, width=16)))
    options = {"range": data.draw(st.sampled_from([None, (-1, 2), (0.0, 0.0)]))}
    bins = data.draw(st.sampled_from([1, 4, 10, [-1.0, 0.0, 0.5, 3.0]]))
    options["weights"] = data.draw(st.sampled_from([None, w]))
    counts, edges = rg.histogram(x, bins, **options)
    expected, expected_edges = np.histogram(x, bins, **options)
    np.testing.assert_allclose(edges.numpy(), expected_edges, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(counts.numpy(), expected, rtol=1e-9, atol=1e-12)
    if expected.sum() > 0:
        density = rg.histogram(x, bins, density=True, **options)[0].numpy()
        wanted = np.histogram(x, bins, density=True, **options)[0]
        np.testing.assert_allclose(density, wanted, rtol=1e-6)


@examples(40)
@given(st.data())
def test_repetitions(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    x = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 9)))
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    n = x.size if axis is None else x.shape[axis]
    counts = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    for repeats in (2, counts):
        found = rg.repeat(x, repeats, axis=axis).numpy()
        np.testing.assert_array_equal(found, np.repeat(x, repeats, axis))


def test_repetitions_of_a_given_length():
    f = rg.jit(lambda x, n: rg.repeat(x, n, total_repeat_length=5))
    assert f(np.array([1, 2]), np.array([1, 2])).tolist() == [1, 2, 2, 2, 2]
    leaf = rg.tensor([1.0, 2.0], requires_grad=True)
    rg.repeat(leaf, [1, 3]).sum().backward()
    assert leaf.grad.tolist() == [1, 3]
    assert rg.repeat([1, 2], [2]).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda: rg.jit(rg.nonzero)(np.ones(3)), rg.TraceError, "size="),
        (lambda: rg.jit(rg.unique_values)(np.ones(3)), rg.TraceError, "size="),
        (lambda: rg.jit(rg.bincount)(np.ones(3, int)), rg.TraceError, "length="),
        (lambda: rg.jit(lambda x: rg.repeat(x, x))(np.ones(3, int)), rg.TraceError, "total"),
        (lambda: rg.jit(lambda x: x[x > 0])(np.ones(3)), rg.TraceError, "rg.nonzero"),
        (lambda: rg.bincount([1.0]), rg.DTypeError, "integers"),
        (lambda: rg.bincount([-1], length=3).numpy(), rg.IndexRangeError, "-1|-4"),
        (lambda: rg.bincount([3], length=3).numpy(), rg.IndexRangeError, "3"),
        (lambda: rg.bincount([1], [1.0, 2.0]), rg.ShapeError, "weights"),
        (lambda: rg.histogram([1.0], 0), rg.ShapeError, "0 bins"),
        (lambda: rg.histogram([1.0], range=(2, 1)), rg.ShapeError, "range"),
        (lambda: rg.histogram([1.0], [1.0]), rg.ShapeError, "edges"),
        (lambda: rg.repeat([1, 2], [1, -1]), rg.ShapeError, "negative"),
        (lambda: rg.repeat([1, 2], [1, 2, 3]), rg.ShapeError, "repeat"),
        (lambda: rg.repeat([1, 2], -1), rg.ShapeError, "negative"),
    ],
)
def test_bad_input(f, error, message):
    with pytest.raises(error, match=message):
        f()
