"""What the training parts of rustyasg, GRAPHEME and TorchLean offer is here, and works: a row of
each, briefly. How well is tested where each thing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import data, metrics, nn, optim
from retrograd.nn import functional as F

G = rg.random.Generator(0)
X: Any = rg.tensor(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))
IMAGE: Any = rg.tensor(np.random.default_rng(0).normal(size=(2, 4, 8, 8)).astype(np.float32))
TOKENS: Any = rg.tensor([[1, 2, 3], [3, 0, 1]])
SIGNS: Any = rg.tensor([[1.0, -1.0, 1.0, 1.0, -1.0, 1.0]] * 4)
LABELS: Any = rg.tensor([0, 5, 2, 2])


@pytest.fixture(autouse=True)
def reference() -> Any:
    with rg.backend("reference"):
        yield


def block(width: int) -> Any:
    return nn.TransformerEncoderLayer(width, 2, 16, 0.0, batch_first=True, generator=G)


LAYERS: dict[str, tuple[Callable[[], Any], Any, tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(6, 3, generator=G), X, (4, 3)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, groups=2, dilation=2, generator=G), IMAGE, (2, 6, 4, 4)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 2, 2, generator=G), IMAGE, (2, 2, 16, 16)),
    "Embedding": (lambda: nn.Embedding(4, 5, generator=G), TOKENS, (2, 3, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(6), X, (4, 6)),
    "BatchNorm": (lambda: nn.BatchNorm2d(4), IMAGE, (2, 4, 8, 8)),
    "Dropout": (lambda: nn.Dropout(0.5, generator=G), X, (4, 6)),
    "SpatialDropout": (lambda: nn.SpatialDropout2D(0.5, generator=G), IMAGE, (2, 4, 8, 8)),
    "max pool": (lambda: nn.MaxPool2d(2), IMAGE, (2, 4, 4, 4)),
    "average pool": (lambda: nn.AvgPool2d(2, padding=1), IMAGE, (2, 4, 5, 5)),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(3), IMAGE, (2, 4, 3, 3)),
    "FeedForward": (lambda: nn.FeedForward(6, 12, generator=G), X, (4, 6)),
    "TransformerBlock": (lambda: block(6), X[None], (1, 4, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, x, shape = LAYERS[name]
    layer = make()
    y = layer(x)
    assert y.shape == shape
    learning = list(layer.parameters())
    if learning:
        (y * y).sum().backward()
    assert all(p.grad is not None for p in learning)


LOSSES: dict[str, Callable[[], Any]] = {
    "mse": lambda: F.mse_loss(X, 2 * X), "l1": lambda: F.l1_loss(X, 2 * X),
    "smooth l1": lambda: F.smooth_l1_loss(X, 2 * X), "huber": lambda: F.huber_loss(X, 2 * X),
    "cross-entropy": lambda: F.cross_entropy(X, LABELS, label_smoothing=0.1),
    "bce": lambda: F.binary_cross_entropy(rg.sigmoid(X), rg.sigmoid(-X)),
    "bce with logits": lambda: F.binary_cross_entropy_with_logits(X, rg.sigmoid(-X)),
    "kl": lambda: F.kl_div(rg.log_softmax(X, axis=1), rg.softmax(-X, axis=1)),
    "nll": lambda: F.nll_loss(rg.log_softmax(X, axis=1), LABELS),
    "hinge": lambda: F.hinge_loss(X, SIGNS),
    "squared hinge": lambda: F.squared_hinge_loss(X, SIGNS),
    "focal": lambda: F.focal_loss(X, LABELS),
    "cosine embedding": lambda: F.cosine_embedding_loss(X, X[::-1], rg.ones(4)),
    "triplet": lambda: F.triplet_margin_loss(X, X[::-1], 2 * X),
    "margin ranking": lambda: F.margin_ranking_loss(X[0], X[1], rg.ones(6)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    assert 0 < LOSSES[name]().item() < 100


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda w: optim.SGD(w, lr=0.1, momentum=0.5, nesterov=True, weight_decay=1e-4),
    "Adam": lambda w: optim.Adam(w, lr=0.1), "AdamW": lambda w: optim.AdamW(w, lr=0.1),
    "RMSprop": lambda w: optim.RMSprop(w, lr=0.1), "Adagrad": lambda w: optim.Adagrad(w, lr=0.5),
    "Adadelta": lambda w: optim.Adadelta(w, lr=30.0), "Muon": lambda w: optim.Muon(w, lr=0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_descend_and_are_saved(name: str) -> None:
    w = rg.tensor(np.array([[3.0, -2.0], [1.0, 4.0]]), requires_grad=True)
    opt = OPTIMIZERS[name]([w])
    for _ in range(40):
        opt.zero_grad()
        (w * w).sum().backward()
        optim.clip_grad_norm([w], 5.0)
        optim.clip_grad_value([w], 3.0)
        opt.step()
    assert (w * w).sum().item() < 15
    other = OPTIMIZERS[name]([w])
    other.load_state_dict(opt.state_dict())
    assert str(other.state_dict()) == str(opt.state_dict())


def test_schedules() -> None:
    s = optim.schedules
    steps = [0, 5, 10, 20]
    assert [s.step(1.0, 10, 0.5)(i) for i in steps] == [1, 1, 0.5, 0.25]
    np.testing.assert_allclose([s.exponential(1.0, 0.9)(i) for i in steps], 0.9 ** np.array(steps))
    rates = [s.cosine(1.0, 20, warmup=10)(i) for i in steps]
    assert rates[0] < rates[1] < rates[2] == 1 > rates[3]
    assert [s.linear(1.0, 20)(i) for i in steps] == [1, 0.75, 0.5, 0]


@pytest.mark.parametrize(
    "name", ["zeros_", "ones_", "uniform_", "normal_", "xavier_normal_", "kaiming_uniform_"]
)
def test_initializers(name: str) -> None:
    w = nn.Parameter(np.full((50, 50), 7.0))
    getattr(nn.init, name)(w)
    assert abs(w.detach().numpy().mean() - float(name == "ones_")) < 0.6


def test_metrics_averages_and_early_stopping() -> None:
    scores, labels = X.numpy(), LABELS.numpy()
    assert metrics.accuracy(scores.argmax(1), labels).item() == metrics.accuracy(X, LABELS).item()
    assert metrics.top_k_accuracy(X, LABELS, k=6).item() == 1
    assert np.asarray(metrics.confusion_matrix(labels, labels)).sum() == 4
    assert metrics.r2(X, X).item() == 1
    running = metrics.RunningStatistics()
    running.update(X)
    np.testing.assert_allclose(running.compute()["mean"], scores.mean(), rtol=1e-6)
    model = nn.Linear(6, 1, generator=G)
    average = optim.EMA(model, decay=0.5)
    average.update(model)
    rule = rg.train.EarlyStopping(patience=1)
    assert rule.patience == 1


def test_data() -> None:
    whole = data.ArrayDataset(np.arange(10.0), np.arange(10))
    train, rest = data.random_split(whole, [7, 3], seed=0)
    loader = data.DataLoader(train, batch_size=3, sampler=data.RandomSampler(train, seed=0))
    seen = [y for _, batch in loader for y in batch.tolist()]
    assert sorted(seen + [int(rest[i][1]) for i in range(3)]) == list(range(10))


def test_files(tmp_path: Path) -> None:
    manager = rg.io.CheckpointManager(tmp_path, keep=2)
    model = nn.Linear(2, 1, generator=G)
    for step in range(4):
        manager.save(step, metric=float(step != 1), model=model)
    assert [rg.io.manager.step_of(p) for p in manager.paths()] == [1, 2, 3]
    assert manager.best is not None
    assert manager.latest is not None
    rg.io.save_safetensors(tmp_path / "w.safetensors", model.state_dict())
    model.load_state_dict(rg.io.load_safetensors(tmp_path / "w.safetensors"))


def test_examples() -> None:
    root = Path(__file__).parents[1] / "examples"
    there = {p.stem for p in root.glob("*.py")}
    assert there >= {"xor", "regression", "digits", "transformer", "moons", "microgpt", "gcn"}
