import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.train import tabular
from retrograd.train.tabular import Table, TabularConfig, load_run, predict, report, write_pictures
from retrograd.train.tabular.recipe import measured, prepared

SHORT = TabularConfig("y", epochs=40, batch=32, width=16, depth=1, dropout=0.0, lr=1e-2)


def made(n: int = 300) -> Table:
    """y is the sum of x and what stands for c; kind is whether that is positive."""
    rng = np.random.default_rng(0)
    c = rng.choice(["low", "high"], n).astype(object)
    x = rng.normal(size=n)
    y = 10 * (x + np.where(c == "high", 2, -2)) + 50
    kind = np.where(y > 50, "yes!", "no!").astype(object)
    return Table("a.csv", {"c": c, "x": x, "y": y, "kind": kind}, frozenset())


@pytest.mark.slow
def test_a_number_is_learned(tmp_path: Path) -> None:
    outcome = tabular.train(made(), replace(SHORT, leave_out=("kind",)), tmp_path)
    found = measured(outcome)
    assert found["R2"] > 0.95
    true, predicted = outcome.true, outcome.predicted
    np.testing.assert_allclose(found["RMSE"], np.sqrt(((true - predicted) ** 2).mean()))
    text = report(outcome)
    assert "'y' is a number" in text
    assert "kind: left out, as it was told" in text
    assert write_pictures(outcome, tmp_path).read_text().count("<circle") == len(outcome.test)
    target, values, _ = predict(tmp_path, made())
    assert target.classes is None
    np.testing.assert_allclose(values[outcome.test], predicted, rtol=1e-6)


def test_classes_are_learned_and_predicted(tmp_path: Path) -> None:
    outcome = tabular.train(made(), replace(SHORT, target="kind", leave_out=("y",)), tmp_path)
    assert measured(outcome)["accuracy"] > 0.9
    assert "'kind' is 2 classes" in report(outcome)
    assert write_pictures(outcome, tmp_path).read_text().count("<rect") == 1 + 4
    target, values, shares = predict(tmp_path, made())
    assert target.classes == ["no!", "yes!"]
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
    assert values[outcome.test].tolist() == outcome.predicted.tolist()
    assert load_run(tmp_path)[1].columns[0].values == ["high", "low"]
    other = Table("b.csv", {"c": np.array(["new", None], object), "x": np.zeros(2)}, frozenset())
    assert len(predict(tmp_path, other)[1]) == 2


@pytest.mark.slow
def test_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    config = replace(SHORT, epochs=6, leave_out=("kind",))
    whole = tabular.train(made(), config, tmp_path / "a")

    class Stop:
        """A reporter that presses Ctrl-C on the way."""

        def start(self, step: int, steps: int | None) -> None: ...
        def update(self, step: int, loss: float, tokens: int) -> None:
            if step == 12:
                signal.raise_signal(signal.SIGINT)

        def message(self, text: str) -> None: ...
        def close(self) -> None: ...

    stopped = tabular.train(made(), config, tmp_path / "b", reporter=Stop())
    assert 12 <= stopped.run.step < whole.run.step
    again = tabular.train(made(), config, tmp_path / "b", resume=True)
    np.testing.assert_array_equal(again.scores, whole.scores)
    with pytest.raises(rg.FormatError, match="cannot go on"):
        tabular.train(made(), replace(config, lr=0.5), tmp_path / "b", resume=True)


def test_what_the_target_is() -> None:
    n = np.repeat(np.arange(30.0), 10)
    whole = Table("a.csv", {"x": n, "few": n % 3, "many": n}, frozenset(["few", "many"]))
    assert prepared(whole, TabularConfig("few"))[1].classes == ["0", "1", "2"]
    assert prepared(whole, TabularConfig("many"))[1].classes is None
    assert prepared(whole, TabularConfig("few", "regression"))[1].classes is None
    assert len(prepared(whole, TabularConfig("many", "classification"))[1].classes or ()) == 30


def test_rows_without_a_target_are_left_out() -> None:
    table = made(40)
    table.columns["y"][::2] = np.nan
    rows, target, parts = prepared(table, TabularConfig("y"))
    assert rows.tolist() == list(range(1, 40, 2))
    assert sum(map(len, parts)) == 20
    np.testing.assert_allclose(target.mean, table.columns["y"][rows[parts[0]]].mean())


def test_targets_that_cannot_be_learned() -> None:
    table = made(40)
    table.columns["same"] = np.ones(40)
    table.columns["none"] = np.full(40, np.nan)
    table.columns["each"] = np.array([f"n{i}" for i in range(40)], object)
    for target, told in (
        ("same", "is 1 in all rows"), ("none", "is empty in all rows"), ("each", "in three rows"),
    ):  # fmt: skip
        with pytest.raises(rg.FormatError, match=told):
            prepared(table, TabularConfig(target))
    with pytest.raises(rg.FormatError, match="is text, such as"):
        prepared(table, TabularConfig("kind", "regression"))
    with pytest.raises(rg.ArgumentError, match="near to it: kind"):
        prepared(table, TabularConfig("kinds"))


@pytest.mark.parametrize("options", [{"epochs": 0}, {"lr": 0.0}, {"task": "ranking"}])
def test_options_out_of_range(options: dict) -> None:
    with pytest.raises(rg.OptionError):
        TabularConfig("y", **options)
