"""Validation: means over samples, metrics of both kinds, evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from retrograd.errors import ArgumentError, ShapeError
from retrograd.train import TrainingRun, fit
from retrograd.train.loop.batches import batches_of
from retrograd.train.loop.evaluation import Evaluation, named_metrics
from retrograd.train.loop.step import TrainingStep

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with rg.backend("reference"):
        yield


class MeanError:
    """A metric with a state, as those of `rg.metrics` are."""

    def init(self) -> dict[str, Any]:
        return {"sum": np.zeros(()), "count": np.zeros(())}

    def step(self, state: Any, predictions: Any, targets: Any) -> Any:
        found = rg.abs(predictions - targets)
        return {"sum": state["sum"] + found.sum(), "count": state["count"] + found.size}

    def result(self, state: Any) -> Any:
        return state["sum"] / state["count"]


class Each:
    """One whose result is no number."""

    def init(self) -> Any:
        return np.zeros(2)

    def step(self, state: Any, predictions: Any, targets: Any) -> Any:
        return state + 1

    def result(self, state: Any) -> Any:
        return state


def worst(model: Any, batch: Any) -> Any:
    return rg.abs(model(batch[0]) - batch[1]).max()


def squares(model: Any, batch: Any) -> Any:
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def rows(count: int) -> tuple[Array, Array]:
    x = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    return x, (x[:, :1] * 2).astype(np.float32)


def model() -> Any:
    return rg.nn.Linear(3, 1, generator=rg.random.Generator(0))


@pytest.mark.parametrize("count", [7, 40, 43])
@pytest.mark.parametrize("listed", [False, True])
def test_means_are_over_samples_whatever_the_batches_are(count: int, listed: bool) -> None:
    x, y = rows(count)
    net = model()
    error = np.asarray(net(x).detach(), np.float64) - y
    programs = TrainingStep(squares, optim.SGD(lr=0.1), net)
    evaluation = Evaluation(squares, programs.evaluating, [MeanError(), worst])
    data: Any = [(x[i : i + 4], y[i : i + 4]) for i in range(0, count, 4)] if listed else (x, y)
    batches = batches_of(data) if listed else batches_of(data, 4, False)
    for _ in range(2):  # again, from the beginning
        found = evaluation(programs.averaged(programs.start), batches)
        assert list(found) == ["loss", "mean_error", "worst"]
        assert found["loss"] == pytest.approx((error**2).mean(), rel=1e-6)
        assert found["mean_error"] == pytest.approx(np.abs(error).mean(), rel=1e-6)
        parts = [np.abs(error[i : i + 4]) for i in range(0, count, 4)]
        mean = sum(p.max() * len(p) for p in parts) / count
        assert found["worst"] == pytest.approx(mean, rel=1e-6)


def test_when_and_under_which_names() -> None:
    seen: list[tuple[int, list[str]]] = []

    class Look:
        def on_validation(self, run: TrainingRun) -> None:
            seen.append((run.step, list(run.metrics)))

    def run(**options: Any) -> TrainingRun:
        seen.clear()
        return fit(
            model(), squares, rows(12), optimizer=optim.SGD(lr=0.1), validation=rows(5),
            metrics={"error": MeanError()}, progress=False, callbacks=Look(), **options,
        )  # fmt: skip

    found = run(epochs=2, batch_size=4)
    assert seen == [(3, ["val_loss", "val_error"]), (6, ["val_loss", "val_error"])]
    assert found.history.steps("val_error") == [3, 6]
    assert found.best is not None
    assert found.best.value == min(found.history["val_loss"])
    run(steps=8, batch_size=4, validate_every=3)
    assert [s for s, _ in seen] == [3, 6, 8]
    run(steps=25, batch_size=4)
    assert [s for s, _ in seen] == [3, 6, 9, 12, 15, 18, 21, 24, 25]


def test_modules_are_in_evaluation_mode_but_the_ones_of_training_stay_as_they_are() -> None:
    g = rg.random.Generator(0)
    net = rg.nn.Sequential(
        rg.nn.Linear(3, 4, generator=g), rg.nn.BatchNorm1d(4), rg.nn.BatchNorm1d(4).eval(),
        rg.nn.Dropout(0.5, generator=g.split()), rg.nn.Linear(4, 1, generator=g),
    )  # fmt: skip
    run = fit(
        net, squares, rows(12), optimizer=optim.SGD(lr=0.1), steps=3, validation=rows(5),
        progress=False,
    )  # fmt: skip
    moved, frozen = run.model[1], run.model[2]
    assert moved.num_batches_tracked.item() == 3
    assert frozen.num_batches_tracked.item() == 0
    assert (run.model.training, moved.training, frozen.training) == (True, True, False)
    batch = tuple(map(rg.asarray, rows(5)))
    expected = squares(run.model.eval(), batch).item()
    assert run.metrics["val_loss"] == pytest.approx(expected, rel=1e-6)
    whole = fit(
        model().eval(), squares, rows(12), optimizer=optim.SGD(lr=0.1), steps=1, progress=False
    )
    assert not whole.model.training


def test_predictions_of_other_batches() -> None:
    x, y = rows(6)

    def run(**options: Any) -> TrainingRun:
        return fit(
            model(), lambda m, b: ((m(b["x"]) - b["y"]) ** 2).mean(), {"x": x, "y": y},
            optimizer=optim.SGD(lr=0.1), steps=1, validation={"x": x, "y": y}, progress=False,
            metrics=MeanError(), **options,
        )  # fmt: skip

    found = run(predict=lambda m, b: (m(b["x"]), b["y"]))
    error = np.abs(np.asarray(found.model(x).detach()) - y).mean()
    assert found.metrics["val_mean_error"] == pytest.approx(error, rel=1e-6)
    with pytest.raises(ArgumentError, match="predict=lambda"):
        run()


def test_metrics_that_are_none() -> None:
    assert list(named_metrics([worst, MeanError()])) == ["worst", "mean_error"]
    for given, match in (
        (MeanError, r"not the class MeanError"),
        ([worst, worst], "same name"),
        ({"loss": worst}, "another name"),
        ([1.0], "is a function"),
        ("accuracy", r"rg.metrics.Accuracy\(\), not 'accuracy'"),
    ):
        with pytest.raises(ArgumentError, match=match):
            named_metrics(given)
    programs = TrainingStep(squares, optim.SGD(lr=0.1), model())
    for metric, shape in ((Each(), r"\(2,\)"), (lambda m, b: m(b[0]), r"\(5, 1\)")):
        evaluation = Evaluation(squares, programs.evaluating, {"m": metric})
        with pytest.raises(ShapeError, match=f"'m' is .*{shape}"):
            evaluation(programs.averaged(programs.start), batches_of(rows(5)))
    with pytest.raises(ArgumentError, match="again and again"):
        fit(model(), squares, rows(5), optimizer=optim.SGD(lr=0.1), steps=1, validation=iter([]))


def test_on_a_mesh_batches_are_divided_as_those_that_are_learned_from() -> None:
    class Placement:
        """Counts what it is given to divide."""

        def __init__(self) -> None:
            self.seen: list[tuple[int, tuple[int, ...]]] = []

        def batch(self, arrays: Any, lead: int = 0) -> Any:
            self.seen += [(lead, x.shape) for x in arrays]
            return arrays

    x = np.arange(38, dtype=np.float32).reshape(19, 2)
    placement, model = Placement(), rg.nn.Linear(2, 1)
    leaves, structure = rg.tree.flatten(model)
    loss = lambda m, b: (m(b[0]) ** 2).mean()
    evaluation = Evaluation(loss, structure, placement=placement)  # type: ignore[arg-type]
    found = evaluation(tuple(leaves), batches_of((x, x[:, 0]), 2))
    expected = (model(x) ** 2).mean().item()
    assert found["loss"] == pytest.approx(expected, rel=1e-6)
    alone, eight, last = [(0, (2, 2)), (0, (2,))], [(1, (8, 2, 2)), (1, (8, 2))], [(0, (1, 2))]
    assert placement.seen == [*alone, *eight, *last, (0, (1,))]


def test_metrics_of_several_numbers_for_each_sample() -> None:
    """Regression to several numbers, of which nobody has said how many there are."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(23, 3)), rng.normal(size=(23, 5))
    model = rg.nn.Linear(3, 5, generator=rg.random.Generator(0)).double()
    run = fit(
        model, rg.nn.MSELoss(), (x, y), optimizer=rg.optim.SGD(lr=0.0), steps=1, batch_size=10,
        validation=(x, y), metrics=[rg.metrics.MAE(), rg.metrics.R2()], progress=False,
    )  # fmt: skip
    predictions = model(x).detach().numpy()
    assert run.metrics["val_mae"] == pytest.approx(np.abs(predictions - y).mean(), rel=1e-12)
    assert run.metrics["val_r2"] == pytest.approx(rg.metrics.r2(predictions, y).item(), rel=1e-9)
