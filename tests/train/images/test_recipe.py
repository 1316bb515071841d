import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.images import ImageConfig, ImageTask, digits, load_model, predict, report
from retrograd.train.images import train as train_on
from retrograd.train.split import stratified_split

SHORT = ImageConfig(epochs=2, width=2, batch=32)


@pytest.fixture(scope="module")
def task() -> ImageTask:
    """The first digits below 3."""
    found = digits()
    where = np.flatnonzero(found.labels < 3)[:150]
    return replace(
        found, classes=["0", "1", "2"], images=found.images[where], labels=found.labels[where]
    )


@pytest.mark.slow
def test_digits_are_read(tmp_path: Path) -> None:
    outcome = train_on(digits(), ImageConfig(), tmp_path)
    assert outcome.accuracy >= 0.98
    assert set(outcome.test).isdisjoint(stratified_split(digits().labels, 0)[0])


@pytest.mark.slow
def test_a_run_leaves_what_is_needed_to_use_it(task: ImageTask, tmp_path: Path) -> None:
    outcome = train_on(task, SHORT, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} >= {"config.toml", "log.jsonl", "loss.svg"}
    assert "width = 2" in (tmp_path / "config.toml").read_text()
    model, known = load_model(tmp_path)
    assert (known.classes, known.white) == (["0", "1", "2"], 16)
    x = task.pixels(outcome.test)
    np.testing.assert_array_equal(model(x).numpy().argmax(1), outcome.predicted)
    text = report(outcome)
    assert f"accuracy {outcome.accuracy:.1%}" in text
    rows = [line.split()[1:] for line in text.splitlines()[5:8]]
    true = task.labels[outcome.test]
    assert [sum(map(int, row)) for row in rows] == np.bincount(true).tolist()
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed (extra: data)")
    file = tmp_path / "some.png"
    assert isinstance(task.images, np.ndarray)
    pillow.fromarray(task.images[0, 0] * 15).save(file)
    ((name, share),) = predict(tmp_path, [file])
    assert name in known.classes
    assert 1 / 3 <= share <= 1


@pytest.mark.slow
def test_a_run_goes_on_to_the_same_bits(task: ImageTask, tmp_path: Path) -> None:
    whole = train_on(task, SHORT, tmp_path / "a")

    class Stop:
        """A reporter that presses Ctrl-C after the first epoch."""

        def start(self, step: int, steps: int | None) -> None: ...
        def update(self, step: int, loss: float, tokens: int) -> None:
            if step == 3:
                signal.raise_signal(signal.SIGINT)

        def message(self, text: str) -> None: ...
        def close(self) -> None: ...

    stopped = train_on(task, SHORT, tmp_path / "b", reporter=Stop())
    assert 3 <= stopped.run.step < whole.run.step
    again = train_on(task, SHORT, tmp_path / "b", resume=True)
    assert again.run.step == whole.run.step
    for name, x in whole.model.state_dict().items():
        np.testing.assert_array_equal(again.model.state_dict()[name], x, err_msg=name)
    with pytest.raises(rg.FormatError, match="cannot go on"):
        train_on(task, replace(SHORT, lr=0.1), tmp_path / "b", resume=True)


def test_too_few_images(task: ImageTask, tmp_path: Path) -> None:
    assert isinstance(task.images, np.ndarray)
    few = replace(task, images=task.images[:4], labels=np.array([0, 0, 1, 1]))
    with pytest.raises(rg.FormatError, match="none can be held out"):
        train_on(few, SHORT, tmp_path)


@pytest.mark.parametrize("options", [{"epochs": 0}, {"lr": -1.0}, {"dropout": 1.0}])
def test_options_out_of_range(options: dict) -> None:
    with pytest.raises(rg.OptionError):
        ImageConfig(**options)
