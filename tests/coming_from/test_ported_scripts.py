"""Scripts of PyTorch with the imports changed: they run, and give its numbers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg


def values(shape: tuple[int, ...], k: float = 1.0) -> Any:
    n = int(np.prod(shape))
    return (0.5 * np.sin(k * np.arange(1, n + 1))).reshape(shape).astype(np.float32)


def known(torch: Any, model: Any) -> None:
    """Parameters that are the same in both libraries."""
    for i, p in enumerate(model.parameters()):
        p.data = torch.tensor(values(tuple(p.shape), 1.0 + i))


def classifier(torch: Any, tmp_path: Any) -> list[float]:
    """Loader, scheduler, checkpoint, clipping, train and eval."""
    nn, F = torch.nn, torch.nn.functional
    data = importlib.import_module(f"{torch.__name__}.utils.data")

    class Net(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3)
            self.norm = nn.BatchNorm2d(4)
            self.fc = nn.Linear(4 * 9, 3)

        def forward(self, x: Any) -> Any:
            x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
            return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)

    device = torch.device("cuda" if rg.cuda.is_available() else "cpu")
    labels = torch.tensor(np.arange(12) % 3, dtype=torch.long)
    loader = data.DataLoader(
        data.TensorDataset(torch.tensor(values((12, 1, 8, 8))), labels), batch_size=4
    )
    model = Net().to(device)
    known(torch, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    losses = []
    for epoch in range(3):
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, tmp_path / "last.pt")
        found = torch.load(tmp_path / "last.pt", map_location=device, weights_only=True)
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
    model.eval()
    with torch.no_grad():
        wrong = sum(F.nll_loss(model(x), y, reduction="sum").item() for x, y in loader)
    return [*losses, wrong, optimizer.param_groups[0]["lr"]]


def transfer(torch: Any, tmp_path: Any) -> list[float]:
    """Frozen layers, another head, hooks, groups of parameters."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 10))
    known(torch, model)
    for p in model.parameters():
        p.requires_grad = False
    model[2] = nn.Linear(6, 2)
    known(torch, model[2])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    features: list[float] = []
    handle = model[1].register_forward_hook(
        lambda module, args, out: features.append(out.detach().sum().item())
    )
    x, y = torch.tensor(values((8, 5))), torch.tensor(np.arange(8) % 2)
    found = []
    for step in range(6):
        if step == 3:
            for p in model[0].parameters():
                p.requires_grad = True
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    handle.remove()
    return found + features + model[0].weight.detach().flatten().tolist()


def critic(torch: Any, tmp_path: Any) -> list[float]:
    """A penalty on gradients, weights that are clamped by `.data`, initial values by `apply`."""
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    model = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def initial(m: Any) -> None:
        if m.__class__.__name__.find("Linear") != -1:
            nn.init.constant_(m.bias.data, 0.1)
            m.weight.data = torch.tensor(values(tuple(m.weight.shape), 2.0))

    generator.apply(initial)
    model.apply(initial)
    ours = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.5, 0.999))
    theirs = torch.optim.Adam(generator.parameters(), lr=0.02, betas=(0.5, 0.999))
    real, noise = torch.tensor(values((6, 3), 3.0)), torch.tensor(values((6, 2), 5.0))
    found = []
    for _ in range(4):
        model.zero_grad()
        fake = generator(noise).detach()
        between = (0.3 * real + 0.7 * fake).requires_grad_(True)
        score = model(between)
        (g,) = torch.autograd.grad(
            outputs=score, inputs=between, grad_outputs=torch.ones_like(score), create_graph=True
        )
        penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss = model(fake).mean() - model(real).mean() + 10 * penalty
        loss.backward()
        ours.step()
        for p in model.parameters():
            p.data.clamp_(-0.6, 0.6)
        generator.zero_grad()
        other = -model(generator(noise)).mean()
        other.backward()
        theirs.step()
        found += [loss.item(), penalty.item(), other.item()]
    return found


def function(torch: Any, tmp_path: Any) -> list[float]:
    """The tutorial's polynomial of Legendre, descended by hand."""

    class Legendre(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**3 - 3 * x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 1.5 * (5 * x**2 - 1)

    x = torch.linspace(-3.0, 3.0, 50)
    y = torch.sin(x)
    a, b, c, d = (
        torch.full((), v, device=torch.device("cpu"), requires_grad=True)
        for v in (0.0, -1.0, 0.0, 0.3)
    )
    for _ in range(30):
        loss = (a + b * Legendre.apply(c + d * x) - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (a, b, c, d):
                p -= 5e-5 * p.grad
                p.grad = None
    return [p.item() for p in (a, b, c, d)] + [loss.item()]


def text(torch: Any, tmp_path: Any) -> list[float]:
    """An LSTM whose state goes on, and the gate that is opened by a slice of `.data`."""
    nn = torch.nn
    table, lstm, out = nn.Embedding(7, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 7)
    for m in (table, lstm, out):
        known(torch, m)
    for name, p in lstm.named_parameters():
        if "bias" in name:
            p.data.fill_(0)
            p.data[5:10].fill_(1)
    parameters = [*table.parameters(), *lstm.parameters(), *out.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=0.01)
    tokens = torch.tensor(np.arange(26).reshape(2, 13) ** 2 % 7)
    state = (torch.zeros(1, 2, 5), torch.zeros(1, 2, 5))
    found = []
    for i in range(0, 12, 4):
        state = tuple(s.data for s in state)
        optimizer.zero_grad()
        hidden, state = lstm(table(tokens[:, i : i + 4]), state)
        logits = out(hidden.contiguous().view(-1, 5))
        loss = nn.functional.cross_entropy(logits, tokens[:, i + 1 : i + 5].reshape(-1))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def functional(torch: Any, tmp_path: Any) -> list[float]:
    """Gradients of samples, and derivatives of functions."""
    func = importlib.import_module(f"{torch.__name__}.func")
    model = torch.nn.Linear(3, 1)
    known(torch, model)
    weights = {k: p.detach() for k, p in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((func.functional_call(model, p, (x,)) - y) ** 2).mean()

    x, y = torch.tensor(values((4, 3))), torch.tensor(values((4, 1), 2.0))
    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    z = torch.tensor(values((3,)), requires_grad=True)
    jacobian = torch.autograd.functional.jacobian(lambda z: z**2 * z.sum(), z)
    z.register_hook(lambda g: g * 2)
    (z**3).sum().backward()
    parts = [each["weight"], each["bias"], jacobian, z.grad]
    return [v for part in parts for v in part.flatten().tolist()]


SCRIPTS = [classifier, transfer, critic, function, text, functional]


@pytest.mark.torch
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_numbers_are_those_of_pytorch(
    script: Callable[[Any, Any], list[float]], tmp_path: Any
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    with rg.backend("reference"):
        ours = script(rg, tmp_path)
    theirs = script(torch, tmp_path)
    assert len(ours) == len(theirs) > 2
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("script", SCRIPTS)
def test_they_run_without_pytorch(
    script: Callable[[Any, Any], list[float]], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with rg.backend("reference"):
        found = script(rg, tmp_path)
        assert script(rg, tmp_path) == found
    assert np.isfinite(found).all()
