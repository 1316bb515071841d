"""Attention: masks of every kind, heads, other sequences."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError

F = nn.functional
rng = np.random.default_rng(2)
Q, K, V = rng.normal(size=(3, 2, 3, 5, 4))  # batch, heads, length, width
CAUSAL = np.tril(np.ones((5, 5), bool))


def reference(q, k, v, allowed=None, scale=None):
    s = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if allowed is not None:
        s = np.where(allowed, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def test_plain_causal_and_masked():
    attend = F.scaled_dot_product_attention
    close = np.testing.assert_allclose
    close(attend(Q, K, V).numpy(), reference(Q, K, V))
    close(attend(Q, K, V, scale=0.3).numpy(), reference(Q, K, V, scale=0.3))
    close(attend(Q, K, V, is_causal=True).numpy(), reference(Q, K, V, CAUSAL))
    close(attend(Q, K, V, attn_mask=CAUSAL).numpy(), reference(Q, K, V, CAUSAL))
    added = np.where(CAUSAL, 0.0, -np.inf)
    close(attend(Q, K, V, attn_mask=added).numpy(), reference(Q, K, V, CAUSAL))
    mask = rng.random((2, 1, 5, 5)) < 0.7
    mask[..., 0] = True
    both = mask & CAUSAL
    close(attend(Q, K, V, attn_mask=mask, is_causal=True).numpy(), reference(Q, K, V, both))
    added = rng.normal(size=(5, 5))
    s = Q @ np.swapaxes(K, -1, -2) / 2 + np.where(CAUSAL, added, -np.inf)
    e = np.exp(s)
    found = attend(Q, K, V, attn_mask=added, is_causal=True).numpy()
    close(found, e / e.sum(-1, keepdims=True) @ V)


def test_the_future_has_no_influence():
    layer = nn.MultiHeadAttention(8, 2, causal=True).to(rg.float64)
    x = rng.normal(size=(2, 6, 8))
    slope = rg.grad(lambda x: layer(x)[:, 2].sum())(x).numpy()
    assert (slope[:, 3:] == 0).all()
    assert (slope[:, :3] != 0).all()
    changed = x.copy()
    changed[:, 3:] += 100
    np.testing.assert_array_equal(layer(x).numpy()[:, :3], layer(changed).numpy()[:, :3])


def test_a_query_without_keys_gives_zero_and_finite_gradients():
    mask = CAUSAL.copy()
    mask[2] = False
    y = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    assert (y.numpy()[..., 2, :] == 0).all()
    f = lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, attn_mask=mask) ** 2).sum()
    for g in rg.grad(f, argnums=(0, 1, 2))(Q, K, V):
        assert np.isfinite(g.numpy()).all()


def test_extreme_scores():
    y = F.scaled_dot_product_attention(Q * 1e4, K * 1e4, V, is_causal=True)
    assert np.isfinite(y.numpy()).all()


def test_heads_against_a_loop():
    layer = nn.MultiHeadAttention(6, 3).to(rg.float64)
    x = rng.normal(size=(2, 4, 6))
    w, b = layer.in_proj_weight.numpy(), rng.normal(size=18)
    layer.in_proj_bias = nn.Parameter(b)
    q, k, v = np.split(x @ w.T + b, 3, axis=-1)
    heads = [reference(*(a[..., 2 * i : 2 * i + 2] for a in (q, k, v))) for i in range(3)]
    expected = np.concatenate(heads, -1) @ layer.out_proj.weight.numpy().T
    np.testing.assert_allclose(layer(x).numpy(), expected)
    np.testing.assert_allclose(layer(x[0]).numpy(), expected[0])
    np.testing.assert_allclose(layer(x, x, x).numpy(), expected)


def test_other_sequences_and_padding():
    layer = nn.MultiHeadAttention(6, 2).to(rg.float64)
    x, y = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 5, 6))
    padding = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]], bool)
    padded = layer(x, y, key_padding_mask=padding).numpy()
    np.testing.assert_allclose(padded[0], layer(x[0], y[0, :3]).numpy())
    np.testing.assert_allclose(padded[1], layer(x[1], y[1]).numpy())
    added = np.zeros((4, 5))
    with_mask = layer(x, y, attn_mask=added, key_padding_mask=padding).numpy()
    np.testing.assert_allclose(with_mask, padded)


# Names of the masks that are given; both layers read them as PyTorch's, where true hides.
MASKS = {
    "none": (),
    "padding": ("key_padding_mask",),
    "pairs": ("attn_mask",),
    "both": ("key_padding_mask", "attn_mask"),
    "added": ("added",),
    "added and padding": ("added", "key_padding_mask"),
    "two added": ("added", "added padding"),
}


def masks(given):
    """The masks of those names for batch 2, 4 queries and 5 keys: as arguments, and which pairs
    remain and what is added to their scores, `[2, 1, 4, 5]`."""
    draws = np.random.default_rng(7)
    padding = np.array([[0, 0, 0, 1, 1], [0, 1, 0, 0, 0]], bool)
    pairs = np.triu(np.ones((4, 5), bool), 2)
    scores, shifts = draws.normal(size=(4, 5)), draws.normal(size=(2, 5))
    every: dict[str, tuple[str, np.ndarray, Any, Any]] = {
        "key_padding_mask": ("key_padding_mask", padding, ~padding[:, None, None], 0.0),
        "attn_mask": ("attn_mask", pairs, ~pairs, 0.0),
        "added": ("attn_mask", scores, True, scores),
        "added padding": ("key_padding_mask", shifts, True, shifts[:, None, None]),
    }
    chosen = [every[name] for name in given]
    allowed, added = np.ones((2, 1, 4, 5), bool), np.zeros((2, 1, 4, 5))
    for _, _, there, shift in chosen:
        allowed, added = allowed & there, added + shift
    return {name: mask for name, mask, _, _ in chosen}, allowed, added


@pytest.mark.parametrize("given", MASKS.values(), ids=MASKS)
def test_both_layers_read_masks_alike(given):
    """By hand in NumPy, from the same parameters."""
    short, full = nn.MultiHeadAttention(6, 2), nn.MultiheadAttention(6, 2, batch_first=True)
    short, full = short.to(rg.float64), full.to(rg.float64)
    full.load_state_dict(short.state_dict())
    x, y = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 5, 6))
    arguments, allowed, added = masks(given)
    w = np.split(short.in_proj_weight.numpy(), 3)
    q, k, v = (
        np.swapaxes((a @ b.T).reshape(2, -1, 2, 3), 1, 2) for a, b in zip((x, y, y), w, strict=True)
    )
    e = np.where(allowed, np.exp(q @ np.swapaxes(k, -1, -2) / math.sqrt(3) + added), 0.0)
    shares = e / e.sum(-1, keepdims=True)
    expected = np.swapaxes(shares @ v, 1, 2).reshape(2, 4, 6) @ short.out_proj.weight.numpy().T
    np.testing.assert_allclose(short(x, y, **arguments).numpy(), expected, 1e-10, 1e-12)
    found, weights = full(x, y, y, **arguments)
    np.testing.assert_allclose(found.numpy(), expected, 1e-10, 1e-12)
    np.testing.assert_allclose(weights.numpy(), shares.mean(1), 1e-10, 1e-12)


@pytest.mark.parametrize("masked", [True, False])
def test_causal_and_a_mask_hide_what_either_hides(masked):
    layer = nn.MultiHeadAttention(6, 2, causal=True).to(rg.float64)
    hidden = np.zeros((4, 4), bool)
    hidden[3, 1] = True
    x = rng.normal(size=(2, 4, 6))
    slope = rg.grad(lambda x: layer(x, attn_mask=hidden if masked else None)[:, 3].sum())(x)
    plain = nn.MultiHeadAttention(6, 2).to(rg.float64)
    plain.load_state_dict(layer.state_dict())
    both = (hidden if masked else False) | ~np.tril(np.ones((4, 4), bool))
    expected = rg.grad(lambda x: plain(x, attn_mask=both)[:, 3].sum())(x)
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), 1e-10, 1e-12)
    assert (slope.numpy()[:, 1] == 0).all() == masked


def test_a_state_of_either_layer_fits_the_other():
    short, full = nn.MultiHeadAttention(6, 2), nn.MultiheadAttention(6, 2)
    names = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    assert list(short.state_dict()) == list(full.state_dict()) == names
    assert isinstance(short, nn.MultiheadAttention)


def test_attention_dropout():
    layer = nn.MultiHeadAttention(6, 2, dropout=0.5)
    x = rng.normal(size=(2, 4, 6)).astype(np.float32)
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())
    layer.eval()
    assert np.array_equal(layer(x).numpy(), layer(x).numpy())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.scaled_dot_product_attention(Q[..., :3], K, V), rg.ShapeError),
        (lambda: F.scaled_dot_product_attention(Q, K, V[..., :4, :]), rg.ShapeError),
        (lambda: F.scaled_dot_product_attention(Q, K, V, np.ones((4, 5), bool)), rg.ShapeError),
        (lambda: F.scaled_dot_product_attention(Q, K, V, np.ones((5, 5), int)), rg.DTypeError),
        (lambda: nn.MultiHeadAttention(8, 2)(np.ones((2, 4, 6))), rg.ShapeError),
        (lambda: nn.MultiheadAttention(8, 3), rg.ShapeError),
        (
            lambda: nn.MultiHeadAttention(6, 2)(
                np.ones((1, 4, 6)), key_padding_mask=np.ones((1, 4), int)
            ),
            rg.DTypeError,
        ),
    ],
)
def test_what_does_not_fit(call, error):
    with pytest.raises(error):
        call()


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.torch
def test_attention_masks() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = torch.nn.MultiheadAttention(8, 2).double()
    own = nn.MultiheadAttention(8, 2).to(rg.float64)
    own.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    x, causal = normal(5, 3, 8), np.triu(np.ones((5, 5), bool), 1)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    added = normal(6, 5, 5)
    for mask, pad, mean in ((causal, None, True), (causal, padding, False), (added, None, False)):
        t = torch.tensor(x)
        given = None if pad is None else torch.tensor(pad)
        want = theirs(t, t, t, given, attn_mask=torch.tensor(mask), average_attn_weights=mean)
        found = own(x, x, x, pad, attn_mask=mask, average_attn_weights=mean)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-9, 1e-11)


# -- grouped queries -----------------------------------------------------------------------------
GROUPED = np.random.default_rng(5).normal(size=(2, 7, 12))


def grouped(groups, **options):
    return nn.GroupedQueryAttention(
        12, 6, groups, dtype=rg.float64, generator=rg.random.Generator(3), **options
    )


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_grouped_queries_in_numpy(groups):
    """Head by head: query head h has the keys of group h // (heads / groups)."""
    layer = grouped(groups, bias=True)
    w = {k: v.numpy() for k, v in layer.state_dict().items()}
    q, k, v, o = (lambda x, n=n: x @ w[f"{n}_proj.weight"].T + w[f"{n}_proj.bias"] for n in "qkvo")
    qs, ks, vs = q(GROUPED), k(GROUPED), v(GROUPED)
    heads = []
    for h in range(6):
        g = h // (6 // groups)
        a, b, c = (z[..., 2 * i : 2 * i + 2] for z, i in ((qs, h), (ks, g), (vs, g)))
        scores = np.where(np.tri(7, dtype=bool), a @ b.swapaxes(1, 2) / np.sqrt(2), -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(shares / shares.sum(-1, keepdims=True) @ c)
    expected = o(np.concatenate(heads, axis=-1))
    np.testing.assert_allclose(layer(GROUPED).numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("window", [None, 0, 2])
@pytest.mark.parametrize("parts", [[1] * 7, [3, 1, 3], [7]])
def test_grouped_queries_with_a_cache(window, parts):
    layer = grouped(2, window_size=window, rotary=nn.RotaryEmbedding())
    whole = layer(GROUPED).numpy()
    for cache in (layer.make_cache(2, 9), nn.KVCache.zeros(2, 2, 7, 2, rg.float64)):
        found, at = [], 0
        for n in parts:
            y, cache = layer(GROUPED[:, at : at + n], cache=cache)
            found.append(y.numpy())
            at += n
        np.testing.assert_allclose(np.concatenate(found, 1), whole, rtol=1e-10, atol=1e-12)
    assert isinstance(layer.make_cache(2, 9), nn.KVCache if window is None else nn.SlidingKVCache)


def test_grouped_queries_with_padding_in_front():
    """A mask hides keys from a sample, whose positions begin later."""
    layer = grouped(2, rotary=nn.RotaryEmbedding())
    alone = layer(GROUPED[1:, 2:]).numpy()
    seen = np.ones((2, 1, 1, 7), bool)
    seen[1, ..., :2] = False
    positions = np.stack([np.arange(7), np.arange(7) - 2])
    y = layer(GROUPED, positions, seen).numpy()
    np.testing.assert_allclose(y[1:, 2:], alone, rtol=1e-10, atol=1e-12)
    cached, _ = layer(GROUPED, positions, seen, cache=layer.make_cache(2, 7))
    np.testing.assert_allclose(cached.numpy()[1:, 2:], alone, rtol=1e-10, atol=1e-12)
    added = np.where(seen, 0.0, -np.inf)
    cached, _ = layer(GROUPED, positions, added, cache=layer.make_cache(2, 7))
    np.testing.assert_allclose(cached.numpy()[1:, 2:], alone, rtol=1e-10, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("groups", [1, 3])
def test_grouped_queries_against_torch(groups):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    layer = grouped(groups)
    w = {k: torch.tensor(v.numpy(), requires_grad=True) for k, v in layer.state_dict().items()}
    x = torch.tensor(GROUPED)
    q, k, v = ((x @ w[f"{n}_proj.weight"].T).reshape(2, 7, -1, 2).transpose(1, 2) for n in "qkv")
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    expected = y.transpose(1, 2).reshape(2, 7, 12) @ w["o_proj.weight"].T
    expected.square().sum().backward()
    found = layer(GROUPED)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    (found * found).sum().backward()
    for name, p in layer.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), w[name].grad.numpy(), rtol=1e-8, atol=1e-12)


def test_grouped_queries_refuse():
    with pytest.raises(ShapeError, match="multiple of num_kv_heads, 4"):
        nn.GroupedQueryAttention(12, 6, 4)
    layer = grouped(2, causal=False)
    with pytest.raises(OptionError, match="causal"):
        layer(GROUPED, cache=layer.make_cache(2, 7))


def test_grouped_queries_of_nothing():
    assert grouped(2)(np.ones((2, 0, 12))).shape == (2, 0, 12)
    assert grouped(2)(np.ones((0, 3, 12))).shape == (0, 3, 12)
