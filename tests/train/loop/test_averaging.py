"""Averages of weights along a run, against the stateful forms beside a loop by hand."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import OptionError

X = np.random.default_rng(0).normal(size=(24, 3))


def network() -> Any:
    rng = rg.random.Generator(0)
    return nn.Sequential(
        nn.Linear(3, 4, generator=rng, dtype="float64"), nn.BatchNorm1d(4, dtype="float64")
    )


def loss(model: Any, batch: Any) -> Any:
    return ((model(batch) - 1) ** 2).mean()


def fitted(model: Any, ema: Any, steps: int = 4) -> Any:
    return rg.train.fit(
        model, loss, X, optimizer=optim.SGD(model, lr=0.1), steps=steps, batch_size=8,
        shuffle=False, ema=ema, progress=False,
    )  # fmt: skip


def by_hand(model: Any, update: Any, steps: int = 4) -> None:
    opt = optim.SGD(model, lr=0.1)
    for i in range(steps):
        opt.zero_grad()
        loss(model, rg.tensor(X[8 * (i % 3) : 8 * (i % 3) + 8])).backward()
        opt.step()
        update()


def same(a: Any, b: Any) -> None:
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"warmup": True}, {"use_buffers": False}], ids=str)
def test_an_ema_of_the_model_holds_the_average_after_the_run(options: Any) -> None:
    mine, theirs = network(), network()
    a = optim.EMA(mine, decay=0.7, **options)
    b = optim.EMA(theirs, decay=0.7, **options)
    run = fitted(mine, a)
    by_hand(theirs, b.update)
    same(mine, theirs)
    assert a.num_updates == b.num_updates == 4
    same(a.module, b.module)
    same(run.ema_model, b.module)
    fitted(mine, a, steps=2)  # goes on
    assert a.num_updates == 6


def test_an_ema_of_nothing_gives_the_options() -> None:
    mine, theirs = network(), network()
    b = optim.EMA(theirs, decay=0.7)
    run = fitted(mine, optim.EMA(decay=0.7))
    by_hand(theirs, b.update)
    same(run.ema_model, b.module)
    number = fitted(network(), 0.7)
    weights = [r.ema_model[0].weight.detach().numpy() for r in (run, number)]
    assert np.array_equal(*weights)


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize("average", [None, optim.swa_utils.get_ema_avg_fn(0.6)])
def test_an_averaged_model(buffers: bool, average: Any) -> None:
    mine, theirs = network(), network()
    a, b = (optim.AveragedModel(m, avg_fn=average, use_buffers=buffers) for m in (mine, theirs))
    run = fitted(mine, a)
    by_hand(theirs, lambda: b.update_parameters(theirs))
    assert a.n_averaged.item() == 4
    same(run.ema_model, b.module)
    for (name, p), q in zip(a.module.named_parameters(), b.module.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-12, err_msg=name)


def test_what_is_no_average_of_this_model() -> None:
    model = network()
    with pytest.raises(OptionError, match="not in the model"):
        fitted(model, optim.EMA(copy.deepcopy(model)))
    with pytest.raises(OptionError, match="of another model"):
        fitted(model, optim.AveragedModel(nn.Linear(2, 2)))
    for wrong in (1.0, -0.1, True, "0.9"):
        with pytest.raises(OptionError, match="decay of an average"):
            fitted(model, wrong)
