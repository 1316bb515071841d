"""Accumulation: the steps of batches that are larger."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)


def model_of() -> nn.Linear:
    return nn.Linear(3, 2, generator=rg.random.Generator(1))


def loss(model: Any, x: Any) -> Any:
    return (model(x) ** 2).mean()


def test_steps_of_larger_batches_in_both_forms() -> None:
    whole, parts, pure = model_of(), model_of(), model_of()
    one = optim.Momentum(whole, lr=0.1)
    many = optim.MultiSteps(optim.Momentum(parts, lr=0.1), every=3)
    functional = optim.MultiSteps(optim.Momentum(lr=0.1), every=3)
    state = functional.init(pure)
    step = rg.jit(lambda m, s, x: functional.update(m, rg.grad(loss)(m, x), s))
    for _ in range(2):
        one.zero_grad()
        loss(whole, X).backward()
        one.step()
        before = parts.weight.numpy().copy()
        for k in range(3):
            x = X[4 * k : 4 * k + 4]
            many.zero_grad()
            loss(parts, x).backward()
            many.step()
            pure, state = step(pure, state, x)
            moved = not np.array_equal(parts.weight.numpy(), before)
            assert moved == (k == 2)
    for p, q, r in zip(whole.parameters(), parts.parameters(), pure.parameters(), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(r.numpy(), p.numpy(), rtol=2e-5, atol=1e-6)
    assert state["optimizer"]["step"].item() == 2
    assert state["held"].item() == 0


def test_sum_and_rest() -> None:
    w: Any = rg.tensor([0.0], requires_grad=True)
    opt = optim.MultiSteps(optim.SGD([w], lr=1.0), every=4, mean=False)
    for _ in range(3):
        opt.zero_grad()
        w.sum().backward()
        opt.step()
    assert w.tolist() == [0.0]
    w.grad = None
    (2 * w).sum().backward()
    opt.step(force=True)
    assert w.tolist() == [-2.0]
    opt.zero_grad()
    assert w.grad is None


def test_resume_between_the_batches() -> None:
    w = rg.tensor([1.0], requires_grad=True)
    opt = optim.MultiSteps(optim.Momentum([w], lr=0.5), every=2)
    (w * 3).sum().backward()
    opt.step()
    again = rg.tensor([1.0], requires_grad=True)
    other = optim.MultiSteps(optim.Momentum([again], lr=0.5), every=2)
    other.load_state_dict(opt.state_dict())
    for p, o in ((w, opt), (again, other)):
        o.zero_grad()
        (p * 5).sum().backward()
        o.step()
    assert w.tolist() == again.tolist() == [-1.0]


def test_dropout_moves_on_while_it_waits() -> None:
    model = nn.Dropout(0.5)
    params = {"model": model, "w": rg.ones(3)}
    opt = optim.MultiSteps(optim.SGD(lr=0.1), every=2)
    new, _ = opt.update(params, params, opt.init(params))
    x = rg.ones(64)
    assert not np.array_equal(new["model"](x).numpy(), model(x).numpy())


def test_rows_of_a_table() -> None:
    table = nn.Parameter(np.ones((4, 1)))
    opt = optim.MultiSteps(optim.SGD([table], lr=1.0), every=2)
    for index in ([0, 1], [1, 1]):
        opt.zero_grad()
        nn.functional.embedding(rg.tensor(index), table, sparse=True).sum().backward()
        opt.step()
    assert table.tolist() == [[0.5], [-0.5], [1.0], [1.0]]


def test_refusals() -> None:
    w = rg.tensor([1.0], requires_grad=True)
    for bad in (0, 1.5, True):
        with pytest.raises(rg.OptionError, match="every is a whole number"):
            optim.MultiSteps(optim.SGD([w]), bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes an optimizer"):
        optim.MultiSteps([w], 2)  # type: ignore[arg-type]
    opt = optim.MultiSteps(optim.SGD([w]), 2)
    with pytest.raises(rg.FormatError, match="MultiSteps"):
        opt.load_state_dict(optim.SGD([w]).state_dict())
    with pytest.raises(rg.FormatError, match=r"MultiSteps.init\(\)"):
        opt.update([w], [w], {})
