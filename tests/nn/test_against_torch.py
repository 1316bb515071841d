"""Layers and losses against PyTorch in float64: values and gradients, from the same state."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytestmark = pytest.mark.torch
T = torch.nn.functional
F = nn.functional
rng = np.random.default_rng(4)
X = rng.normal(size=(2, 5, 6))
CAUSAL = np.tril(np.ones((5, 5), bool))

LAYERS: dict[str, Any] = {
    "linear": (lambda: nn.Linear(6, 3), lambda: torch.nn.Linear(6, 3)),
    "layer norm": (lambda: nn.LayerNorm(6), lambda: torch.nn.LayerNorm(6)),
    "layer norm of two axes": (lambda: nn.LayerNorm((5, 6)), lambda: torch.nn.LayerNorm((5, 6))),
    "rms norm": (lambda: nn.RMSNorm(6), lambda: torch.nn.RMSNorm(6)),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU("tanh"), nn.Linear(8, 2), nn.SiLU()),
        lambda: torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.GELU("tanh"), torch.nn.Linear(8, 2), torch.nn.SiLU()
        ),
    ),
}


def compare(f, g, ours, theirs, *arrays):
    """Equal values, equal gradients of a weighted sum of them."""
    xs = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = g(theirs, *xs)
    weights = rng.normal(size=tuple(expected.shape))
    (expected * torch.tensor(weights)).sum().backward()
    ys: list[Any] = [rg.tensor(a, requires_grad=True) for a in arrays]
    found = f(ours, *ys)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    (found * weights).sum().backward()
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-9, atol=1e-12)
    if ours is not None:
        given = {n: p.grad.numpy() for n, p in theirs.named_parameters()}
        for name, p in ours.named_parameters():
            np.testing.assert_allclose(p.grad.numpy(), given[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    ours, theirs = (make() for make in LAYERS[name])
    ours, theirs = ours.to(rg.float64), theirs.double()
    for p in theirs.parameters():
        torch.nn.init.normal_(p)
    ours.load_state_dict(theirs.state_dict())
    assert set(ours.state_dict()) == set(theirs.state_dict())
    compare(lambda m, x: m(x), lambda m, x: m(x), ours, theirs, X)


@pytest.mark.parametrize("kind", ["plain", "causal", "other"])
def test_attention(kind):
    theirs = torch.nn.MultiheadAttention(6, 3, batch_first=True).double()
    ours = nn.MultiHeadAttention(6, 3, causal=kind == "causal").to(rg.float64)
    ours.load_state_dict(theirs.state_dict())
    if kind == "other":
        other = rng.normal(size=(2, 4, 6))
        f = lambda m, x, y: m(x, y)
        compare(f, lambda m, x, y: m(x, y, y)[0], ours, theirs, X, other)
        return
    mask = torch.tensor(~CAUSAL) if kind == "causal" else None
    compare(lambda m, x: m(x), lambda m, x: m(x, x, x, attn_mask=mask)[0], ours, theirs, X)


@pytest.mark.parametrize("name", ["MultiHeadAttention", "MultiheadAttention"])
@pytest.mark.parametrize("given", [["key_padding_mask"], ["attn_mask"], None])
def test_masks_of_attention(name, given):
    """Boolean masks are true where a query must not look, in both layers."""
    theirs = torch.nn.MultiheadAttention(6, 3, batch_first=True).double()
    options = {"batch_first": True} if name == "MultiheadAttention" else {}
    ours = getattr(nn, name)(6, 3, **options).to(rg.float64)
    ours.load_state_dict(theirs.state_dict())
    padding = np.array([[False, False, True, False, True], [False, True, False, False, False]])
    masks = {"key_padding_mask": padding, "attn_mask": ~CAUSAL}
    masks = {n: masks[n] for n in given or masks}

    def own(m, x):
        y = m(x, x, x, **masks)
        return y[0] if isinstance(y, tuple) else y

    other = {n: torch.tensor(m) for n, m in masks.items()}
    compare(own, lambda m, x: m(x, x, x, **other)[0], ours, theirs, X)


def test_default_values_are_in_the_same_range():
    pairs = [
        (nn.Linear(50, 60), torch.nn.Linear(50, 60)),
        (nn.Embedding(50, 60), torch.nn.Embedding(50, 60)),
        (nn.MultiHeadAttention(64, 4), torch.nn.MultiheadAttention(64, 4)),
        (nn.LayerNorm(6), torch.nn.LayerNorm(6)),
    ]
    for ours, theirs in pairs:
        given = dict(theirs.named_parameters())
        assert set(given) == {name for name, _ in ours.named_parameters()}
        for name, p in ours.named_parameters():
            q = given[name].detach().numpy()
            assert p.shape == q.shape
            assert p.numpy().std() == pytest.approx(q.std(), rel=0.3), name


LABELS = np.array([0, 3, 2, -100, 1])
LOGITS = rng.normal(size=(5, 4)) * 3
WEIGHT = np.array([1.0, 0.5, 2.0, 3.0])
TARGET = rng.normal(size=(5, 4))
PROBABILITY = rng.random(size=(5, 4))
SIMPLEX = PROBABILITY / PROBABILITY.sum(1, keepdims=True)
IMAGE = rng.normal(size=(2, 4, 3, 3))
PIXELS = rng.integers(0, 4, size=(2, 3, 3))

LOSSES = [
    ("cross_entropy", LOGITS, LABELS, {}),
    ("cross_entropy", LOGITS, LABELS, {"weight": WEIGHT}),
    ("cross_entropy", LOGITS, LABELS, {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("cross_entropy", LOGITS, LABELS, {"label_smoothing": 0.1, "reduction": "sum"}),
    ("cross_entropy", LOGITS, LABELS, {"weight": WEIGHT, "reduction": "none"}),
    ("cross_entropy", LOGITS, LABELS, {"ignore_index": 3, "reduction": "none"}),
    ("cross_entropy", LOGITS, SIMPLEX, {"weight": WEIGHT, "label_smoothing": 0.3}),
    ("cross_entropy", LOGITS, SIMPLEX, {"reduction": "none"}),
    ("cross_entropy", IMAGE, PIXELS, {"weight": WEIGHT}),
    ("cross_entropy", IMAGE, PIXELS, {"label_smoothing": 0.1}),
    ("cross_entropy", LOGITS[0], np.array(2), {}),
    ("nll_loss", LOGITS, LABELS, {"weight": WEIGHT}),
    ("nll_loss", IMAGE, PIXELS, {"reduction": "none"}),
    ("mse_loss", LOGITS, TARGET, {}),
    ("l1_loss", LOGITS, TARGET, {"reduction": "sum"}),
    ("smooth_l1_loss", LOGITS, TARGET, {"beta": 0.5}),
    ("huber_loss", LOGITS, TARGET, {"delta": 0.5}),
    ("binary_cross_entropy", PROBABILITY, SIMPLEX, {"weight": WEIGHT}),
    ("binary_cross_entropy_with_logits", LOGITS, SIMPLEX, {}),
    ("binary_cross_entropy_with_logits", LOGITS * 20, SIMPLEX, {"pos_weight": WEIGHT}),
    ("kl_div", LOGITS, SIMPLEX, {"reduction": "batchmean"}),
    ("kl_div", LOGITS, TARGET, {"log_target": True, "reduction": "sum"}),
]


@pytest.mark.parametrize(("name", "x", "t", "options"), LOSSES)
def test_losses(name, x, t, options):
    if options.get("ignore_index") == 3:
        t = np.where(t == -100, 3, t)
    given = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    compare(
        lambda _, x: getattr(F, name)(x, t, **options),
        lambda _, x: getattr(T, name)(x, torch.tensor(t), **given),
        None, None, x,
    )  # fmt: skip


def test_attention_function():
    q, k, v = rng.normal(size=(3, 2, 5, 6))
    mask = rng.normal(size=(5, 5))
    for ours, theirs in [
        ({}, {}),
        ({"is_causal": True}, {"is_causal": True}),
        ({"attn_mask": mask, "scale": 0.1}, {"attn_mask": torch.tensor(mask), "scale": 0.1}),
        ({"attn_mask": CAUSAL}, {"attn_mask": torch.tensor(CAUSAL)}),
    ]:
        compare(
            lambda _, *a, kw=ours: F.scaled_dot_product_attention(*a, **kw),
            lambda _, *a, kw=theirs: T.scaled_dot_product_attention(*a, **kw),
            None, None, q, k, v,
        )  # fmt: skip


def test_embedding():
    index = np.array([[1, 2], [3, 1]])
    w = rng.normal(size=(5, 3))
    compare(
        lambda _, w: F.embedding(index, w, padding_idx=3),
        lambda _, w: T.embedding(torch.tensor(index), w, padding_idx=3),
        None, None, w,
    )  # fmt: skip
