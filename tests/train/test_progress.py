"""What a training run shows, on a terminal and elsewhere."""

import io
import sys
from collections.abc import Callable

import pytest

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
    lines = reporter(file)
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


class Terminal(io.StringIO):
    """What was written to a terminal, and what its screen shows of it."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        lines, column = [""], 0
        for c in self.getvalue():
            if c == "\n":
                lines.append("")
            if c in "\r\n":
                column = 0
            else:
                lines[-1] = lines[-1][:column] + c + lines[-1][column + 1 :]
                column += 1
        return [line.rstrip() for line in lines]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_a_bar_on_a_terminal(terminal: Terminal) -> None:
    bar = reporter(terminal)
    assert isinstance(bar, Bar)
    bar.start(5, 20)
    assert terminal.screen()[-1].startswith("step 5/20  ━")
    assert terminal.screen()[-1].endswith("─  compiling")
    for step in range(6, 21):
        bar.update(step, 1.25, 5)
    bar.message("a message")
    bar.close()
    bar.close()
    message, last, end = terminal.screen()
    assert (message, end) == ("a message", "")
    assert last.startswith("step 20/20  ━")
    assert "─" not in last
    assert "loss 1.2500" in last
    assert "ETA 0:00" in last
    assert len(last) == 79


def test_what_is_printed_goes_above_the_bar(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)  # which is no terminal, so that it stays as it is
    bar = reporter(terminal)
    bar.start(0, None)
    sys.stdout.write("half ")
    sys.stdout.write("a line\n")
    sys.stdout.write("not ended")
    sys.stderr.write("elsewhere\n")
    assert isinstance(reporter(sys.stdout), Lines)
    bar.close()
    assert sys.stdout is terminal
    assert sys.stderr is file
    printed, rest, last, end = terminal.screen()
    assert (printed, rest, end) == ("half a line", "not ended", "")
    assert last.startswith("step 0  loss nan")
    assert file.getvalue() == "elsewhere\n"


def test_lines_where_a_terminal_cannot_go_back(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(reporter(terminal), Lines)


def test_a_bar_in_plain_characters_where_others_cannot_be_written(terminal: Terminal) -> None:
    class Latin(Terminal):
        def write(self, text: str) -> int:
            text.encode("latin-1")
            return super().write(text)

    latin = Latin()
    bar = Bar(latin)
    bar.start(1, 2)
    bar.close()
    assert "##" in latin.getvalue()
    assert "--" in latin.getvalue()


@pytest.mark.parametrize("columns", ["1", "8", "30"])
def test_a_bar_fits_into_a_narrow_terminal(
    columns: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    bar = Bar(terminal)
    bar.start(1, 2000)
    bar.close()
    assert max(map(len, terminal.screen())) < max(int(columns), 2)
