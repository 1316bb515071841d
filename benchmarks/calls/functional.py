"""Calls of the functions of `rg.nn.functional`."""

from __future__ import annotations

from functools import partial

import numpy as np

import retrograd as rg
from benchmarks.calls.arrays import Arrays, Call
from retrograd.nn import functional as F

ACTIVATIONS = """
celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu
sigmoid silu softplus softshrink softsign tanh tanhshrink
"""
DROPPING = ("dropout", "alpha_dropout")
LIKE = """
binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss
smooth_l1_loss poisson_nll_loss cosine_similarity pairwise_distance dice_loss tversky_loss
sigmoid_focal_loss distillation_loss
"""
ADAPTIVE = "adaptive_avg_pool adaptive_max_pool"
POOLS = "avg_pool max_pool"


def functional(a: Arrays) -> dict[str, Call]:
    """By name; a torch user knows what each takes."""
    return _activations(a) | _losses(a) | _windows(a) | _pictures(a) | _layers(a)


def _activations(a: Arrays) -> dict[str, Call]:
    x, g = a.x, rg.random.Generator(1)
    made: dict[str, Call] = {name: partial(getattr(F, name), x) for name in ACTIVATIONS.split()}
    names = ("softmax", "log_softmax", "softmin")
    made |= {name: partial(getattr(F, name), x, dim=-1) for name in names}
    made |= {name: partial(getattr(F, name), x, 0.5, True, generator=g) for name in DROPPING}
    return made | {
        "dropout1d": lambda: F.dropout1d(a.sequence, 0.5, True, generator=g),
        "dropout2d": lambda: F.dropout2d(a.image, 0.5, True, generator=g),
        "dropout3d": lambda: F.dropout3d(a.volume, 0.5, True, generator=g),
        "feature_alpha_dropout": lambda: F.feature_alpha_dropout(a.image, 0.5, True, generator=g),
        "glu": lambda: F.glu(a.image, dim=2),
        **{
            name: partial(getattr(F, name), a.image, dim=2) for name in ("swiglu", "geglu", "reglu")
        },
        "gumbel_softmax": lambda: F.gumbel_softmax(x, generator=g),
        "prelu": lambda: F.prelu(x, rg.tensor([0.2])),
        "rrelu": lambda: F.rrelu(x),
        "spatial_dropout": lambda: F.spatial_dropout(a.image, 0.5, True, generator=g),
        "threshold": lambda: F.threshold(x, 0.5, 0.0),
    }


def _losses(a: Arrays) -> dict[str, Call]:
    x, y, n = a.x, a.y, a.n
    made: dict[str, Call] = {name: partial(getattr(F, name), x, y) for name in LIKE.split()}
    signs = rg.sign(x - 0.5)
    labels = a.rows[:n]
    logits = F.log_softmax(x, -1)
    return made | {
        "cosine_embedding_loss": lambda: F.cosine_embedding_loss(x, y, signs[:, 0]),
        "cross_entropy": lambda: F.cross_entropy(x, labels),
        "ctc_loss": lambda: F.ctc_loss(
            F.log_softmax(a.sequence, -1)[:, :, : n + 2].swapaxes(0, 1)[:, :, :] * 1.0,
            rg.tensor([[1, 2], [2, 1]]),
            rg.tensor([3, 3]),
            rg.tensor([2, 2]),
        ),
        "focal_loss": lambda: F.focal_loss(x, labels),
        "gaussian_nll_loss": lambda: F.gaussian_nll_loss(x, y, x),
        "hinge_embedding_loss": lambda: F.hinge_embedding_loss(x, signs),
        "hinge_loss": lambda: F.hinge_loss(x, signs),
        "linear_cross_entropy": lambda: F.linear_cross_entropy(x, y, labels),
        "margin_ranking_loss": lambda: F.margin_ranking_loss(x, y, signs),
        "multi_margin_loss": lambda: F.multi_margin_loss(x, labels),
        "multilabel_margin_loss": lambda: F.multilabel_margin_loss(x, a.i),
        "multilabel_soft_margin_loss": lambda: F.multilabel_soft_margin_loss(x, y),
        "nll_loss": lambda: F.nll_loss(logits, labels),
        "soft_margin_loss": lambda: F.soft_margin_loss(x, signs),
        "squared_hinge_loss": lambda: F.squared_hinge_loss(x, signs),
        "triplet_margin_loss": lambda: F.triplet_margin_loss(x, y, x),
        "triplet_margin_with_distance_loss": lambda: F.triplet_margin_with_distance_loss(x, y, x),
    }


def _windows(a: Arrays) -> dict[str, Call]:
    made: dict[str, Call] = {}
    for d, x in enumerate((a.sequence, a.image, a.volume), 1):
        channels = int(x.shape[1])
        kernel = a.uniform(2, channels, *[2] * d)
        up = a.uniform(channels, 2, *[2] * d)
        bias = a.uniform(2)
        made |= {f"{name}{d}d": partial(getattr(F, f"{name}{d}d"), x, 2) for name in POOLS.split()}
        made |= {
            f"{name}{d}d": partial(getattr(F, f"{name}{d}d"), x, 2) for name in ADAPTIVE.split()
        }
        made |= {
            f"conv{d}d": partial(getattr(F, f"conv{d}d"), x, kernel, bias, 2, 1),
            f"conv_transpose{d}d": partial(getattr(F, f"conv_transpose{d}d"), x, up, bias, 2),
            f"lp_pool{d}d": partial(getattr(F, f"lp_pool{d}d"), x, 2.0, 2),
            f"max_unpool{d}d": partial(_unpooled, d, x),
        }
    g = rg.random.Generator(2)
    n = a.n
    return made | {
        "conv_tbc": lambda: F.conv_tbc(a.sequence, a.uniform(2, 2 * n + 2, 4), a.uniform(4), 1),
        "fold": lambda: F.fold(a.uniform(2, 12, n * n), (n + 1, n + 1), 2),
        "fractional_max_pool2d": lambda: F.fractional_max_pool2d(a.image, 2, 3, generator=g),
        "fractional_max_pool3d": lambda: F.fractional_max_pool3d(a.volume, 2, 2, generator=g),
        "unfold": lambda: F.unfold(a.image, 2, stride=2),
    }


def _unpooled(d: int, x: rg.Tensor) -> rg.Tensor:
    even = [slice(0, size // 2 * 2) for size in x.shape[2:]]
    values, places = getattr(F, f"max_pool{d}d")(x[:, :, *even], 2, return_indices=True)
    unpooled: rg.Tensor = getattr(F, f"max_unpool{d}d")(values, places, 2)
    return unpooled


def _pictures(a: Arrays) -> dict[str, Call]:
    n, image = a.n, a.image
    theta = rg.tensor(np.array([[[1, 0.1, 0], [0, 1, 0.1]]] * 2, np.float32))
    size = (2, 3, n, n + 1)
    return {
        "affine_grid": lambda: F.affine_grid(theta, size),
        "channel_shuffle": lambda: F.channel_shuffle(a.uniform(2, 4, n, n), 2),
        "grid_sample": lambda: F.grid_sample(image, F.affine_grid(theta, size)),
        "interpolate": lambda: F.interpolate(image, scale_factor=2),
        "pad": lambda: F.pad(image, (1, 2, 1, 1), mode="reflect"),
        "pixel_shuffle": lambda: F.pixel_shuffle(a.uniform(2, 4, n, n), 2),
        "pixel_unshuffle": lambda: F.pixel_unshuffle(image, 2),
        "upsample": lambda: F.upsample(image, scale_factor=2, mode="bilinear"),
        "upsample_bilinear": lambda: F.upsample_bilinear(image, scale_factor=2),
        "upsample_nearest": lambda: F.upsample_nearest(image, scale_factor=2),
    }


def _layers(a: Arrays) -> dict[str, Call]:
    x, n, image = a.x, a.n, a.image
    three = a.uniform(3)
    query = a.uniform(n, 2, 4)
    return {
        "alibi_bias": lambda: F.alibi_bias(2, n, n + 2),
        "alibi_slopes": lambda: F.alibi_slopes(6),
        "batch_norm": lambda: F.batch_norm(image, None, None, three, three, True),
        "bilinear": lambda: F.bilinear(x, x, a.uniform(3, n + 2, n + 2)),
        "cdist": lambda: F.cdist(x, a.y),
        "embedding": lambda: F.embedding(a.i, a.y),
        "embedding_bag": lambda: F.embedding_bag(a.i, a.y),
        "group_norm": lambda: F.group_norm(image, 3),
        "instance_norm": lambda: F.instance_norm(image),
        "layer_norm": lambda: F.layer_norm(x, (n + 2,)),
        "linear": lambda: F.linear(x, a.y, a.uniform(n)),
        "local_response_norm": lambda: F.local_response_norm(image, 2),
        "multi_head_attention_forward": lambda: F.multi_head_attention_forward(
            query, query, query, 4, 2, a.uniform(12, 4), a.uniform(12), None, None, False, 0.0,
            a.uniform(4, 4), a.uniform(4),
        ),
        "normalize": lambda: F.normalize(x),
        "one_hot": lambda: F.one_hot(a.rows, n),
        "pdist": lambda: F.pdist(x),
        "rms_norm": lambda: F.rms_norm(x, (n + 2,)),
        "rotary_embedding": lambda: F.rotary_embedding(query),
        "running_statistics": lambda: F.running_statistics(image, three, three),
        "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(query, query, query),
        "sinusoidal_positions": lambda: F.sinusoidal_positions(a.rows, 4),
    }  # fmt: skip
