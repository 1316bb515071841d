"""Counts, histograms and repetitions against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograd as rg
from tests.sampling import examples


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
