"""Functions whose work is about sizes, with all their options, on axes whose sizes have names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F

THETA = rg.tensor([[[0.8, 0.3, 0.1], [-0.2, 0.9, 0.0]], [[1.1, 0.0, 0.2], [0.1, 0.7, -0.3]]])
SAMPLES = rg.random.Generator(3).uniform((2, 3, 2))


def image(f: Any) -> Any:
    return "2 3 H W", f


def where(x: Any, size: int, stride: int, padding: int, ceil_mode: bool) -> Any:
    return rg.max_pool(x, size, stride, padding, 1, ceil_mode, True)[1]


RESIZED: list[Any] = [
    *[{"scale_factor": s, "mode": m} for s in (2, 0.5, 1 / 3, 2.5) for m in ("nearest", "area")],
    {"scale_factor": 1.5, "mode": "nearest-exact"},
    *[
        {"scale_factor": s, "mode": m, "align_corners": c}
        for s in (3, 0.5) for m in ("bilinear", "bicubic") for c in (False, True)
    ],
    {"scale_factor": (2, 0.75), "mode": "bilinear", "recompute_scale_factor": True},
    *[{"size": (4, 7), "mode": m} for m in ("nearest", "nearest-exact", "bilinear", "area")],
    {"size": (4, 1), "mode": "bicubic", "align_corners": True},
    *[{"size": (3, 5), "mode": m, "antialias": True} for m in ("bilinear", "bicubic")],
    {"scale_factor": 0.5, "mode": "bilinear", "antialias": True},
]  # fmt: skip
CASES: dict[str, Any] = {
    **{f"interpolate {o}": image(lambda x, o=o: F.interpolate(x, **o)) for o in RESIZED},
    "interpolate to a named size": image(lambda x: F.interpolate(x, (x.shape[3], x.shape[2]))),
    "bilinear to a named size": image(
        lambda x: F.interpolate(x, (2 * x.shape[3], x.shape[2] + 1), mode="bilinear")),
    "area to a named size": image(
        lambda x: F.interpolate(x, (x.shape[3], x.shape[2] + 1), mode="area")),
    **{
        f"{name} to {size}": image(lambda x, name=name, size=size: getattr(F, name)(x, size))
        for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d")
        for size in (1, (3, 4), (None, 2), (7, 1))
    },
    "adaptive_max_pool2d, where": image(
        lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True)[1]),
    "adaptive pool to a named size": image(
        lambda x: F.adaptive_avg_pool2d(x, (x.shape[3], 2)) + F.adaptive_max_pool2d(
            x, (x.shape[3], 2))),
    **{
        f"pad {mode} {widths}": image(lambda x, w=widths, m=mode: F.pad(x, w, mode=m))
        for mode in ("reflect", "replicate", "circular")
        for widths in ((1, 1, 0, 1), (0, 1), (1, -1, -1, 1))
    },
    "replicate pad, wide": image(lambda x: F.pad(x, (5, 4, 9, 0), mode="replicate")),
    "conv2d with padding": image(
        lambda x: rg.nn.Conv2d(3, 2, 3, padding=1, padding_mode="circular",
                               generator=rg.random.Generator(1))(x)),
    **{
        f"unfold {o}": image(lambda x, o=o: F.unfold(x, **o))
        for o in (
            {"kernel_size": 2}, {"kernel_size": (1, 2), "stride": 2},
            {"kernel_size": 3, "padding": 2, "dilation": (1, 2), "stride": (2, 1)},
        )
    },
    **{
        f"fold {o}": image(lambda x, o=o: F.fold(F.unfold(x, **o), x.shape[2:], **o))
        for o in ({"kernel_size": 2}, {"kernel_size": 3, "padding": 2, "dilation": 2, "stride": 2})
    },
    **{
        f"grid_sample {m} {p} {c}": image(
            lambda x, m=m, p=p, c=c: F.grid_sample(
                x, 1.3 * F.affine_grid(THETA, (2, 3, x.shape[3], 5), c), m, p, c))
        for m in ("bilinear", "nearest", "bicubic")
        for p in ("zeros", "border", "reflection")
        for c in (False, True)
    },
    "max_unpool2d": image(lambda x: F.max_unpool2d(
        *F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape)),
    "fractional_max_pool2d to a size": image(lambda x: F.fractional_max_pool2d(
        x, 2, 2, _random_samples=SAMPLES)),
    "fractional_max_pool2d by a ratio": image(lambda x: F.fractional_max_pool2d(
        x, (2, 1), output_ratio=(0.5, 0.6), _random_samples=SAMPLES, return_indices=True)[0]),
    "pdist": ("H W", lambda x: F.pdist(x, 3.0)),
    "tensorinv": ("W W*H H", lambda x: rg.linalg.tensorinv(
        rg.moveaxis(x, 1, 0) + 9 * rg.eye(x.shape[1]).reshape((x.shape[1], x.shape[0],
                                                               x.shape[2])), ind=1)),
    "tensorsolve": ("W W*H H", lambda x: rg.linalg.tensorsolve(
        rg.moveaxis(x, 1, 0) + 9 * rg.eye(x.shape[1]).reshape((x.shape[1], x.shape[0],
                                                               x.shape[2])),
        rg.arange(x.shape[1]) * 1.0)),
    **{
        f"{kind} pool of {k}, {s} apart, {p} around": image(
            lambda x, f=f, k=k, s=s, p=p: f(x, k, s, p, ceil_mode=True))
        for kind, f in (("max", F.max_pool2d), ("avg", F.avg_pool2d), ("where", where))
        for k, s, p in ((2, 2, 0), (2, 3, 1), (3, 2, 1))
    },
    **{
        f"{kind.__name__} of any length": ("L 2 3", lambda x, kind=kind: kind(
            3, 4, 2, bidirectional=True, generator=rg.random.Generator(1), dtype=rg.float64)(x)[0])
        for kind in (rg.nn.RNN, rg.nn.LSTM, rg.nn.GRU)
    },
    "attention": ("2 H W", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
    "multi-head attention": ("H W 4", lambda x: rg.nn.MultiheadAttention(
        4, 2, generator=rg.random.Generator(1), dtype=rg.float64)(x, x, x)[0]),
    "glu": ("H W", lambda x: F.glu(x)),
    "pixel_unshuffle": image(lambda x: F.pixel_unshuffle(x, 2)),
    "pixel_shuffle": ("4 H W", lambda x: F.pixel_shuffle(x, 2)),
    "split": ("H W", lambda x: rg.split(x, 3, axis=1)[1]),
    "backwards": ("H W", lambda x: x[::-2, -1:0:-1]),
    "backwards from": ("H W", lambda x: x[-2::-1]),
    "a power": ("H W", lambda x: (x @ x.mT).reshape((x.shape[0] ** 2,))),
    "arange from one on": ("H W", lambda x: x.sum(1) * rg.arange(1, x.shape[0] + 1)),
    "arange down": ("H W", lambda x: x.sum(1) * rg.arange(2 * x.shape[0], 0, -2)),
    "sizes as numbers": ("H W", lambda x: x * rg.asarray(x.shape[0]) + rg.full((2, 1, 1), x.size)),
}  # fmt: skip


def given(declared: str, h: int, w: int) -> Any:
    sizes = {"H": h, "W": w, "L": w, "W*H": w * h}
    shape = [sizes.get(word) or int(word) for word in declared.split()]
    return np.random.default_rng(h + 10 * w).uniform(-1, 1, shape)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(10)
def test_values_are_those_of_numbers(name: str) -> None:
    declared, f = CASES[name]
    with rg.backend("reference"):
        named: Any = rg.jit(f, shapes={"x": declared})
        for h, w in ((6, 6), (9, 3)):
            compare(lambda x: [named(x)], lambda x: [f(x)], given(declared, h, w))
    assert named.cache_stats()["compilations"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_numbers(name: str) -> None:
    declared, f = CASES[name]
    slope = rg.grad(lambda x: (rg.cos(f(x)) * f(x)).sum())
    both: Any = rg.jit(lambda x: (f(x), slope(x)), shapes={"x": declared})
    for h, w in ((4, 6), (2, 2), (7, 3), (3, 8), (9, 10), (1, 1)):
        compare(both, lambda x: (f(x), slope(x)), given(declared, h, w))
    assert both.cache_stats()["compilations"] == 1


def compare(named: Any, plain: Any, x: Any) -> None:
    """The same values, or an error of both, that of named sizes with a value."""
    try:
        expected = plain(rg.tensor(x))
    except (rg.ShapeError, rg.OptionError):
        with pytest.raises(rg.ShapeError, match=r"= \d"):
            named(x)
        return
    for a, b in zip(named(x), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [
    "interpolate {'size': (3, 5), 'mode': 'bicubic', 'antialias': True}",
    "unfold {'kernel_size': 2}", "adaptive_avg_pool2d to (3, 4)", "pad replicate (1, 1, 0, 1)",
    "grid_sample bilinear reflection True",
])  # fmt: skip
def test_batched(name: str) -> None:
    declared, f = CASES[name]
    batched = rg.vmap(lambda x: rg.grad(lambda x: (f(x) ** 2).sum())(x))
    named: Any = rg.jit(batched, shapes={"x": f"B {declared}"})
    for b, h, w in ((2, 4, 5), (1, 3, 2)):
        x = np.stack([given(declared, h, w) * (i + 1) for i in range(b)])
        np.testing.assert_allclose(named(x).numpy(), batched(x).numpy(), rtol=1e-9, atol=1e-10)
    assert named.cache_stats()["compilations"] == 1


@pytest.mark.parametrize(("f", "n", "words"), [
    (lambda x: F.pad(x, (0, 0, 3, 1), mode="reflect"), 3, "at most H - 1.*H - 1 = 2.*H = 3"),
    (lambda x: F.pad(x, (0, 0, 0, 4), mode="circular"), 3, "by at most H, not by 4.*H = 3"),
    (lambda x: F.unfold(x, 4), 3, r"do not fit into \(H, W\).*H = 3"),
    (lambda x: F.adaptive_max_pool2d(x, 2), 0, "no maximum.*H = 0"),
    (lambda x: F.fractional_max_pool2d(x, 2, 3, _random_samples=SAMPLES), 3, "do not fit.*H = 3"),
    (lambda x: F.pad(x, (0, 0, -2, -2)), 3, "cuts off more.*H = 3"),
])  # fmt: skip
def test_sizes_that_do_not_fit_are_errors_of_the_call(f: Any, n: int, words: str) -> None:
    named: Any = rg.jit(f, shapes={"x": "2 3 H W"})
    x = np.ones((2, 3, n, 9))
    assert math.prod(named(np.ones((2, 3, 8, 9))).shape)
    with pytest.raises(rg.ShapeError, match=words):
        named(x)
    with rg.backend("reference"), pytest.raises((rg.ShapeError, rg.IndexRangeError)):
        rg.jit(f, shapes={"x": "2 3 H W"})(x)


def test_a_factor_that_is_rounded_to_other_sizes_is_refused() -> None:
    assert F.interpolate(np.ones((1, 1, 90)), scale_factor=0.7).shape == (1, 1, 62)
    f: Any = rg.jit(lambda x: F.interpolate(x, scale_factor=0.7), shapes={"x": "1 1 N"})
    with pytest.raises(rg.ShapeError, match=r"give the new size itself.*\* 7 // 10"):
        f(np.ones((1, 1, 9)))
    g: Any = rg.jit(lambda x: F.interpolate(x, x.shape[-1] * 7 // 10), shapes={"x": "1 1 N"})
    assert g(np.ones((1, 1, 9))).shape == (1, 1, 6)


def ctc(x: Any, targets: Any, lengths: Any, sizes: Any) -> Any:
    return F.ctc_loss(rg.log_softmax(x, axis=-1), targets, lengths, sizes, zero_infinity=True)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.sample(1)
def test_ctc_loss_of_any_sizes_with_targets_as_arguments(backend: str) -> None:
    named: Any = rg.jit(
        rg.value_and_grad(ctc),
        shapes={"x": "T N C", "targets": "N S", "lengths": "N", "sizes": "N"},
    )
    rng = np.random.default_rng(0)
    with rg.backend(backend):
        for t, n, c, s in ((6, 3, 5, 2), (9, 1, 4, 3), (4, 5, 3, 1), (3, 2, 4, 0), (1, 2, 3, 2)):
            x, targets = rng.normal(size=(t, n, c)), rng.integers(1, c, (n, s))
            lengths, sizes = rng.integers(0, t + 1, n), rng.integers(0, s + 1, n)
            value, slope = named(x, targets, lengths, sizes)
            expected, gradient = rg.value_and_grad(ctc)(x, targets, lengths, sizes)
            assert value.item() == pytest.approx(expected.item(), rel=1e-12)
            np.testing.assert_allclose(slope.numpy(), gradient.numpy(), rtol=1e-9, atol=1e-12)
    assert named.cache_stats()["compilations"] == 1


def test_ctc_loss_of_known_lengths_and_a_named_time() -> None:
    f: Any = rg.jit(lambda x: ctc(x, [[1, 2]], [3], [2]), shapes={"x": "T 1 4"})
    x = np.random.default_rng(0).normal(size=(5, 1, 4))
    assert f(x).item() == pytest.approx(ctc(rg.tensor(x), [[1, 2]], [3], [2]).item())
    with pytest.raises(rg.ShapeError, match=r"input_lengths are 1 numbers from 0 to T.*T = 2"):
        f(x[:2])
    with pytest.raises(rg.ShapeError, match=r"given as \[N, S\]"):
        rg.jit(lambda x, t: F.ctc_loss(x, t, [3, 3], [1, 1]))(np.ones((3, 2, 4)), np.ones(2))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("ended", [False, True])
def test_embedding_bag_with_offsets_as_arguments(mode: str, ended: bool) -> None:
    def f(table: Any, index: Any, offsets: Any) -> Any:
        y = F.embedding_bag(
            index, table, offsets, mode=mode, include_last_offset=ended, padding_idx=1
        )
        return (y * rg.cos(y)).sum(), y

    slope = rg.grad(f, has_aux=True)
    named: Any = rg.jit(slope, shapes={"table": "K D", "index": "N", "offsets": "B"})
    rng = np.random.default_rng(1)
    for k, d, n, offsets in ((5, 2, 7, [0, 3, 3, 5]), (3, 4, 4, [0, 4]), (6, 1, 9, [0, 2, 8])):
        table, index = rng.normal(size=(k, d)), rng.integers(0, k, n)
        found = named(table, index, np.array(offsets))
        for a, b in zip(found, slope(table, index, np.array(offsets)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)
    assert named.cache_stats()["compilations"] == 1
