"""Adaptive softmax against PyTorch, and what it refuses."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


@pytest.mark.torch
@pytest.mark.parametrize("bias", [False, True])
def test_against_torch(bias: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(
        12, 23, [4, 9, 17], div_value=2.0, head_bias=bias
    ).double()
    mine: Any = nn.AdaptiveLogSoftmaxWithLoss(
        12, 23, [4, 9, 17], div_value=2.0, head_bias=bias, dtype=rg.float64
    )
    mine.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    r = np.random.default_rng(0)
    x, target = r.standard_normal((50, 12)) * 2, r.integers(0, 23, 50)
    given, ours = torch.tensor(x, requires_grad=True), rg.tensor(x, requires_grad=True)
    expected, found = theirs(given, torch.tensor(target)), mine(ours, target)
    np.testing.assert_allclose(found.output.numpy(), expected.output.detach(), rtol=1e-10)
    np.testing.assert_allclose(found.loss.item(), expected.loss.item(), rtol=1e-10)
    expected.loss.backward()
    found.loss.backward()
    np.testing.assert_allclose(ours.grad.numpy(), given.grad, atol=1e-12)
    for (_, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad, atol=1e-12)
    np.testing.assert_allclose(mine.log_prob(x).numpy(), theirs.log_prob(given).detach(), rtol=1e-9)
    np.testing.assert_array_equal(mine.predict(x).numpy(), theirs.predict(given))
    one = theirs(given[0], torch.tensor(target[0]))
    np.testing.assert_allclose(mine(x[0], target[0]).output.item(), one.output.item(), rtol=1e-9)


def test_probabilities_sum_to_one_and_compile() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 11, [3, 6], div_value=2.0)
    x = rg.asarray(np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32))
    np.testing.assert_allclose(rg.exp(layer.log_prob(x)).sum(axis=1).numpy(), 1, rtol=1e-5)
    target = rg.asarray(np.array([0, 3, 5, 6, 10]))
    found = rg.jit(lambda m, x, t: m(x, t).loss)(layer, x, target)
    np.testing.assert_allclose(found.item(), layer(x, target).loss.item(), rtol=1e-5)


@pytest.mark.parametrize(
    ("f", "error", "match"),
    [
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, []), rg.OptionError, "cutoffs ascend"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 5]), rg.OptionError, r"\[5, 5\]"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [10]), rg.OptionError, "10 classes"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(3, 10, [5]), rg.OptionError, "div_value"),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5])(rg.ones((2, 7)), [0, 1]),
            rg.ShapeError, r"\[N, 8\], not \(2, 7\)",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5])(rg.ones((2, 8)), [0]),
            rg.ShapeError, "targets of the shape",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5])(rg.ones((2, 8)), [0.0, 1.0]),
            rg.DTypeError, "integers",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5])(
                rg.ones((2, 8)), [0, 10]
            ).loss.item(),
            rg.IndexRangeError, "10",
        ),
    ],
)  # fmt: skip
def test_refusals(f: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        f()


@pytest.mark.torch
@pytest.mark.parametrize("out", [(), (3,)])
def test_linear_cross_entropy_against_torch(out: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    w = [1.0, 2.0, 3.0, 4.0]
    options: dict[str, Any] = {"out_features": out, "bias": True, "label_smoothing": 0.1}
    theirs = torch.nn.LinearCrossEntropyLoss(
        5, 4, weight=torch.tensor(w).double(), **options
    ).double()
    mine: Any = nn.LinearCrossEntropyLoss(5, 4, weight=np.array(w), dtype=rg.float64, **options)
    state = {k: v.numpy() for k, v in theirs.state_dict().items()}
    mine.load_state_dict(state)
    r = np.random.default_rng(0)
    x, t = r.normal(size=(6, 5)), r.integers(0, 4, (6, *out))
    expected, found = theirs(torch.tensor(x), torch.tensor(t)), mine(x, t)
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
    expected.backward()
    found.backward()
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12)
