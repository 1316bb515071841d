"""`multi_head_attention_forward`: heads and masks by hand in NumPy."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import retrograd as rg
from tests.nn.functional.torch_cases import compare, normal

F = rg.nn.functional
rng = np.random.default_rng(0)
E, HEADS, L, N = 4, 2, 3, 2
Q, K, V = rng.normal(size=(3, L, N, E))
W, B = rng.normal(size=(3 * E, E)), rng.normal(size=3 * E)
OUT, OUT_B = rng.normal(size=(E, E)), rng.normal(size=E)


def attend(q: Any, k: Any, v: Any, heads: int = HEADS, zero: bool = False, **options: Any) -> Any:
    return F.multi_head_attention_forward(
        q, k, v, E, heads, W, B, None, None, zero, 0.0, OUT, OUT_B, **options
    )


def by_hand(mask: Any = 0.0) -> tuple[Any, Any]:
    """Output, and the weights of each head, of sample after sample and head after head."""
    y, shares = np.zeros((L, N, E)), np.zeros((N, HEADS, L, L))
    for n in range(N):
        q, k, v = (
            x[:, n] @ w.T + b
            for x, w, b in zip((Q, K, V), np.split(W, 3), np.split(B, 3), strict=True)
        )
        for h in range(HEADS):
            part = slice(h * E // HEADS, (h + 1) * E // HEADS)
            scores = q[:, part] @ k[:, part].T / np.sqrt(E // HEADS) + mask
            shares[n, h] = softmax(scores, axis=-1)
            y[:, n, part] = shares[n, h] @ v[:, part]
    return y @ OUT.T + OUT_B, shares


def test_heads_by_hand() -> None:
    y, shares = by_hand()
    found, mean = attend(Q, K, V)
    np.testing.assert_allclose(found.numpy(), y, rtol=1e-10)
    np.testing.assert_allclose(mean.numpy(), shares.mean(axis=1), rtol=1e-10)
    _, each = attend(Q, K, V, average_attn_weights=False)
    np.testing.assert_allclose(each.numpy(), shares, rtol=1e-10)
    alone, mean = attend(Q[:, 0], K[:, 0], V[:, 0])
    np.testing.assert_allclose(alone.numpy(), y[:, 0], rtol=1e-10)
    np.testing.assert_allclose(mean.numpy(), shares[0].mean(axis=0), rtol=1e-10)


def test_a_boolean_mask_is_true_where_nobody_looks_and_a_floating_one_is_added() -> None:
    hidden = np.triu(np.ones((L, L), bool), 1)
    expected, _ = by_hand(np.where(hidden, -np.inf, 0.0))
    for options in ({"attn_mask": hidden}, {"is_causal": True}):
        found, none = attend(Q, K, V, need_weights=False, **options)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
        assert none is None
    added = rng.normal(size=(L, L))
    np.testing.assert_allclose(attend(Q, K, V, attn_mask=added)[0].numpy(), by_hand(added)[0])


def test_a_key_of_zeros_takes_its_share() -> None:
    _, shares = attend(Q, K, V, zero=True)
    assert shares.shape == (N, L, L + 1)
    np.testing.assert_allclose(shares.numpy().sum(-1), 1.0)


def test_refusals() -> None:
    with pytest.raises(rg.ShapeError):
        attend(Q, K, V, heads=3)
    with pytest.raises(rg.ShapeError):
        attend(Q, K, V, attn_mask=np.zeros((L, L + 1), bool))
    with pytest.raises(rg.DTypeError):
        attend(Q, K, V, attn_mask=np.zeros((L, L), int))


@pytest.mark.torch
def test_heads_of_queries_that_share_keys() -> None:
    arrays = normal(2, 6, 4, 5), normal(2, 3, 7, 5, seed=1), normal(2, 3, 7, 2, seed=2)
    f = lambda m, q, k, v: m.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    compare(f, arrays, "enable_gqa")
    with pytest.raises(rg.ShapeError, match="multiple"):
        f(rg.nn.functional, arrays[0][:, :5], *arrays[1:])
