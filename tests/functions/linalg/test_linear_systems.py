"""Least squares by factors of two kinds: where the one ends and the other begins nothing jumps."""

import numpy as np
import pytest

import retrograd as rg

EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}


def with_values(shape: tuple[int, int], values: np.ndarray, seed: int = 0) -> np.ndarray:
    """A matrix of these singular values."""
    r = np.random.default_rng(seed)
    m, n = shape
    k = min(shape)
    u, v = (np.linalg.qr(r.standard_normal((size, k)))[0] for size in (m, n))
    return np.asarray((u * values) @ v.T)


def expected(a: np.ndarray, b: np.ndarray, rtol: float) -> np.ndarray:
    u, s, vh = np.linalg.svd(a.astype(np.float64), full_matrices=False)
    kept = s > rtol * s[0]
    return np.asarray(vh[kept].T / s[kept] @ (u[:, kept].T @ b))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (50, 50)], ids=str)
@pytest.mark.parametrize("least", [0.5, 0.011, 0.0101, 0.0099, 1e-4])
@pytest.mark.sample(4)
def test_values_above_and_below_the_limit(least, shape, dtype):
    """Of a limit of 0.01: full rank by the first bound, by the second, by singular values; then a
    rank less by one."""
    values = np.linspace(1, 0.5, 40 if 40 in shape else 50)
    values[-1] = least
    a = with_values(shape, values).astype(dtype)
    b = np.random.default_rng(1).standard_normal((shape[0], 3)).astype(dtype)
    for f in (rg.linalg.lstsq, rg.jit(rg.linalg.lstsq)):
        found = f(rg.tensor(a), rg.tensor(b), rtol=0.01)
        want = expected(a, b, 0.01)
        np.testing.assert_allclose(found.solution.numpy(), want, atol=2e4 * EPS[dtype])
        assert found.rank.item() == len(values) - (least < 0.01)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", [1, 2, 30, 200])
@pytest.mark.sample(1)
def test_conditions_up_to_the_limit(n, dtype):
    eps = EPS[dtype]
    b = np.random.default_rng(1).standard_normal((n + 5, 2)).astype(dtype)
    for last in (1e-1, 1e-2, 1e-4, 100 * n * eps):
        a = with_values((n + 5, n), np.geomspace(1, last if n > 1 else 1, n)).astype(dtype)
        found = rg.linalg.lstsq(rg.tensor(a), rg.tensor(b))
        y = found.solution.numpy()
        assert found.rank.item() == n
        # The residuals of a backward stable method are those of the best there are, nearly.
        a64, b64 = a.astype(np.float64), b.astype(np.float64)
        best = np.linalg.norm(a64 @ np.linalg.lstsq(a64, b64, rcond=None)[0] - b64)
        assert np.linalg.norm(a64 @ y - b64) <= best * (1 + 1e-3) + 1e-3


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-18, 1e18, 1e30, 1e37])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)], ids=str)
def test_very_small_and_very_large_numbers(shape, scale):
    """Squares of which are out of range."""
    a = with_values(shape, np.linspace(1, 0.5, 4)).astype(np.float32)
    b = np.random.default_rng(1).standard_normal(shape[0]).astype(np.float32)
    big = np.float32(scale)
    y = rg.linalg.lstsq(rg.tensor(a * big), rg.tensor(b * big)).solution.numpy()
    np.testing.assert_allclose(y, expected(a, b[:, None], 1e-6)[:, 0], rtol=2e-4, atol=1e-5)


def test_one_matrix_of_a_stack_lacks_rank():
    """Which changes nothing for the others, not even a bit."""
    a = np.stack([with_values((8, 5), np.linspace(1, 0.1, 5), k) for k in range(4)])
    b = np.random.default_rng(1).standard_normal((4, 8, 2))
    before = rg.linalg.lstsq(rg.tensor(a), rg.tensor(b)).solution.numpy()
    a[2, :, 4] = a[2, :, 3]
    after = rg.linalg.lstsq(rg.tensor(a), rg.tensor(b)).solution.numpy()
    for k in (0, 1, 3):
        np.testing.assert_array_equal(after[k], before[k])
    np.testing.assert_allclose(after[2], np.linalg.pinv(a[2]) @ b[2], atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(bad):
    a = np.ones((4, 3))
    a[1, 2] = bad
    with pytest.raises(rg.LinAlgError, match="NaN or infinities"):
        rg.linalg.lstsq(rg.tensor(a), rg.ones((4,))).solution.numpy()


def test_derivatives_of_a_product_of_low_rank():
    """At constant rank, against differences along a curve of matrices of that rank."""
    r = np.random.default_rng(3)
    p, q, t = r.standard_normal((6, 2)), r.standard_normal((2, 4)), r.standard_normal((6, 2))
    b = r.standard_normal((6, 2))

    def f(s):
        a = (rg.asarray(p) + s * rg.asarray(t)) @ rg.asarray(q)
        return rg.sum(rg.linalg.lstsq(a, b, rtol=1e-9).solution ** 2)

    def g(s):
        return float(np.sum((np.linalg.pinv((p + s * t) @ q, rcond=1e-9) @ b) ** 2))

    h = 1e-5
    zero = rg.tensor(0.0, dtype=rg.float64)
    np.testing.assert_allclose(rg.grad(f)(zero).item(), (g(h) - g(-h)) / (2 * h), rtol=1e-6)


def test_the_limit_has_a_second_name():
    """That of NumPy and PyTorch."""
    a, b = np.diag([1.0, 0.5, 1e-3]), np.ones(3)
    want = np.linalg.lstsq(a, b, rcond=0.01)[0]
    for found in (rg.linalg.lstsq(a, b, 0.01), rg.linalg.lstsq(a, b, rcond=0.01)):
        np.testing.assert_allclose(found.solution.numpy(), want, atol=1e-12)
    with pytest.raises(rg.OptionError, match="two names"):
        rg.linalg.lstsq(a, b, rcond=0.01, rtol=0.01)
