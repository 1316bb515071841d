"""The programs of a step: one step, many in a call, and on one batch again give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim, pytree
from retrograd.errors import ShapeError
from retrograd.train.loop.averaging import averaging
from retrograd.train.loop.batches import batches_of
from retrograd.train.loop.step import Leaves, TrainingStep, in_mode


def squares(model: Any, batch: Any) -> Any:
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def network() -> Any:
    g = rg.random.Generator(0)
    return rg.nn.Sequential(
        rg.nn.Linear(3, 4, generator=g), rg.nn.BatchNorm1d(4),
            rg.nn.Dropout(0.5, generator=g.split()),
        rg.nn.Linear(4, 1, generator=g),
    )  # fmt: skip


def bits(carry: Leaves) -> list[bytes]:
    return [x.numpy().tobytes() for x in carry]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_many_steps_in_a_call_have_the_bits_of_single_ones(backend: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 6, 3)).astype(np.float32)
    y = x[..., :1] * 2
    with rg.backend(backend), rg.no_grad():
        programs = TrainingStep(
            squares, optim.Adam(lr=0.1), network(), ema=averaging(0.9, network()),
            clip_grad_norm=0.5, clip_grad_value=0.1,
        )  # fmt: skip
        (group,) = batches_of(list(zip(x, y, strict=True))).take(5)
        carry, losses = programs.start, []
        for i in range(5):
            carry, loss, *_ = programs.one(carry, group, i)
            losses += loss.tolist()
        many = programs.many(programs.start, group, 0, 5)
        series = programs.series(programs.start, group, 0, 5)
        for found in (many, series):
            assert found.losses.tolist() == losses
            assert bits(found.carry) == bits(carry)

        pairs = [(group.batch(i), group.structure) for i in range(4)]
        twice, first = programs.start, []
        for some in (pairs[:2], pairs[2:]):
            twice, loss, *_ = programs.accumulated(twice, some)
            first += loss.tolist()
        looped = programs.many(programs.start, group, 0, 4, each=2)
        series = programs.series(programs.start, group, 0, 4, each=2)
        for found in (looped, series):
            assert found.losses.tolist() == first
            assert bits(found.carry) == bits(twice)


def test_what_a_loss_gives_besides_is_stacked_in_each_way() -> None:
    def loss(model: Any, batch: Any) -> Any:
        value = squares(model, batch)
        return value, {"half": value / 2, "rows": rg.asarray(batch[0].shape[0])}

    with rg.backend("reference"), rg.no_grad():
        programs = TrainingStep(loss, optim.SGD(lr=0.1), rg.nn.Linear(3, 1))
        x = np.ones((4, 2, 3), np.float32)
        (group,) = batches_of(list(zip(x, x[..., :1], strict=True))).take(4)
        done = [programs.many(programs.start, group, 0, 4),
                programs.series(programs.start, group, 0, 4)]  # fmt: skip
        for found in done:
            assert found.aux["half"].numpy().tolist() == (done[0].losses / 2).tolist()
            assert found.aux["rows"].numpy().tolist() == [2] * 4


def test_modes() -> None:
    model = network()
    leaves, _ = pytree.flatten(model)
    evaluating = pytree.unflatten(in_mode(model, False), leaves)
    assert not any(m.training for m in evaluating.modules())
    assert all(m.training for m in model.modules())
    assert not any(m.training for m in pytree.unflatten(in_mode({"m": model}, False), leaves)["m"])
    model.eval()
    assert all(m.training for m in pytree.unflatten(in_mode(model, True), leaves).modules())


def test_a_loss_that_gives_the_model_more_tensors() -> None:
    def loss(m: Any, batch: Any) -> Any:
        m.seen = batch[0].mean()
        return squares(m, batch)

    with rg.backend("reference"), rg.no_grad():
        programs = TrainingStep(loss, optim.SGD(lr=0.1), network())
        (group,) = batches_of((np.ones((6, 3), np.float32), np.ones((6, 1), np.float32))).take(1)
        with pytest.raises(ShapeError, match="in its constructor"):
            programs.one(programs.start, group, 0)
