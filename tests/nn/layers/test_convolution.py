"""Convolution and pooling layers: names, options, messages; and PyTorch's values from its state."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

F = nn.functional
rng = np.random.default_rng(8)
SIZES = {1: (9,), 2: (7, 8), 3: (5, 6, 5)}

CONVS: dict[str, Any] = {
    "plain": {"kernel_size": 3},
    "same": {"kernel_size": 3, "padding": "same", "dilation": 2},
    "options": {"kernel_size": 2, "stride": 2, "padding": 1, "dilation": 2, "groups": 2},
    "no bias": {"kernel_size": 1, "bias": False},
    "reflect": {"kernel_size": 3, "padding": 2, "padding_mode": "reflect"},
    "replicate": {"kernel_size": 3, "padding": 2, "padding_mode": "replicate"},
    "circular": {"kernel_size": 3, "padding": "same", "padding_mode": "circular"},
}
TRANSPOSED: dict[str, Any] = {
    "plain": {"kernel_size": 3},
    "options": {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
    "dilated": {"kernel_size": 2, "dilation": 2, "bias": False},
}


def compare(ours, theirs, x):
    """The same state gives the same values and gradients."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = theirs.double()
    ours = ours.to(rg.float64)
    ours.load_state_dict(theirs.state_dict())
    a, b = torch.tensor(x, requires_grad=True), rg.tensor(x, requires_grad=True)
    expected, found = theirs(a), ours(b)
    weights = rng.normal(size=tuple(expected.shape))
    (expected * torch.tensor(weights)).sum().backward()
    (found * weights).sum().backward()
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), atol=1e-12)
    given = {n: p.grad.numpy() for n, p in theirs.named_parameters()}
    for name, p in ours.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), given[name], atol=1e-11)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", CONVS)
def test_conv_against_torch(name, rank):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    ours, theirs = (getattr(m, f"Conv{rank}d")(4, 6, **CONVS[name]) for m in (nn, torch.nn))
    compare(ours, theirs, rng.normal(size=(2, 4, *SIZES[rank])))


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose_against_torch(name, rank):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    kind = f"ConvTranspose{rank}d"
    ours, theirs = (getattr(m, kind)(4, 6, **TRANSPOSED[name]) for m in (nn, torch.nn))
    compare(ours, theirs, rng.normal(size=(2, 4, *SIZES[rank])))


def test_a_network_of_them_learns():
    net: Any = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2)
    )
    optimizer = rg.optim.Adam(net, lr=0.05)
    x = rng.normal(size=(8, 1, 4, 4)).astype(np.float32)
    y = (x.mean(axis=(1, 2, 3)) > 0).astype(np.int64)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_output_size_of_a_transposed_convolution():
    layer: Any = nn.ConvTranspose2d(2, 3, 3, stride=2)
    x = rg.ones((1, 2, 4, 4))
    assert layer(x).shape == (1, 3, 9, 9)
    assert layer(x, output_size=(10, 9)).shape == (1, 3, 10, 9)
    with pytest.raises(rg.OptionError, match="between"):
        layer(x, output_size=(11, 9))


def test_repr():
    text = repr(nn.Conv2d(2, 4, 3, stride=(1, 2), padding=1, dilation=2, groups=2))
    for part in ("2, 4", "kernel_size=(3, 3)", "stride=(1, 2)", "dilation=(2, 2)", "groups=2"):
        assert part in text
    assert "kernel_size=2, stride=2" in repr(nn.MaxPool2d(2))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "divisible by groups=2"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "kernel_size is an integer of at least 1"),
        (lambda: nn.Conv2d(3, 4, 3, stride=0), "stride is an integer of at least 1"),
        (lambda: nn.Conv2d(3, 4, 3, padding=-1), "padding is an integer of at least 0"),
        (lambda: nn.Conv2d(3, 4, 3, padding="full"), "'same' or 'valid'"),
        (lambda: nn.Conv2d(3, 4, 3, stride=2, padding="same"), "needs stride 1"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), "padding_mode is one of"),
        (lambda: nn.ConvTranspose1d(3, 4, 3, padding_mode="reflect"), "padding_mode is one of"),
        (lambda: nn.ConvTranspose1d(3, 4, 3, padding="same"), "is numbers"),
    ],
)
def test_wrong_options(make, match):
    with pytest.raises(rg.OptionError, match=match):
        make()


def test_wrong_inputs_name_the_layer():
    net: Any = nn.Sequential(nn.Conv2d(3, 4, 3))
    with pytest.raises(rg.ShapeError, match=r"conv2d.*has 4 axes"):
        net(np.ones((3, 3)))
    with pytest.raises(rg.ShapeError, match="2 channels, the weight takes 3"):
        net(np.ones((1, 2, 5, 5)))
    with pytest.raises(rg.ShapeError, match="at most 2"):
        nn.Conv1d(1, 1, 7, padding=3, padding_mode="reflect")(np.ones((1, 1, 3)))
