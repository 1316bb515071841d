"""Running sums, products and extrema, and differences, against NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograd as rg
from tests.sampling import examples

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
FLOATS = st.floats(-4, 4, width=32)


@examples(60)
@given(st.data())
def test_against_numpy(data):
    x = data.draw(hnp.arrays(np.float64, SHAPES, elements=FLOATS))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    initial = data.draw(st.booleans())
    for f, g in ((rg.cumulative_sum, np.cumulative_sum), (rg.cumulative_prod, np.cumulative_prod)):
        found = f(x, axis=axis, include_initial=initial).numpy()
        expected = g(x, axis=axis, include_initial=initial)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for extreme, ufunc in ((rg.cummax, np.maximum), (rg.cummin, np.minimum)):
        np.testing.assert_array_equal(extreme(x, axis=axis).numpy(), ufunc.accumulate(x, axis))
    log = rg.logcumsumexp(x, axis=axis).numpy()
    np.testing.assert_allclose(log, np.logaddexp.accumulate(x, axis), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int64, np.bool_])
def test_integers_are_summed_in_64_bits(dtype):
    x = np.ones(300, dtype)
    for f, g in ((rg.cumulative_sum, np.cumulative_sum), (rg.cumulative_prod, np.cumulative_prod)):
        found = f(x)
        assert found.dtype == (np.uint64 if np.dtype(dtype).kind == "u" else np.int64)
        np.testing.assert_array_equal(found.numpy(), g(x))
    assert rg.cumulative_sum(x, dtype=rg.int8).numpy()[-1] == np.int64(300).astype(np.int8)


@pytest.mark.torch
@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 100])
@pytest.mark.parametrize(
    ("name", "dim"), [("cumsum", 0), ("cumprod", 0), ("logcumsumexp", 0), ("cummax", 0)]
)
def test_gradients_against_torch(name, dim, n):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = np.random.default_rng(n).standard_normal((n, 3))
    if name == "cumprod" and n > 2:
        x[n // 2, 0] = x[1, 1] = x[2, 1] = 0  # one zero, and two
    seed = np.random.default_rng(1).standard_normal((n, 3))
    t = torch.tensor(x, requires_grad=True)
    y = getattr(torch, name)(t, dim)
    (y.values if name == "cummax" else y).backward(torch.tensor(seed))
    for axis, a, b in ((0, x, seed), (1, x.T.copy(), seed.T.copy())):
        leaf = rg.tensor(a, requires_grad=True)
        getattr(rg, name)(leaf, axis=axis).backward(b)
        found = leaf.grad.numpy()
        np.testing.assert_allclose(
            found if axis == 0 else found.T, t.grad.numpy(), rtol=1e-10, atol=1e-12
        )


def test_second_derivative_of_a_product_with_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    gradient = rg.grad(lambda v: rg.cumulative_prod(v).sum())
    rows = [rg.grad(lambda v, i=i: gradient(v)[i])(rg.tensor(x)).numpy() for i in range(5)]
    expected = np.zeros((5, 5))
    for end in range(1, 6):
        for i in range(end):
            for j in range(end):
                if i != j:
                    expected[i, j] += np.prod([x[k] for k in range(end) if k not in (i, j)])
    np.testing.assert_allclose(rows, expected)


def test_special_values():
    x = [1.0, np.nan, 3.0, np.inf]
    np.testing.assert_array_equal(rg.cummax(x).numpy(), [1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(rg.cummin(x).numpy(), [1, np.nan, np.nan, np.nan])
    low = [-np.inf, -np.inf, 0.0, -np.inf, np.inf, 0.0]
    np.testing.assert_array_equal(
        rg.logcumsumexp(low).numpy(), [-np.inf, -np.inf, 0, 0, np.inf, np.inf]
    )
    np.testing.assert_allclose(
        rg.logcumsumexp([1000.0, 1000.0, -1000.0]).numpy(), 1000 + np.log([1, 2, 2]), rtol=1e-6
    )
    leaf = rg.tensor([-np.inf, -np.inf, 0.0], requires_grad=True)
    rg.logcumsumexp(leaf)[2].backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [0, 0, 1])


def test_a_tie_goes_to_the_first():
    leaf = rg.tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
    rg.cummax(leaf).sum().backward()
    assert leaf.grad.tolist() == [1, 3, 0, 0]


@examples(40)
@given(st.data())
def test_diff_against_numpy(data):
    x = data.draw(hnp.arrays(np.int64, SHAPES, elements=st.integers(-9, 9)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = data.draw(st.integers(0, 3))
    more = {k: data.draw(st.sampled_from([None, 2, x])) for k in ("prepend", "append")}
    given_ = {k: v for k, v in more.items() if v is not None}
    found = rg.diff(x, axis=axis, n=n, **more).numpy()
    if n:
        np.testing.assert_array_equal(found, np.diff(x, n, axis, **given_))


def test_symbolic_sizes_and_vmap():
    f = rg.jit(lambda x: (rg.cumsum(x), rg.cumprod(x), rg.cummax(x), rg.diff(x)), shapes={"x": "N"})
    for n in (1, 5, 40):
        x = np.random.default_rng(n).standard_normal(n)
        expected = np.cumsum(x), np.cumprod(x), np.maximum.accumulate(x), np.diff(x)
        for a, b in zip(f(x), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-14)
    rows = np.random.default_rng(0).standard_normal((4, 6))
    found = rg.vmap(rg.cumprod)(rg.tensor(rows)).numpy()
    np.testing.assert_allclose(found, np.cumprod(rows, 1))


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda: rg.cumulative_sum(np.ones((2, 2))), rg.ShapeError),
        (lambda: rg.cumulative_sum(np.ones(3), axis=1), rg.ShapeError),
        (lambda: rg.cummax([True]), rg.DTypeError),
        (lambda: rg.diff([1, 2], n=-1), rg.ShapeError),
        (lambda: rg.diff([True]), rg.DTypeError),
        (lambda: rg.diff(1.0), rg.ShapeError),
    ],
)
def test_bad_input(f, error):
    with pytest.raises(error):
        f()
