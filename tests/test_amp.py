"""`GradScaler` against PyTorch's, in both forms."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import FormatError, GradientError, OptionError

# What gradients are in each step: finite or not.
STEPS = [1.0, 2.0, np.inf, 3.0, 1.0, 1.0, 1.0, np.nan, np.inf, 2.0, 2.0, 2.0]
OPTIONS: dict[str, Any] = {
    "init_scale": 8.0,
    "growth_factor": 4.0,
    "backoff_factor": 0.25,
    "growth_interval": 3,
}
# Scale after each step by the rule: three good ones in a row grow it fourfold.
SCALES = [8, 8, 2, 2, 2, 8, 8, 2, 0.5, 0.5, 0.5, 2]


@pytest.fixture(autouse=True)
def reference():
    with rg.backend("reference"):
        yield


def eager(scaler: rg.amp.GradScaler) -> tuple[list[float], list[float]]:
    w = rg.tensor([1.0], requires_grad=True)
    opt = optim.SGD([w], lr=0.1, momentum=0.5)
    weights, scales = [], []
    for g in STEPS:
        opt.zero_grad()
        scaler.scale((w * g).sum()).backward()
        scaler.step(opt)
        scaler.update()
        weights.append(w.item())
        scales.append(scaler.get_scale())
    return weights, scales


def by_hand() -> list[float]:
    w, v, found = np.float32(1), np.float32(0), []
    for g in STEPS:
        if np.isfinite(g):
            v = np.float32(0.5) * v + np.float32(g)
            w = w - np.float32(0.1) * v
        found.append(float(w))
    return found


def test_stateful() -> None:
    weights, scales = eager(rg.amp.GradScaler(**OPTIONS))
    assert scales == SCALES
    np.testing.assert_allclose(weights, by_hand(), rtol=1e-6)


def test_pure_in_jit() -> None:
    scaler = rg.amp.GradScaler(**OPTIONS)
    opt = optim.SGD(lr=0.1, momentum=0.5)

    def step(w: Any, opt_state: Any, state: Any, g: Any) -> Any:
        grads = rg.grad(lambda w: scaler.scale((w[0] * g).sum(), state))(w)
        return scaler.apply(opt, w, grads, opt_state, state)

    run = rg.jit(step)
    w = [rg.tensor([1.0])]
    opt_state, state = opt.init(w), scaler.init()
    weights, scales = [], []
    for g in STEPS:
        w, opt_state, state = run(w, opt_state, state, np.float32(g))
        weights.append(w[0].item())
        scales.append(state["scale"].item())
    assert scales == SCALES
    np.testing.assert_allclose(weights, by_hand(), rtol=1e-6)
    assert opt_state["step"].item() == sum(np.isfinite(STEPS))


def test_steps_of_a_module_are_values() -> None:
    """So that nothing that they came from is kept."""
    scaler, opt = rg.amp.GradScaler(**OPTIONS), optim.AdamW(lr=0.1)
    model: Any = nn.MixedPrecision(nn.Linear(2, 1), rg.float16)

    def step(model: Any, opt_state: Any, state: Any) -> Any:
        grads = rg.grad(lambda m: scaler.scale(m(rg.ones((1, 2))).sum(), state))(model)
        return scaler.apply(opt, model, grads, opt_state, state)

    before = model.module.weight.numpy().copy()
    for f in (step, rg.jit(step)):
        after, _, state = f(model, opt.init(model), scaler.init())
        assert not any(p.requires_grad for p in after.parameters())
        assert (after.module.weight.numpy() != before).all()
        assert state["growth_tracker"].item() == 1


@pytest.mark.torch
def test_against_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    theirs = torch.amp.GradScaler("cpu", **OPTIONS)
    w = torch.tensor([1.0], requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.5)
    weights, scales = [], []
    for g in STEPS:
        opt.zero_grad()
        theirs.scale((w * g).sum()).backward()
        theirs.step(opt)
        theirs.update()
        weights.append(w.item())
        scales.append(theirs.get_scale())
    mine = rg.amp.GradScaler(**OPTIONS)
    found = eager(mine)
    np.testing.assert_allclose(found[0], weights, rtol=1e-6)
    assert found[1] == scales
    assert mine.state_dict() == theirs.state_dict()


def test_float16_learns_what_underflows_without_it() -> None:
    """A gradient of 1e-9, below 6e-8, the smallest number of float16."""

    def slope(scale: float) -> float:
        layer = nn.Linear(1, 1, bias=False)
        layer.weight.replace(np.ones((1, 1), np.float32))
        mixed = nn.MixedPrecision(layer, rg.float16)
        opt, scaler = optim.SGD(mixed, lr=1.0), rg.amp.GradScaler(init_scale=scale)
        loss = (mixed(rg.full((1, 1), 1e-3)) * 1e-6).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        return layer.weight.grad.item()

    assert slope(1.0) == 0
    assert slope(65536.0) == pytest.approx(1e-9, rel=0.01)


def test_clipping_between_and_the_order_of_calls() -> None:
    w = rg.tensor([3.0, 4.0], requires_grad=True)
    opt, scaler = optim.SGD([w], lr=1.0), rg.amp.GradScaler(init_scale=1024.0)
    with pytest.raises(GradientError, match="before any step"):
        scaler.update()
    with pytest.raises(GradientError, match="no parameter has a gradient"):
        scaler.step(opt)
    scaler.scale((w * w / 2).sum()).backward()
    scaler.unscale_(opt)
    assert optim.clip_grad_norm([w], 1.0).item() == pytest.approx(5)
    with pytest.raises(GradientError, match="twice since the last update"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(GradientError, match=r"step\(\) was called twice"):
        scaler.step(opt)
    with pytest.raises(GradientError, match="after step"):
        scaler.unscale_(opt)
    scaler.update()
    np.testing.assert_allclose(w.numpy(), [2.4, 3.2], rtol=1e-5)


def test_rows_of_tables_and_trees_of_losses() -> None:
    table = nn.Embedding(10, 2, sparse=True)
    old = table.weight.numpy().copy()
    opt, scaler = optim.SGD(table, lr=1.0), rg.amp.GradScaler(init_scale=16.0)
    scaled = scaler.scale({"loss": table([3, 3]).sum(), "other": rg.tensor(2.0)})
    assert scaled["other"].item() == 32
    scaled["loss"].backward()
    scaler.unscale_(opt)
    assert isinstance(table.weight.grad, nn.RowSparse)
    scaler.step(opt)
    np.testing.assert_allclose(
        (old - table.weight.numpy())[:, 0], 2.0 * (np.arange(10) == 3), atol=1e-6
    )


def test_disabled_and_saved() -> None:
    off = rg.amp.GradScaler(enabled=False)
    assert off.scale(3.0) == 3.0
    assert (off.get_scale(), off.state_dict(), off.is_enabled()) == (1.0, {}, False)
    one, two = rg.amp.GradScaler(**OPTIONS), rg.amp.GradScaler()
    eager(one)
    two.load_state_dict(one.state_dict())
    assert two.state_dict() == one.state_dict()
    assert eager(one) == eager(two)
    with pytest.raises(FormatError, match="growth_factor"):
        two.load_state_dict({"scale": 1.0})
    two.update(4.0)
    assert two.get_scale() == 4
    for name, value in (("growth_factor", 1.0), ("backoff_factor", 1.0), ("init_scale", 0.0)):
        options: dict[str, Any] = {name: value}
        with pytest.raises(OptionError, match=name):
            rg.amp.GradScaler(**options)
