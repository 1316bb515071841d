"""Caches against attention to everything at once."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import IndexRangeError, ShapeError

F = nn.functional
rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(3, 2, 3, 9, 4))
KINDS: dict[str, tuple[Any, int]] = {
    "static": (nn.KVCache, 12),
    "growing": (nn.GrowingKVCache, 0),
}


def attention(window: int | None = None) -> np.ndarray:
    """Position by position, in NumPy."""
    y = np.zeros_like(Q)
    for i in range(9):
        first = 0 if window is None else max(0, i - window)
        scores = Q[:, :, i : i + 1] @ K[:, :, first : i + 1].swapaxes(-1, -2) / 2
        shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        y[:, :, i : i + 1] = shares @ V[:, :, first : i + 1]
    return y


def decoded(cache: Any, parts: list[int], window: int | None = None) -> tuple[np.ndarray, Any]:
    found, at = [], 0
    for n in parts:
        s = np.s_[:, :, at : at + n]
        cache, k, v, mask = cache.update(K[s], V[s], window)
        found.append(F.scaled_dot_product_attention(Q[s], k, v, mask).numpy())
        at += n
    return np.concatenate(found, axis=2), cache


@pytest.mark.parametrize("parts", [[1] * 9, [5, 1, 3], [9], [2, 7]])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_caches(kind: str, parts: list[int], window: int | None) -> None:
    make, size = KINDS[kind]
    cache = make.zeros(2, 3, size, 4, rg.float64)
    found, cache = decoded(cache, parts, window)
    np.testing.assert_allclose(found, attention(window), rtol=1e-12)
    assert cache.length.item() == 9
    np.testing.assert_array_equal(cache.keys.numpy()[:, :, :9], K)
    assert cache.positions(2).tolist() == [9, 10]


@pytest.mark.parametrize("parts", [[1] * 9, [5, 1, 3], [9], [2, 7], [1, 2, 3, 3], [0, 9]])
@pytest.mark.parametrize("size", [1, 3, 4, 9, 12])
def test_sliding(parts: list[int], size: int) -> None:
    """The last ones of a window, in as many rows."""
    cache = nn.SlidingKVCache.zeros(2, 3, size, 4, rg.float64)
    found, cache = decoded(cache, parts)
    np.testing.assert_allclose(found, attention(size - 1), rtol=1e-12)
    assert cache.keys.shape == (2, 3, size, 4)
    rows = {p % size: p for p in range(9)}
    for row, p in rows.items():
        np.testing.assert_array_equal(cache.keys.numpy()[:, :, row], K[:, :, p])


def test_a_smaller_window_in_a_sliding_cache() -> None:
    cache = nn.SlidingKVCache.zeros(2, 3, 5, 4, rg.float64)
    np.testing.assert_allclose(decoded(cache, [4, 1, 1, 3], 2)[0], attention(2), rtol=1e-12)


@pytest.mark.parametrize("make", [nn.KVCache, nn.SlidingKVCache])
def test_under_jit_one_program_serves_all_positions(make: Any) -> None:
    traced = []

    def step(cache: Any, q: Any, k: Any, v: Any) -> Any:
        traced.append(1)
        cache, k, v, mask = cache.update(k, v)
        return F.scaled_dot_product_attention(q, k, v, mask), cache

    run = rg.jit(step, donate="cache")
    cache = make.zeros(2, 3, 9, 4, rg.float64)
    found = []
    for i in range(9):
        s = np.s_[:, :, i : i + 1]
        y, cache = run(cache, Q[s], K[s], V[s])
        found.append(y.numpy())
    np.testing.assert_allclose(np.concatenate(found, 2), attention(), rtol=1e-12)
    assert len(traced) == 1
    if make is nn.KVCache:
        with pytest.raises(IndexRangeError):
            run(cache, Q[s], K[s], V[s])


def test_in_a_scan() -> None:
    """The same in a loop that is one program."""

    def step(cache: Any, x: Any) -> Any:
        q, k, v = x
        cache, k, v, mask = cache.update(k, v)
        return cache, F.scaled_dot_product_attention(q, k, v, mask)

    xs = tuple(rg.asarray(np.moveaxis(z, 2, 0)[:, :, :, None]) for z in (Q, K, V))
    cache, ys = rg.scan(step, nn.KVCache.zeros(2, 3, 9, 4, rg.float64), xs)
    np.testing.assert_allclose(np.moveaxis(ys.numpy()[:, :, :, 0], 0, 2), attention(), rtol=1e-12)
    assert cache.length.item() == 9


def test_caches_are_values_and_take_their_dtype() -> None:
    cache = nn.KVCache.zeros(2, 3, 9, 4, rg.bfloat16, value_width=6)
    after = cache.update(K[:, :, :2], np.ones((2, 3, 2, 6))).cache
    assert (cache.length.item(), after.length.item()) == (0, 2)
    assert not cache.keys.numpy().any()
    assert after.values.dtype is rg.bfloat16
    assert after.values.shape == (2, 3, 9, 6)


def test_refusals() -> None:
    cache = nn.KVCache.zeros(2, 3, 4, 4)
    with pytest.raises(ShapeError, match=r"keys of the shape \(2, 3, 9, 3\)"):
        cache.update(K[..., :3], V)
    with pytest.raises(ShapeError, match="as many positions"):
        cache.update(K[:, :, :1], V[:, :, :2])
    with pytest.raises(IndexRangeError):
        cache.update(K, V).keys.numpy()
    with pytest.raises(ShapeError, match="at least 1"):
        nn.KVCache.zeros(0, 1, 1, 1)
