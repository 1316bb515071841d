"""`rg.nn.functional` against `torch.nn.functional`: values and gradients, on odd shapes, for every
option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytestmark = pytest.mark.torch
T = torch.nn.functional
F = nn.functional
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int = 1) -> Any:
    return np.random.default_rng(seed).uniform(low, high, shape)


def compare(f: Callable[..., Any], arrays: tuple[Any, ...], name: str) -> None:
    """`f(F, *xs)` and `f(T, *xs)`: equal values, equal gradients of a weighted sum of them."""
    xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    expected = f(T, *xs)
    ys: list[Any] = [rg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    found = f(F, *ys)
    results = zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True)
    for i, (y, x) in enumerate(results):
        np.testing.assert_allclose(y.numpy(), x.detach().numpy(), 1e-9, 1e-11, err_msg=name)
        assert y.shape == tuple(x.shape)
        if i == 0 and any(x.requires_grad for x in xs) and x.requires_grad:
            weights = normal(*x.shape, seed=9)
            (x * torch.tensor(weights)).sum().backward()
            (y * weights).sum().backward()
    for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if x.requires_grad and x.grad is not None:
            g = np.zeros(y.shape) if y.grad is None else y.grad.numpy()
            message = f"{name}: gradient {k}"
            np.testing.assert_allclose(g, x.grad.numpy(), 1e-8, 1e-10, err_msg=message)


X = np.append(normal(3, 7), [[-3.0, 3.0, 0.5, -0.5, 25.0, -25.0, 6.0]], 0)
ACTIVATIONS: dict[str, Case] = {
    name: (f, (X,))
    for name, f in {
        "celu": lambda m, x: m.celu(x, 0.5),
        "elu": lambda m, x: m.elu(x, 1.3),
        "selu": lambda m, x: m.selu(x),
        "gelu": lambda m, x: m.gelu(x),
        "gelu tanh": lambda m, x: m.gelu(x, approximate="tanh"),
        "glu": lambda m, x: m.glu(x, dim=0),
        "hardshrink": lambda m, x: m.hardshrink(x, 0.4),
        "hardsigmoid": lambda m, x: m.relu6(x + 3) / 6 if m is T else m.hardsigmoid(x),
        "hardswish": lambda m, x: m.hardswish(x),
        "hardtanh": lambda m, x: m.hardtanh(x, -0.7, 1.2),
        "leaky_relu": lambda m, x: m.leaky_relu(x, 0.2),
        "logsigmoid": lambda m, x: m.logsigmoid(x),
        "mish": lambda m, x: m.mish(x),
        "relu": lambda m, x: m.relu(x),
        "relu6": lambda m, x: m.relu6(x),
        "rrelu": lambda m, x: m.rrelu(x, 0.1, 0.4),
        "sigmoid": lambda m, x: m.sigmoid(x),
        "silu": lambda m, x: m.silu(x),
        "softplus": lambda m, x: m.softplus(x),
        "softplus beta": lambda m, x: m.softplus(x, beta=2.5, threshold=3.0),
        "softshrink": lambda m, x: m.softshrink(x, 0.3),
        "softsign": lambda m, x: m.softsign(x),
        "softmax": lambda m, x: m.softmax(x, dim=0),
        "softmin": lambda m, x: m.softmin(x, dim=1),
        "log_softmax": lambda m, x: m.log_softmax(x, dim=-1),
        "tanh": lambda m, x: m.tanh(x),
        "tanhshrink": lambda m, x: m.tanhshrink(x),
        "threshold": lambda m, x: m.threshold(x, 0.1, -2.0),
    }.items()
}
ACTIVATIONS["prelu"] = (lambda m, x, w: m.prelu(x, w), (normal(2, 3, 5), normal(3)))
ACTIVATIONS["prelu one"] = (lambda m, x, w: m.prelu(x, w), (normal(2, 3, 5), normal(1)))

IMAGE = normal(2, 6, 5, 7)
C6 = normal(6, seed=2), normal(6, seed=3)
NORMALISATION: dict[str, Case] = {
    "batch_norm": (
        lambda m, x, w, b, r, v: m.batch_norm(x, r.detach(), v.detach(), w, b, eps=1e-3),
        (IMAGE, *C6, normal(6, seed=4), uniform(6, low=0.5)),
    ),
    "batch_norm in training": (
        lambda m, x, w, b: m.batch_norm(x, None, None, w, b, training=True),
        (IMAGE, *C6),
    ),
    "batch_norm of vectors": (
        lambda m, x: m.batch_norm(x, None, None, training=True),
        (normal(5, 3),),
    ),
    "group_norm": (lambda m, x, w, b: m.group_norm(x, 3, w, b), (IMAGE, *C6)),
    "group_norm plain": (lambda m, x: m.group_norm(x, 2, eps=0.1), (normal(3, 4),)),
    "instance_norm": (lambda m, x, w, b: m.instance_norm(x, weight=w, bias=b), (IMAGE, *C6)),
    "instance_norm running": (
        lambda m, x, r, v: m.instance_norm(x, r.detach(), v.detach(), use_input_stats=False),
        (IMAGE, normal(6), uniform(6, low=0.5)),
    ),
    "layer_norm": (lambda m, x, w: m.layer_norm(x, (5, 7), w), (IMAGE, normal(5, 7, seed=5))),
    "rms_norm": (lambda m, x, w: m.rms_norm(x, (7,), w), (IMAGE, normal(7))),
    "local_response_norm": (lambda m, x: m.local_response_norm(x, 4, 0.3, 0.6, 1.5), (IMAGE,)),
    "local_response_norm odd": (lambda m, x: m.local_response_norm(x, 3), (normal(2, 5, 4),)),
    "normalize": (lambda m, x: m.normalize(x), (IMAGE,)),
    "normalize p": (lambda m, x: m.normalize(x, p=3.0, dim=-1, eps=0.5), (IMAGE,)),
    "cosine_similarity": (
        lambda m, x, y: m.cosine_similarity(x, y),
        (normal(3, 5), normal(3, 5, seed=2)),
    ),
    "cosine_similarity dim": (
        lambda m, x, y: m.cosine_similarity(x, y, dim=-1, eps=0.1),
        (normal(3, 1, 5), normal(1, 4, 5, seed=2)),
    ),
    "pairwise_distance": (
        lambda m, x, y: m.pairwise_distance(x, y),
        (normal(3, 5), normal(3, 5, seed=2)),
    ),
    "pairwise_distance p": (
        lambda m, x, y: m.pairwise_distance(x, y, p=1.5, eps=1e-3, keepdim=True),
        (normal(3, 5), normal(5)),
    ),
    "pdist": (lambda m, x: m.pdist(x), (normal(5, 3),)),
    "pdist p": (lambda m, x: m.pdist(x, p=3.0), (normal(4, 3),)),
    "cdist": (
        lambda m, x, y: (torch if m is T else m).cdist(x, y),
        (normal(2, 3, 4), normal(2, 5, 4, seed=2)),
    ),
    "cdist 1": (
        lambda m, x, y: (torch if m is T else m).cdist(x, y, 1.0),
        (normal(3, 4), normal(5, 4)),
    ),
}

A, B, C = normal(4, 5), normal(4, 5, seed=2), normal(4, 5, seed=3)
SIGN = np.array([1, -1, -1, 1])
SIGNS = np.sign(C).astype(np.int64)
MULTI = np.array([[2, 0, -1, 4, 1], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0], [1, -1, 2, -1, -1]])
LOSSES: dict[str, Case] = {
    "cosine_embedding": (
        lambda m, a, b, t: m.cosine_embedding_loss(a, b, t, margin=0.1),
        (A, B, SIGN),
    ),
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
    "hinge_embedding": (lambda m, a, t: m.hinge_embedding_loss(a, t, margin=0.8), (A, SIGNS)),
    "margin_ranking": (
        lambda m, a, b, t: m.margin_ranking_loss(a, b, t, margin=0.3),
        (A, B, SIGNS),
    ),
    "soft_margin": (lambda m, a, t: m.soft_margin_loss(a, t), (A, SIGNS)),
    "triplet": (lambda m, a, b, c: m.triplet_margin_loss(a, b, c, margin=2.0), (A, B, C)),
    "triplet swap": (
        lambda m, a, b, c: m.triplet_margin_loss(a, b, c, margin=2.0, p=1.0, swap=True),
        (A, B, C),
    ),
    "triplet distance": (
        lambda m, a, b, c: m.triplet_margin_with_distance_loss(
            a, b, c, distance_function=lambda x, y: ((x - y) ** 2).sum(-1), margin=3.0
        ),
        (A, B, C),
    ),
    "poisson": (lambda m, a, t: m.poisson_nll_loss(a, t, full=True), (A, np.abs(B) * 3)),
    "poisson rate": (
        lambda m, a, t: m.poisson_nll_loss(a, t, log_input=False, eps=1e-3),
        (np.abs(A), np.abs(B)),
    ),
    "gaussian": (lambda m, a, t, v: m.gaussian_nll_loss(a, t, v, full=True), (A, B, np.abs(C))),
    "gaussian small": (
        lambda m, a, t, v: m.gaussian_nll_loss(a, t, v, eps=0.5),
        (A, B, np.abs(C[:, :1]) * 0.5),
    ),
    "gaussian flat": (
        lambda m, a, t, v: m.gaussian_nll_loss(a, t, v),
        (A, B, np.abs(C[:, 0]) + 0.1),
    ),
    "multi_margin": (
        lambda m, a, t: m.multi_margin_loss(a, t, p=2, margin=0.7),
        (A, np.array([0, 4, 2, 2])),
    ),
    "multilabel_margin": (lambda m, a, t: m.multilabel_margin_loss(a, t), (A, MULTI)),
    "multilabel_soft_margin": (
        lambda m, a, t: m.multilabel_soft_margin_loss(a, t),
        (A, (B > 0).astype(float)),
    ),
    "huber": (lambda m, a, t: m.huber_loss(a, t, delta=0.6), (A, B)),
    "smooth_l1": (lambda m, a, t: m.smooth_l1_loss(a, t, beta=0.4), (A, B)),
    "cross entropy": (
        lambda m, a, t: m.cross_entropy(a, t, ignore_index=2, label_smoothing=0.1),
        (A, np.array([0, 4, 2, 1])),
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

SPATIAL: dict[str, Case] = {
    "adaptive_max_pool1d": (lambda m, x: m.adaptive_max_pool1d(x, 3), (normal(2, 3, 8),)),
    "adaptive_max_pool2d": (
        lambda m, x: m.adaptive_max_pool2d(x, (3, None), return_indices=True),
        (IMAGE,),
    ),
    "adaptive_max_pool3d": (
        lambda m, x: m.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True),
        (normal(2, 3, 5, 4, 3),),
    ),
    "adaptive_avg_pool2d": (lambda m, x: m.adaptive_avg_pool2d(x, (3, 4)), (IMAGE,)),
    "lp_pool1d": (lambda m, x: m.lp_pool1d(x, 3.0, 2), (uniform(2, 3, 7),)),
    "lp_pool2d": (lambda m, x: m.lp_pool2d(x, 2.0, (2, 3), stride=2, ceil_mode=True), (IMAGE,)),
    "lp_pool3d": (lambda m, x: m.lp_pool3d(x, 2.0, 2), (normal(1, 2, 4, 5, 3),)),
    "unfold": (
        lambda m, x: m.unfold(x, (2, 3), dilation=2, padding=(1, 2), stride=(2, 1)),
        (IMAGE,),
    ),
    "unfold alone": (lambda m, x: m.unfold(x, 2), (normal(3, 4, 5),)),
    "fold": (
        lambda m, x: m.fold(x, (5, 7), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2)),
        (normal(2, 12, 20),),
    ),
    "fold alone": (lambda m, x: m.fold(x, 4, 2), (normal(8, 9),)),
    "pixel_shuffle": (lambda m, x: m.pixel_shuffle(x, 2), (normal(2, 8, 3, 5),)),
    "pixel_unshuffle": (lambda m, x: m.pixel_unshuffle(x, 3), (normal(2, 2, 6, 9),)),
    "channel_shuffle": (lambda m, x: m.channel_shuffle(x, 3), (IMAGE,)),
    "bilinear": (
        lambda m, a, b, w, c: m.bilinear(a, b, w, c),
        (normal(4, 2, 3), normal(4, 2, 5), normal(6, 3, 5), normal(6)),
    ),
    "upsample_nearest": (
        lambda m, x: F.upsample_nearest(x, (7, 3)) if m is F else T.interpolate(x, (7, 3)),
        (IMAGE,),
    ),
}
PADS = {
    "constant": ((1, 2, -1, 0, 0, 1), 1.5),
    "reflect": ((2, 1, 1, 3), None),
    "replicate": ((9, 1, 0, 3), None),
    "circular": ((2, 1, 5, 0), None),
}
for _mode, (_widths, _value) in PADS.items():
    SPATIAL[f"pad {_mode}"] = (
        lambda m, x, mode=_mode, p=_widths, v=_value: m.pad(x, p, mode, v),
        (IMAGE,),
    )
SPATIAL["pad negative"] = (lambda m, x: m.pad(x, (-1, 2, 1, -2), "replicate"), (IMAGE,))

EVERYTHING = {**ACTIVATIONS, **NORMALISATION, **LOSSES, **SPATIAL}


@pytest.mark.parametrize("name", EVERYTHING)
def test_as_in_torch(name: str) -> None:
    f, arrays = EVERYTHING[name]
    compare(f, arrays, name)


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize(
    "name",
    ["cosine_embedding_loss", "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss"],
)
def test_reductions(name: str, reduction: str) -> None:
    arrays = {
        "cosine_embedding_loss": (A, B, SIGN),
        "margin_ranking_loss": (A, B, SIGNS),
        "multilabel_margin_loss": (A, MULTI),
        "soft_margin_loss": (A, SIGNS),
    }[name]
    compare(lambda m, *xs: getattr(m, name)(*xs, reduction=reduction), arrays, name)


def test_weights_of_classes() -> None:
    w, t = uniform(5, seed=7), np.array([0, 4, 2, 2])
    for p in (1, 2):

        def f(m: Any, x: Any, p: int = p) -> Any:
            weight = torch.tensor(w) if m is T else w
            target = torch.tensor(t) if m is T else t
            return m.multi_margin_loss(x, target, p=p, weight=weight)

        compare(f, (A,), "multi_margin_loss")


SIZES = [
    {"size": (9, 4)},
    {"scale_factor": 2.0},
    {"scale_factor": (0.6, 1.7)},
    {"scale_factor": (0.6, 1.7), "recompute_scale_factor": True},
    {"size": (1, 1)},
    {"size": (5, 7)},
]
MODES = [
    ("nearest", None),
    ("nearest-exact", None),
    ("area", None),
    ("bilinear", False),
    ("bilinear", True),
    ("bicubic", False),
    ("bicubic", True),
]


@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize(("mode", "corners"), MODES)
def test_interpolate(mode: str, corners: bool | None, options: dict[str, Any]) -> None:
    def f(m, x):
        return m.interpolate(x, mode=mode, align_corners=corners, **options)

    compare(f, (IMAGE,), mode)


@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_with_antialias(mode: str, options: dict[str, Any]) -> None:
    compare(lambda m, x: m.interpolate(x, mode=mode, antialias=True, **options), (IMAGE,), mode)


@pytest.mark.parametrize("corners", [False, True])
def test_interpolate_one_and_three_axes(corners: bool) -> None:
    for mode, x in (("linear", normal(2, 3, 7)), ("trilinear", normal(2, 3, 4, 3, 5))):

        def f(m, x, mode=mode):
            return m.interpolate(x, scale_factor=1.6, mode=mode, align_corners=corners)

        compare(f, (x,), mode)
    compare(lambda m, x: m.interpolate(x, scale_factor=1.6), (normal(2, 3, 4, 3, 5),), "nearest")


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str, corners: bool) -> None:
    grid = uniform(2, 4, 3, 2, low=-2.7, high=2.7)

    def f(m, x, g):
        return m.grid_sample(x, g, mode, padding, corners)

    compare(f, (IMAGE, grid), mode)
    if mode != "bicubic":
        compare(f, (normal(2, 3, 4, 3, 5), uniform(2, 3, 2, 4, 3, low=-1.6, high=1.6)), mode)


@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(corners: bool) -> None:
    for theta, size in ((normal(2, 2, 3), (2, 3, 4, 5)), (normal(2, 3, 4), (2, 1, 3, 4, 2))):
        compare(lambda m, x, s=size: m.affine_grid(x, s, align_corners=corners), (theta,), "affine")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_loss(reduction: str) -> None:
    """Rows of unequal length, repeated symbols, an empty target, one that does not fit."""
    targets = np.array([[1, 1, 2, 3], [3, 0, 0, 0], [1, 1, 1, 1], [2, 3, 0, 0]])
    steps, sizes = np.array([9, 7, 5, 6]), np.array([4, 0, 4, 2])

    def f(m: Any, x: Any) -> Any:
        given = map(torch.tensor, (targets, steps, sizes)) if m is T else (targets, steps, sizes)
        return m.ctc_loss(m.log_softmax(x, dim=-1), *given, reduction=reduction, zero_infinity=True)

    compare(f, (normal(9, 4, 5),), "ctc")
    flat = np.concatenate([row[:n] for row, n in zip(targets, sizes, strict=True)])
    x = F.log_softmax(rg.tensor(normal(9, 4, 5)), dim=-1)
    a, b = (F.ctc_loss(x, t, steps, sizes, reduction=reduction).numpy() for t in (targets, flat))
    np.testing.assert_array_equal(a, b)
    alone = F.ctc_loss(x[:, 0], targets[0], [9], [4], reduction="none")
    np.testing.assert_allclose(
        alone.numpy(), F.ctc_loss(x, targets, steps, sizes, reduction="none").numpy()[0]
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str) -> None:
    table = normal(7, 3)
    for index, options in (
        (np.array([[1, 2, 2], [6, 0, 1]]), {}),
        (np.array([1, 2, 6, 0, 1]), {"offsets": np.array([0, 2, 2]), "padding_idx": 6}),
        (np.array([1, 2, 6, 0]), {"offsets": np.array([0, 2, 4]), "include_last_offset": True}),
    ):

        def f(m: Any, w: Any, index: Any = index, options: Any = options) -> Any:
            given = {k: _like(m, v) for k, v in options.items()}
            return m.embedding_bag(_like(m, index), w, mode=mode, **given)

        compare(f, (table,), mode)


def test_embedding_bag_with_weights() -> None:
    index = np.array([[1, 2, 2], [6, 0, 1]])

    def f(m, w, p):
        return m.embedding_bag(_like(m, index), w, mode="sum", per_sample_weights=p)

    compare(f, (normal(7, 3), normal(2, 3)), "weights")


def _like(m: Any, x: Any) -> Any:
    return torch.tensor(x) if m is T and isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool(rank: int) -> None:
    def f(m: Any, x: Any) -> Any:
        y, at = getattr(m, f"max_pool{rank}d")(x, 2, return_indices=True)
        return getattr(m, f"max_unpool{rank}d")(y, at, 2, output_size=x.shape[2:])

    compare(f, (normal(2, 3, *(5, 4, 7)[:rank]),), "max_unpool")


def test_running_statistics() -> None:
    x, mean, var = normal(4, 3, 5), normal(3), uniform(3)
    running = torch.tensor(mean), torch.tensor(var)
    T.batch_norm(torch.tensor(x), *running, training=True, momentum=0.3)
    for found, expected in zip(F.running_statistics(x, mean, var, 0.3), running, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-12)


def test_dtype_of_softmax() -> None:
    x = normal(3, 4)
    for name in ("softmax", "log_softmax", "softmin"):
        single = getattr(F, name)(rg.tensor(x, dtype=rg.float32), 0, dtype=rg.float64)
        right = getattr(T, name)(torch.tensor(x, dtype=torch.float32), 0, dtype=torch.float64)
        assert single.dtype == rg.float64
        np.testing.assert_allclose(single.numpy(), right.numpy(), rtol=1e-14)


def test_heads_of_queries_that_share_keys() -> None:
    arrays = normal(2, 6, 4, 5), normal(2, 3, 7, 5, seed=1), normal(2, 3, 7, 2, seed=2)
    f = lambda m, q, k, v: m.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    compare(f, arrays, "enable_gqa")
    with pytest.raises(rg.ShapeError, match="multiple"):
        f(F, arrays[0][:, :5], *arrays[1:])


def test_one_hot_without_classes() -> None:
    index = np.array([[0, 2], [3, 1]])
    np.testing.assert_array_equal(F.one_hot(index).numpy(), T.one_hot(torch.tensor(index)).numpy())
    assert F.one_hot(index, 6).shape == (2, 2, 6)
    with pytest.raises(rg.ShapeError, match="num_classes"):
        F.one_hot(np.zeros(0, np.int64))
    with pytest.raises(rg.TraceError):
        rg.jit(F.one_hot)(index)


def test_every_function_of_torch() -> None:
    """All public names of torch.nn.functional are here, but for those listed, with our reason."""
    absent = {
        # deprecated, or of no use outside of torch's own layers and kernels
        "assert_int_or_pair",
        "boolean_dispatch",
        "handle_torch_function",
        "has_torch_function",
        "has_torch_function_unary",
        "has_torch_function_variadic",
        "grouped_mm",
        "native_channel_shuffle",
        "scaled_addmm",
        "scaled_grouped_mm",
        "scaled_mm",
    }
    names = {
        n
        for n in dir(T)
        if callable(getattr(T, n)) and n[0].islower() and not n.endswith(("_", "_with_indices"))
    }
    assert names - set(F.__all__) <= absent
