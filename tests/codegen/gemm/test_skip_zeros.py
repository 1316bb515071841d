"""Products with zeros that the routine for matrix products leaves out: to the bit as if it had not.

A block of the right matrix that is not finite is gone through as a whole; so one more column, of
infinities, has everything computed.
"""

import numpy as np
import pytest

import retrograd as rg


def left(kind: str, m: int, k: int, r: np.random.Generator) -> np.ndarray:
    a = r.standard_normal((m, k))
    if kind in ("below", "tiny", "negative"):
        a = np.tril(a, k // 3)
    if kind == "above":
        a = np.triu(a, 5)
    if kind == "bands":
        a[: m // 2, : k // 2] = 0
        a[m // 2 :, k // 2 :] = -0.0
    if kind == "nothing":
        a *= -0.0
    return a * 1e-30 if kind == "tiny" else abs(a) if kind == "negative" else a


KINDS = ("below", "above", "bands", "nothing", "tiny", "negative", "dense")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(64, 64, 2048), (200, 70, 301), (37, 33, 999)], ids=str)
@pytest.mark.sample(12)
def test_no_bit_differs(sizes, kind, turned, dtype):
    m, n, k = sizes
    r = np.random.default_rng(0)
    a = left(kind, m, k, r).astype(dtype)
    b = r.standard_normal((k, n)).astype(dtype)
    if kind == "tiny":
        b *= dtype(1e-20)
    if kind == "negative":
        b = -abs(b)  # zeros times these are -0
    given = rg.tensor(np.ascontiguousarray(a.T) if turned else a)
    f = rg.jit((lambda a, b: a.T @ b) if turned else (lambda a, b: a @ b))
    whole = np.concatenate([b, np.full((k, 1), np.inf, dtype)], axis=1)
    found, expected = f(given, rg.tensor(b)).numpy(), f(given, rg.tensor(whole)).numpy()[:, :n]
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 700, 1023])
def test_zero_times_what_is_not_finite_is_nan(place, bad):
    a = np.zeros((40, 1024), np.float32)
    a[:, 300:310] = 1
    b = np.ones((1024, 50), np.float32)
    b[place, 7] = bad
    y = rg.jit(lambda a, b: a @ b)(rg.tensor(a), rg.tensor(b)).numpy()
    assert np.isnan(y[:, 7]).all()
    assert (np.delete(y, 7, axis=1) == 10).all()
