"""Losses: values by hand, extreme inputs, what does not fit."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError
from tests.nn.functional.torch_cases import Case, compare, normal, uniform

L, F = nn.losses, nn.functional
rng = np.random.default_rng(3)
X, T = rng.normal(size=(2, 5, 4))


def grad(f, x):
    return rg.grad(lambda x: f(x).sum())(x).numpy()


def test_regression_by_hand():
    d = np.abs(X - T)
    assert L.mse_loss(X, T).item() == pytest.approx((d**2).mean())
    assert L.mse_loss(X, T, reduction="sum").item() == pytest.approx((d**2).sum())
    assert L.mse_loss(X, T, reduction="none").shape == X.shape
    assert L.l1_loss(X, T).item() == pytest.approx(d.mean())
    huber = np.where(d <= 0.7, d**2 / 2, 0.7 * (d - 0.35))
    assert L.huber_loss(X, T, delta=0.7).item() == pytest.approx(huber.mean())
    assert L.smooth_l1_loss(X, T, beta=0.7).item() == pytest.approx((huber / 0.7).mean())
    assert L.smooth_l1_loss(X, T, beta=0).item() == pytest.approx(d.mean())
    signs = np.sign(T)
    hinge = np.maximum(0, 1 - signs * X)
    assert L.hinge_loss(X, signs).item() == pytest.approx(hinge.mean())
    assert L.hinge_loss(X, signs, squared=True).item() == pytest.approx((hinge**2).mean())


def test_huber_far_out():
    x = np.array([1e300, -1e300, 0.0])
    assert L.huber_loss(x, np.zeros(3), "none").tolist() == [1e300, 1e300, 0.0]
    assert grad(lambda x: L.huber_loss(x, np.zeros(3), "none"), x).tolist() == [1, -1, 0]


def test_cross_entropy_at_extreme_logits():
    x = np.array([[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4]])
    loss = L.cross_entropy(x, [0, 0], reduction="none")
    assert loss.tolist() == [0.0, 2e4]
    g = grad(lambda x: L.cross_entropy(x, [0, 0], reduction="none"), x)
    assert g.tolist() == [[0, 0, 0], [-1, 0, 1]]


def test_cross_entropy_with_impossible_classes():
    x = np.array([[0.0, -np.inf, 1.0]])
    expected = math.log(1 + math.e)
    assert L.cross_entropy(x, [0]).item() == pytest.approx(expected)
    assert np.isfinite(grad(lambda x: L.cross_entropy(x, [0]), x)).all()
    p = np.array([[0.5, 0.0, 0.5]])
    assert L.cross_entropy(x, p).item() == pytest.approx(expected - 0.5)


def test_ignored_targets_count_for_nothing():
    x = np.array(X)
    t = np.array([0, -100, 3, -100, 1])
    x[1] = np.nan
    loss = L.cross_entropy(x, t)
    assert loss.item() == pytest.approx(L.cross_entropy(X[[0, 2, 4]], t[[0, 2, 4]]).item())
    assert (L.cross_entropy(X, t, reduction="none").numpy()[[1, 3]] == 0).all()
    assert (grad(lambda x: L.cross_entropy(x, t), X)[[1, 3]] == 0).all()
    same = L.cross_entropy(X, np.where(t < 0, 7, t), ignore_index=7)
    assert same.item() == pytest.approx(L.cross_entropy(X, t).item())
    assert math.isnan(L.cross_entropy(X, np.full(5, -100)).item())


def test_probabilities_and_indices_agree():
    t = np.array([0, 2, 3, 1, 1])
    w = np.array([1.0, 2.0, 0.5, 3.0])
    for kwargs in ({}, {"label_smoothing": 0.2}, {"weight": w, "reduction": "sum"}):
        a = L.cross_entropy(X, t, **kwargs)
        b = L.cross_entropy(X, np.eye(4)[t], **kwargs)
        assert a.item() == pytest.approx(b.item())
    a = L.cross_entropy(X.T[None], t[None] % 4, reduction="none")
    assert a.shape == (1, 5)
    assert L.cross_entropy(X[0], 2).item() == pytest.approx(L.cross_entropy(X[:1], [2]).item())


def test_an_index_out_of_range_is_an_error():
    for t in ([4], [-1]):
        with pytest.raises(rg.IndexRangeError):
            L.cross_entropy(X[:1], t).item()


def test_binary_losses_in_the_tails():
    x = np.array([1000.0, -1000.0, 1000.0, -1000.0])
    t = np.array([1.0, 0.0, 0.0, 1.0])
    f = L.binary_cross_entropy_with_logits
    assert f(x, t, reduction="none").tolist() == [0, 0, 1000, 1000]
    assert grad(lambda x: f(x, t, reduction="none"), x).tolist() == [0, 0, 1, -1]
    p = np.array([1.0, 0.0, 0.0, 1.0])
    assert L.binary_cross_entropy(p, p, reduction="none").tolist() == [0, 0, 0, 0]
    worst = L.binary_cross_entropy(np.array([0.0, 1.0]), np.array([1.0, 0.0]), reduction="none")
    assert worst.tolist() == [100, 100]
    for q in (p, 1 - p):
        assert np.isfinite(grad(lambda q: L.binary_cross_entropy(q, t, reduction="none"), q)).all()


def test_divergence_with_zeros():
    q = np.log(np.array([[0.5, 0.5], [1.0, 1e-300]]))
    p = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert L.kl_div(q, p, reduction="batchmean").item() == pytest.approx(math.log(2) / 2)
    infinite = np.array([[0.0, -np.inf]])
    assert L.kl_div(infinite, p[:1], reduction="sum").item() == 0
    assert L.kl_div(q, np.log(p + 1e-9), log_target=True).item() == pytest.approx(
        L.kl_div(q, p + 1e-9).item()
    )
    assert np.isfinite(grad(lambda q: L.kl_div(q, p), q)).all()
    assert np.isfinite(grad(lambda p: L.kl_div(q, p), p)).all()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: L.mse_loss(X, T[:1]), rg.ShapeError),
        (lambda: L.mse_loss(X, T, reduction="average"), rg.OptionError),
        (lambda: L.huber_loss(X, T, delta=0), rg.OptionError),
        (lambda: L.huber_loss(X, T, weight=X[:1]), rg.ShapeError),
        (lambda: L.l1_loss(X, T, weight=1.0), rg.ShapeError),
        (lambda: L.cross_entropy(X, [0, 1]), rg.ShapeError),
        (lambda: L.cross_entropy(X, X[:, :3]), rg.ShapeError),
        (lambda: L.cross_entropy(X, [True] * 5), rg.DTypeError),
        (lambda: L.cross_entropy(X, [0] * 5, weight=[1.0, 2.0]), rg.ShapeError),
        (lambda: L.cross_entropy(X, [0] * 5, label_smoothing=2), rg.OptionError),
        (lambda: L.cross_entropy(X, [0] * 5, reduction="x"), rg.OptionError),
        (lambda: L.cross_entropy(1.0, 0), rg.ShapeError),
        (lambda: L.nll_loss(X, [0.0] * 5), rg.DTypeError),
        (lambda: L.kl_div(1.0, 1.0, reduction="batchmean"), rg.ShapeError),
    ],
)
def test_what_does_not_fit(call, error):
    with pytest.raises(error):
        call()


A, B, C = normal(4, 5), normal(4, 5, seed=2), normal(4, 5, seed=3)
AGAINST_TORCH: dict[str, Case] = {
    **{
        f"{name} {reduction}": (
            lambda m, a, b, w, name=name, reduction=reduction: getattr(m, name)(
                a, b, reduction=reduction, weight=w
            ),
            (A, B, np.abs(C)),
        )
        for name in ("mse_loss", "l1_loss", "huber_loss")
        for reduction in ("mean", "sum", "none")
    },
    "huber": (lambda m, a, t: m.huber_loss(a, t, delta=0.6), (A, B)),
    "smooth_l1": (lambda m, a, t: m.smooth_l1_loss(a, t, beta=0.4), (A, B)),
    "cross entropy": (
        lambda m, a, t: m.cross_entropy(a, t, ignore_index=2, label_smoothing=0.1),
        (A, np.array([0, 4, 2, 1])),
    ),
    **{
        f"smoothed cross entropy with weights {reduction}": (
            lambda m, a, t, reduction=reduction: m.cross_entropy(
                a,
                t,
                weight=abs(a.detach()[0]),  # any five numbers of the library at hand
                ignore_index=2,
                label_smoothing=0.3,
                reduction=reduction,
            ),
            (A, np.array([0, 4, 2, 1])),
        )
        for reduction in ("mean", "sum", "none")
    },
    "smoothed cross entropy of probabilities with weights": (
        lambda m, a, w, t: m.cross_entropy(a, t, weight=w, label_smoothing=0.3),
        (A, uniform(5, low=0.1, high=2.0), uniform(4, 5)),
    ),
    "cross entropy of images": (
        lambda m, a, t: m.cross_entropy(a, t),
        (normal(2, 3, 4, 2), np.arange(16).reshape(2, 4, 2) % 3),
    ),
    "kl_div": (lambda m, a, t: m.kl_div(a, t, log_target=True, reduction="batchmean"), (A, B)),
    "bce": (
        lambda m, a, t: m.binary_cross_entropy(a, t),
        (uniform(4, 5, low=0.1, high=0.9), uniform(4, 5)),
    ),
    "l1": (lambda m, a, t: m.l1_loss(a, t), (A, B)),
    "mse": (lambda m, a, t: m.mse_loss(a, t), (A, B)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", AGAINST_TORCH)
def test_as_in_torch(name: str) -> None:
    f, arrays = AGAINST_TORCH[name]
    compare(f, arrays, name)


# -- distillation --------------------------------------------------------------------------------
def _log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_distillation_by_hand(temperature):
    p, q = (_log_softmax(z / temperature) for z in (T, X))
    each = temperature**2 * (np.exp(p) * (p - q)).sum(axis=1)
    found = L.distillation_loss(X, T, temperature=temperature, reduction="none")
    np.testing.assert_allclose(found.numpy(), each, rtol=1e-12)
    labels = np.array([0, 3, 1, 2, 3])
    mixed = L.distillation_loss(X, T, labels, temperature, 0.3)
    hard = -_log_softmax(X)[np.arange(5), labels].mean()
    assert mixed.item() == pytest.approx(0.3 * each.mean() + 0.7 * hard)
    assert rg.gradcheck(lambda x: L.distillation_loss(x, T, labels, temperature), rg.tensor(X))
    module = nn.DistillationLoss(temperature, 0.3)
    assert module(X, T, labels).item() == mixed.item()


def test_distillation_of_impossible_classes_and_refusals():
    teacher = np.array([[0.0, -np.inf]])
    assert L.distillation_loss([[0.0, 0.0]], teacher, temperature=1.0).item() == pytest.approx(
        math.log(2)
    )
    with pytest.raises(OptionError, match="temperature is positive"):
        L.distillation_loss(X, T, temperature=0)
    with pytest.raises(OptionError, match="alpha"):
        L.distillation_loss(X, T, alpha=2)


@pytest.mark.torch
def test_distillation_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    f = torch.nn.functional
    x = torch.tensor(X, requires_grad=True)
    log_p, log_q = (f.log_softmax(z / 2.5, 1) for z in (torch.tensor(T), x))
    expected = 6.25 * f.kl_div(log_q, log_p, reduction="batchmean", log_target=True)
    expected.backward()
    y = rg.tensor(X, requires_grad=True)
    found = L.distillation_loss(y, T, temperature=2.5)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_squared_hinge():
    signs = np.where(T > 0, 1.0, -1.0)
    expected = (np.maximum(0, 2 - signs * X) ** 2).mean()
    assert L.squared_hinge_loss(X, signs, margin=2.0).item() == pytest.approx(expected)
    assert nn.SquaredHingeLoss(margin=2.0)(X, signs).item() == pytest.approx(expected)
    assert nn.HingeLoss(margin=2.0, squared=True)(X, signs).item() == pytest.approx(expected)


LABELS = {
    "eager": lambda f, x, t: f(x, t),
    "jit": lambda f, x, t: rg.jit(f)(x, t),
    "gradient": lambda f, x, t: rg.grad(lambda x, t: f(x, t).sum())(x, t),
    "jit of gradient": lambda f, x, t: rg.jit(rg.grad(lambda x, t: f(x, t).sum()))(x, t),
    "sizes with names": lambda f, x, t: rg.jit(f, shapes={"x": "N C", "t": "N"})(x, t),
    "samples": lambda f, x, t: rg.vmap(lambda x, t: f(x[None], t[None]))(x, t),
}


@pytest.mark.parametrize("way", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_a_label_out_of_range_is_told_with_its_position(way, backend):
    def loss(x, t):
        return F.cross_entropy(x, t)

    x = rg.zeros((4, 10))
    for label, at in ((10, 1), (-1, 2), (-7, 3), (200, 0)):
        labels = np.array([-100, 3, 0, 9])
        labels[at] = label
        message = f"label {label} is out of range for 10 classes; they are 0 to 9"
        with rg.backend(backend), pytest.raises(rg.IndexRangeError, match=message) as found:
            np.asarray(way(loss, x, rg.tensor(labels)))
        position = str(found.value).partition(" (at ")[2]
        assert position.startswith(f"[{at}"), found.value


def test_positions_of_labels_of_pixels_and_small_dtypes():
    x, labels = rg.zeros((2, 200, 3, 3)), np.zeros((2, 3, 3), np.int8)
    labels[1, 2, 0] = -3
    with pytest.raises(rg.IndexRangeError, match=r"label -3 .* 200 classes.*\(at \[1, 2, 0\]\)"):
        F.cross_entropy(x, labels).item()
    for f in (F.focal_loss, F.tversky_loss, F.nll_loss):
        with pytest.raises(rg.IndexRangeError, match=r"label -3 .* 200 classes"):
            f(x, labels).item()
    with pytest.raises(
        rg.IndexRangeError, match=r"index 7 is out .* 5 embeddings.*\(at \[0, 1\]\)"
    ):
        F.embedding(rg.tensor([[0, 7]]), rg.zeros((5, 2))).numpy()
