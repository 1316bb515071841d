"""What a training run shows, on a terminal and elsewhere."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from retrograd.train.progress import Bar, Lines, Meter, duration, reporter


def clock() -> tuple[Callable[[], float], list[float]]:
    now = [0.0]
    return lambda: now[0], now


def test_speed_and_remaining_time_leave_out_the_compiling_first_step() -> None:
    read, now = clock()
    meter = Meter(read)
    meter.start(0, 11)
    now[0] = 100.0
    meter.update(1, 3.0, 7)
    assert meter.remaining is None
    for step in range(2, 7):
        now[0] += 2.0
        meter.update(step, 3.0, 10)
    assert meter.speed == pytest.approx(5.0)
    assert meter.remaining == pytest.approx(10.0)
    assert meter.loss == pytest.approx(3.0)
    assert str(meter) == "loss 3.0000  5 tokens/s  ETA 0:10"


def test_the_loss_is_smoothed() -> None:
    meter = Meter()
    meter.start(0, 1000)
    for step in range(1, 500):
        meter.update(step, 2.0 + (step % 2), 1)
    assert meter.loss == pytest.approx(2.5, abs=0.02)


def test_durations() -> None:
    assert [duration(s) for s in (0, 9.4, 75, 3599.6)] == ["0:00", "0:09", "1:15", "1:00:00"]


def test_lines_for_a_file() -> None:
    file = io.StringIO()
    lines = reporter(Console(file=file))
    assert isinstance(lines, Lines)
    lines.start(0, 20)
    for step in range(1, 21):
        lines.update(step, 1.0, 5)
    lines.message("[not markup] " + "long " * 50)
    lines.close()
    text = file.getvalue().splitlines()
    assert len(text) == 11
    assert text[0].startswith("step  2/20  loss 1.0000  ")
    assert text[9].startswith("step 20/20")
    assert text[10].startswith("[not markup] long long")


def test_a_bar_on_a_terminal() -> None:
    file = io.StringIO()
    bar = reporter(Console(file=file, force_terminal=True, width=100))
    assert isinstance(bar, Bar)
    bar.start(5, 20)
    for step in range(6, 21):
        bar.update(step, 1.25, 5)
    bar.message("a message")
    bar.close()
    bar.close()
    text = file.getvalue()
    assert "step 5/20" in text
    assert "step 20/20" in text
    assert "loss 1.2500" in text
    assert "ETA 0:00" in text
    assert "a message" in text
