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


# -- scaled_dot_product_attention -----------------------------------------------------------------
def in_float64(q: Any, k: Any, v: Any, allowed: Any, added: Any = 0.0) -> Any:
    """Attention as its formula says; 0 for a query without keys."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + added
    s = np.where(allowed, s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(-1, keepdims=True)
    return e @ v / np.where(total == 0, 1.0, total)


def seen(rows: int, keys: int, causal: bool, window: Any) -> Any:
    i, j = np.arange(rows)[:, None], np.arange(keys)
    before, after = window if isinstance(window, tuple) else (window, window)
    allowed = np.ones((rows, keys), bool)
    if causal:
        after = 0
    if before is not None:
        allowed &= j >= i - before
    if after is not None:
        allowed &= j <= i + after
    return allowed


WINDOWS = [None, 0, 3, 40, (7, None), (None, 2), (64, 1)]
LENGTHS = [(5, 5), (1, 9), (9, 1), (64, 64), (150, 131), (131, 300), (257, 257), (0, 4), (4, 0)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "keys"), LENGTHS, ids=str)
@pytest.mark.sample(4)
def test_windows_and_lengths(rows, keys, causal, window):
    q, k, v, g = (
        rng.normal(size=(2, 2, n, w)) for n, w in ((rows, 8), (keys, 8), (keys, 3), (rows, 3))
    )
    allowed = seen(rows, keys, causal, window)
    options: Any = {"is_causal": causal, "window_size": window}
    attend = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)
    plain = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    np.testing.assert_allclose(attend(q, k, v), in_float64(q, k, v, allowed), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rg.jit(attend)(q, k, v), attend(q, k, v), rtol=0, atol=0)
    slopes = [
        rg.grad(lambda q, k, v, f=f: (f(q, k, v) * g).sum(), argnums=(0, 1, 2))(q, k, v)
        for f in (attend, plain)
    ]
    for a, b in zip(*slopes, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("dtype", "error"), [
    (rg.float64, 1e-13), (rg.float32, 2e-6), (rg.float16, 1e-3), (rg.bfloat16, 8e-3),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("length", [7, 300])
def test_every_precision(length, dtype, error):
    q, k, v = (rg.tensor(rng.normal(size=(2, length, 16)), dtype=dtype) for _ in range(3))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert y.dtype is dtype
    q64, k64, v64 = (x.astype(rg.float64).numpy() for x in (q, k, v))
    r = in_float64(q64, k64, v64, np.tri(length, dtype=bool))
    np.testing.assert_allclose(y.astype(rg.float64).numpy(), r, rtol=0, atol=error * abs(r).max())


def test_large_values_in_half_precision_do_not_overflow():
    """The sum that is divided in the end would be infinite in float16."""
    x = rg.zeros((64, 4), dtype=rg.float16)
    y = F.scaled_dot_product_attention(x, x, x + 60000.0)
    assert (y.numpy() == np.float16(60000)).all()


def test_derivatives_of_every_kind_agree_with_those_of_a_mask():
    """Forward mode, second order and batches through what is not computed."""
    q, k, v, t = rng.normal(size=(4, 3, 140, 4))
    allowed = seen(140, 140, True, 30)
    hidden = lambda q: F.scaled_dot_product_attention(q, k, v, is_causal=True, window_size=30)
    plain = lambda q: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    loss = lambda f: lambda q: (f(q) * rg.sin(f(q))).sum()
    for build in (
        lambda f: rg.jvp(f, (q,), (t,))[1],
        lambda f: rg.jvp(rg.grad(loss(f)), (q,), (t,))[1],
        lambda f: rg.grad(lambda q: (rg.grad(loss(f))(q) * t).sum())(q),
        lambda f: rg.vmap(lambda q: rg.grad(loss(f))(q))(rg.tensor(np.stack([q, 2 * q]))),
    ):
        a, b = build(hidden), build(plain)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


def test_what_is_hidden_may_be_anything():
    """A key that nobody looks at has no influence, not even one that is not finite."""
    q, k, v = rng.normal(size=(3, 200, 4))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, window_size=5).numpy()
    k[150] = np.nan
    far = F.scaled_dot_product_attention(q, k, v, is_causal=True, window_size=5).numpy()
    np.testing.assert_array_equal(far[:150], y[:150])
    np.testing.assert_array_equal(far[156:], y[156:])
    assert np.isnan(far[150:156]).all()


def test_a_window_has_no_negative_size():
    with pytest.raises(rg.OptionError, match="negative"):
        F.scaled_dot_product_attention(Q, K, V, window_size=(-1, 2))


@pytest.mark.torch
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("rows", "keys"), [(5, 5), (300, 300), (130, 260), (260, 130)], ids=str)
def test_against_pytorch(rows, keys, causal):
    arrays = normal(2, 3, rows, 16), normal(2, 3, keys, 16, seed=1), normal(2, 3, keys, 8, seed=2)
    f = lambda m, q, k, v: m.scaled_dot_product_attention(q, k, v, is_causal=causal)
    compare(f, arrays, "causal" if causal else "all")


@pytest.mark.parametrize("mask", ["none", "pairs", "heads", "samples", "added"])
def test_grouped_queries_are_repeated_keys(mask):
    """Also where leading axes broadcast, and with masks for heads."""
    r = np.random.default_rng(1)
    q, k, v = r.normal(size=(1, 6, 5, 4)), r.normal(size=(3, 2, 7, 4)), r.normal(size=(3, 2, 7, 3))
    masks = {
        "none": None,
        "pairs": r.random((5, 7)) < 0.7,
        "heads": r.random((6, 5, 7)) < 0.7,
        "samples": r.random((3, 1, 1, 7)) < 0.7,
        "added": r.normal(size=(3, 6, 5, 7)),
    }
    wide = [np.repeat(x, 3, axis=1) for x in (k, v)]

    def slopes(f):
        return rg.grad(lambda *xs: (f(*xs) ** 2).sum(), argnums=(0, 1, 2))

    attend: Any = F.scaled_dot_product_attention
    grouped = lambda q, k, v: attend(q, k, v, masks[mask], enable_gqa=True, window_size=(3, 2))
    expected = attend(q, *wide, masks[mask], window_size=(3, 2))
    np.testing.assert_allclose(grouped(q, k, v).numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)
    mine = slopes(grouped)(q, k, v)
    dq, dk, dv = slopes(lambda q, k, v: attend(q, k, v, masks[mask], window_size=(3, 2)))(q, *wide)
    shared = [x.numpy().reshape(3, 2, 3, 7, -1).sum(axis=2) for x in (dk, dv)]
    for a, b in zip(mine, [dq.numpy(), *shared], strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-9, atol=1e-12)
    with pytest.raises(rg.ShapeError, match="as many heads"):
        attend(q, k, v[:, :1], enable_gqa=True)
    with pytest.raises(rg.ShapeError, match=r"\(4, 5, 7\), does not broadcast to \(3, 6, 5, 7\)"):
        attend(q, k, v, np.ones((4, 5, 7), bool), enable_gqa=True)


def test_keys_of_no_elements_are_all_alike() -> None:
    """As PyTorch has it; the factor `1 / sqrt(0)` was an error."""
    q, v = rg.ones((1, 3, 0)), rg.asarray([[[1.0], [2.0], [6.0]]])
    with rg.backend("reference"):
        assert F.scaled_dot_product_attention(q, q, v).flatten().tolist() == [3, 3, 3]
        assert F.scaled_dot_product_attention(q, q, q).shape == (1, 3, 0)
