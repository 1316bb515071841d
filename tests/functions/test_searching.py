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


@pytest.mark.slow
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
