"""Optimizers against PyTorch, step by step in float64."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytestmark = pytest.mark.torch

rng = np.random.default_rng(5)
W = [rng.normal(size=(3, 2)), rng.normal(size=(4,))]
GRADS = [[rng.normal(size=w.shape) for w in W] for _ in range(8)]

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.85, 0.99), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.5)}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "eps": 1e-3}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-2, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.6), "decoupled_weight_decay": True, "maximize": True}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.8}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 2.0), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-3, 0.1), "d": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_step_by_step(name, options):
    mine: list[Any] = [rg.tensor(w, requires_grad=True) for w in W]
    theirs = [torch.tensor(w, requires_grad=True) for w in W]
    a = getattr(optim, name)(mine, **options)
    b = getattr(torch.optim, name)(theirs, **options)
    for step, grads in enumerate(GRADS):
        if step == 4:
            a.lr = 0.03
            b.param_groups[0]["lr"] = 0.03
        for p, q, g in zip(mine, theirs, grads, strict=True):
            skipped = step in (0, 3) and g.ndim == 1  # a parameter that joins later
            p.grad = None if skipped else rg.tensor(g)
            q.grad = None if skipped else torch.tensor(g)
        a.step()
        b.step()
        for p, q in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12, atol=1e-14)
    for i, state in a.state_dict()["state"].items():
        for key in set(state) - {"step"}:
            expected = b.state_dict()["state"][i][key].numpy()
            np.testing.assert_allclose(state[key].numpy(), expected, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "Adafactor", "Rprop", "Muon", "ASGD"])
def test_a_state_of_theirs_goes_on_here(name):
    """And one of ours there: the layout is the same."""
    options = {"lr": 0.1} | ({"momentum": 0.9} if name == "SGD" else {})
    mine: list[Any] = [rg.tensor(W[0], requires_grad=True)]
    theirs = [torch.tensor(W[0], requires_grad=True)]
    a, b = getattr(optim, name)(mine, **options), getattr(torch.optim, name)(theirs, **options)

    def step(*optimizers):
        for p, g in zip((mine[0], theirs[0]), (rg.tensor, torch.tensor), strict=True):
            p.grad = g(GRADS[0][0])
        for optimizer in optimizers:
            optimizer.step()

    close = 1e-2 if name == "Muon" else 1e-12  # theirs is in bfloat16
    step(b)
    a.load_state_dict(b.state_dict())
    with torch.no_grad():
        mine[0].replace(theirs[0].numpy().copy())
    step(a, b)
    np.testing.assert_allclose(mine[0].numpy(), theirs[0].detach().numpy(), rtol=close, atol=close)
    state = a.state_dict()
    for slots in state["state"].values():
        slots.update({k: torch.tensor(np.asarray(v)) for k, v in slots.items()})
    b.load_state_dict(state)  # PyTorch makes mu_product, eta and mu float64 here, float32 elsewhere
    step(a, b)
    close = max(close, 1e-6) if name in ("NAdam", "ASGD") else close
    np.testing.assert_allclose(mine[0].numpy(), theirs[0].detach().numpy(), rtol=close, atol=close)


@pytest.mark.parametrize(("name", "options"), [c for c in CASES if c[0] != "Adafactor"], ids=str)
def test_complex_parameters(name, options):
    """They move as their parts do, in both forms."""
    rng = np.random.default_rng(7)
    w, *gs = rng.normal(size=(5, 3, 2)) + 1j * rng.normal(size=(5, 3, 2))
    p, q = rg.tensor(w, requires_grad=True), torch.tensor(w, requires_grad=True)
    a, b = getattr(optim, name)([p], **options), getattr(torch.optim, name)([q], **options)
    pure, state = rg.tensor(w), a.init(rg.tensor(w))
    for g in gs:
        p.grad, q.grad = rg.tensor(g), torch.tensor(g)
        a.step()
        b.step()
        pure, state = a.update(pure, rg.tensor(g), state)
        for found in (p, pure):
            np.testing.assert_allclose(found.numpy(), q.detach().numpy(), rtol=1e-12, atol=1e-14)
    for key, slot in a.state_dict()["state"][0].items():
        if key != "step":
            want = b.state_dict()["state"][0][key].numpy()
            np.testing.assert_allclose(slot.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping(norm_type, max_norm):
    mine: list[Any] = [rg.tensor(w, requires_grad=True) for w in W]
    theirs = [torch.tensor(w, requires_grad=True) for w in W]
    for p, q, g in zip(mine, theirs, GRADS[0], strict=True):
        p.grad, q.grad = rg.tensor(g), torch.tensor(g)
    a = optim.clip_grad_norm(mine, max_norm, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert a.item() == pytest.approx(b.item(), rel=1e-12)
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-12)


@pytest.mark.slow  # 300 steps of each
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_hundreds_of_steps(name, options):
    rng = np.random.default_rng(11)
    mine: list[Any] = [rg.tensor(w, requires_grad=True) for w in W]
    theirs = [torch.tensor(w, requires_grad=True) for w in W]
    a = getattr(optim, name)(mine, **options)
    b = getattr(torch.optim, name)(theirs, **options)
    for _ in range(300):
        for p, q, w in zip(mine, theirs, W, strict=True):
            g = rng.normal(size=w.shape) + 0.1 * p.numpy()
            p.grad, q.grad = rg.tensor(g), torch.tensor(g)
        a.step()
        b.step()
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-12, atol=1e-12)
