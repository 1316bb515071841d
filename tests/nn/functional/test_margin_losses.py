"""Losses of margins, likelihoods and alignments against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from tests.nn.functional.torch_cases import (
    Case,
    agree,
    compare,
    draw,
    floats,
    normal,
    some,
    uniform,
)

F = nn.functional

A, B, C = normal(4, 5), normal(4, 5, seed=2), normal(4, 5, seed=3)
SIGN = np.array([1, -1, -1, 1])
SIGNS = np.sign(C).astype(np.int64)
MULTI = np.array([[2, 0, -1, 4, 1], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0], [1, -1, 2, -1, -1]])
LOSSES: dict[str, Case] = {
    "cosine_embedding": (
        lambda m, a, b, t: m.cosine_embedding_loss(a, b, t, margin=0.1),
        (A, B, SIGN),
    ),
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
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LOSSES)
def test_as_in_torch(name: str) -> None:
    f, arrays = LOSSES[name]
    compare(f, arrays, name)


@pytest.mark.torch
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


@pytest.mark.torch
def test_weights_of_classes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    w, t = uniform(5, seed=7), np.array([0, 4, 2, 2])
    for p in (1, 2):

        def f(m: Any, x: Any, p: int = p) -> Any:
            weight = torch.tensor(w) if m is not F else w
            target = torch.tensor(t) if m is not F else t
            return m.multi_margin_loss(x, target, p=p, weight=weight)

        compare(f, (A,), "multi_margin_loss")


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_loss(reduction: str) -> None:
    """Rows of unequal length, repeated symbols, an empty target, one that does not fit."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    targets = np.array([[1, 1, 2, 3], [3, 0, 0, 0], [1, 1, 1, 1], [2, 3, 0, 0]])
    steps, sizes = np.array([9, 7, 5, 6]), np.array([4, 0, 4, 2])

    def f(m: Any, x: Any) -> Any:
        given = (
            map(torch.tensor, (targets, steps, sizes)) if m is not F else (targets, steps, sizes)
        )
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


@pytest.mark.torch
def test_gaussian_nll_loss():
    x, t = floats(5, 3), floats(5, 3)
    v = draw.uniform(0.1, 1, size=(5, 3))
    taken = 0
    for options in some(5, full=[False, True], reduction=["mean", "sum", "none"], eps=[1e-6, 0.3]):
        for var in (v, v[:, :1].copy(), v[:, 0].copy(), v[:1].copy(), 0.5, 0.0):
            taken += agree("gaussian_nll_loss", x, t, var, **options)
        taken += agree("gaussian_nll_loss", x, t[:, :1].copy(), v, **options)
        taken += agree("gaussian_nll_loss", x[0], t[0], 2.0, **options)
    assert taken == 5 * 8
    with pytest.raises(rg.ShapeError):
        F.gaussian_nll_loss(x, t, v[:2])
    with pytest.raises(rg.OptionError):
        F.gaussian_nll_loss(x, t, -1.0)


def test_margins_by_hand() -> None:
    found = F.margin_ranking_loss(A, B, SIGNS, margin=0.3, reduction="none")
    np.testing.assert_allclose(found.numpy(), np.maximum(0, 0.3 - SIGNS * (A - B)), rtol=1e-12)
    found = F.soft_margin_loss(A, SIGNS)
    assert found.item() == pytest.approx(np.log1p(np.exp(-SIGNS * A)).mean())
    rows, t = np.arange(4), np.array([0, 4, 2, 2])
    others = np.maximum(0, 0.7 - A[rows, t][:, None] + A) ** 2
    others[rows, t] = 0
    found = F.multi_margin_loss(A, t, p=2, margin=0.7)
    assert found.item() == pytest.approx((others.sum(1) / 5).mean())


@pytest.mark.parametrize("target", [[1], [1, 1], [1, 2], []])
def test_ctc_sums_over_all_alignments(target: list[int]) -> None:
    """Each sequence of symbols that gives the target: repeats merged, then blanks left out."""
    logp = np.log(np.random.default_rng(0).dirichlet(np.ones(3), size=4))
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        merged = [s for s, before in zip(path, (None, *path), strict=False) if s != before]
        if [s for s in merged if s] == target:
            total += np.exp(sum(row[s] for row, s in zip(logp, path, strict=True)))
    padded = np.array([[*target, 0, 0][:2]])
    found = F.ctc_loss(logp[:, None], padded, [4], [len(target)], reduction="sum")
    assert found.item() == pytest.approx(-np.log(total), rel=1e-10)
