"""Optimizers that were made for a model: they and it change as `step()` changes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim, pytree
from retrograd.errors import OptionError
from retrograd.train import TrainingRun, fit

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def rows() -> tuple[Array, Array]:
    x = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    return x, (x[:, :1] * 2 - x[:, 1:2]).astype(np.float32)


def cut(data: tuple[Array, Array], size: int) -> list[tuple[Array, Array]]:
    x, y = data
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def squares(model: Any, batch: Any) -> Any:
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(rg.asarray(x).detach()).tobytes() for x in pytree.flatten(tree)[0]]


def run_of(model: Any, data: Any, **options: Any) -> TrainingRun:
    return fit(model, squares, data, progress=False, **options)


def test_an_optimizer_made_for_the_model_changes_it_as_its_steps_do() -> None:
    def make() -> Any:
        return rg.nn.Linear(3, 1, generator=rg.random.Generator(0))

    by_steps, fitted = make(), make()
    opt = optim.Adam(by_steps, lr=0.05)
    for batch in cut(rows(), 6) * 2:
        opt.zero_grad()
        squares(by_steps, batch).backward()
        opt.step()
    mine = optim.Adam(fitted, lr=0.05)
    for _ in range(2):  # the second goes on where the first has ended
        run = run_of(fitted, cut(rows(), 6), optimizer=mine, epochs=1)
    assert bits(fitted) == bits(by_steps) == bits(run.model)
    state = [s["exp_avg"].tolist() for s in mine.state_dict()["state"].values()]
    assert state == [s["exp_avg"].tolist() for s in opt.state_dict()["state"].values()]
    with pytest.raises(OptionError, match="made for 2 parameters, of which 0"):
        run_of(make(), rows(), optimizer=mine, steps=1)


def test_statistics_and_generators_of_the_model_change_too(tmp_path: Path) -> None:
    def make() -> Any:
        g = rg.random.Generator(0)
        return rg.nn.Sequential(
            rg.nn.Linear(3, 4, generator=g), rg.nn.BatchNorm1d(4),
            rg.nn.Dropout(0.5, generator=g.split()),
            rg.nn.Linear(4, 1, generator=g),
        )  # fmt: skip

    model = make()
    run = run_of(model, cut(rows(), 6), optimizer=optim.SGD(model, lr=0.1), epochs=2)
    assert bits(model) == bits(run.model)
    assert model[1].num_batches_tracked.item() == 8
    assert bits(
        run_of(make(), cut(rows(), 6), optimizer=optim.SGD(lr=0.1), epochs=2).model
    ) == bits(model)
    squares(model, rows()).backward()  # its parameters learn on
    assert model[0].weight.grad is not None


def test_tensors_in_a_list() -> None:
    w = rg.tensor([1.0], requires_grad=True)
    fit(
        [w], lambda p, b: (p[0] * b).sum(), [np.ones(1, np.float32)],
        optimizer=optim.SGD([w], lr=0.5), epochs=1, progress=False,
    )  # fmt: skip
    assert w.tolist() == [0.5]
    assert w.requires_grad


def test_a_run_that_fails_leaves_what_it_has_made() -> None:
    class Fails:
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 2:
                raise KeyError

    models = []
    for options in ({"callbacks": [Fails()]}, {"steps": 2}):
        model = rg.nn.Linear(3, 1, generator=rg.random.Generator(0))
        models.append(model)
        given: dict[str, Any] = {"steps": 4, **options}
        try:
            run_of(model, cut(rows(), 6), optimizer=optim.SGD(model, lr=0.1), **given)
        except KeyError:
            assert "callbacks" in options
    assert bits(models[0]) == bits(models[1])
