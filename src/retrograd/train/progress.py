"""Showing how training goes: a bar on a terminal and below the cell of a notebook, lines
elsewhere."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from retrograd import notebook
from retrograd.notebook.cell import Shown, in_notebook


class Reporter(Protocol):
    """What a training loop tells."""

    def start(self, step: int, steps: int | None) -> None:
        """Training begins, or goes on, at a step of so many; None where nobody knows."""

    def update(self, step: int, loss: float, tokens: int) -> None:
        """So many steps are done; those since the last update had this loss, on average, and this
        many tokens together."""

    def message(self, text: str) -> None:
        """Something to read."""

    def close(self) -> None:
        """Training has ended, for whatever reason."""


class Silent:
    """Tells nobody."""

    def start(self, step: int, steps: int | None) -> None: ...
    def update(self, step: int, loss: float, tokens: int) -> None: ...
    def message(self, text: str) -> None: ...
    def close(self) -> None: ...


LAST = 20  # messages below a bar in a notebook
DECAY = 0.98  # of the weight of a loss, with each step: an average over about 50 steps


class Meter:
    """Smoothed loss, tokens (or what a step consists of) per second and the time that remains.

    The loss is an exponential average, `sum DECAY^k loss / sum DECAY^k` over steps; speed is
    measured since the first update, before which there was compiled.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, unit: str = "tokens"
    ) -> None:
        self._clock, self._unit = clock, unit
        self.start(0, 0)

    def start(self, step: int, steps: int | None) -> None:
        self._sum = self._weight = 0.0
        self.step = step
        self._first: int | None = None  # the step of the first update
        self._steps = steps
        self._tokens = 0
        self._started = self._clock()

    def update(self, step: int, loss: float, tokens: int) -> None:
        kept = DECAY ** (step - self.step)
        weight = (1 - kept) / (1 - DECAY)  # of the steps since the last update
        self._sum = kept * self._sum + weight * loss
        self._weight = kept * self._weight + weight
        self.step = step
        if self._first is None:
            self._first, self._started = step, self._clock()
        else:
            self._tokens += tokens

    @property
    def loss(self) -> float:
        """The smoothed loss."""
        return self._sum / self._weight if self._weight else float("nan")

    @property
    def speed(self) -> float:
        """Tokens per second."""
        elapsed = self._clock() - self._started
        return self._tokens / elapsed if elapsed > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds until the end; None before that can be told."""
        steps = 0 if self._first is None else self.step - self._first
        if steps < 1 or self._steps is None:
            return None
        return (self._clock() - self._started) / steps * (self._steps - self.step)

    def __str__(self) -> str:
        eta = "?" if self.remaining is None else duration(self.remaining)
        return f"loss {self.loss:.4f}  {self.speed:,.0f} {self._unit}/s  ETA {eta}"


def duration(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any.

    >>> duration(59.6), duration(3601)
    ('1:00', '1:00:01')
    """
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


class Lines:
    """A line for each tenth of the way, or whenever the steps have doubled where nobody knows how
    many there will be: for files and pipes."""

    def __init__(self, file: TextIO, unit: str = "tokens") -> None:
        self._file = file
        self._meter = Meter(unit=unit)
        self._steps: int | None = None
        self._next = 1

    def start(self, step: int, steps: int | None) -> None:
        self._meter.start(step, steps)
        self._steps = steps
        self._plan(step)

    def _plan(self, step: int) -> None:
        """When the next line is due: at a tenth; where nobody knows, at twice as many steps."""
        every = max(step, 1) if self._steps is None else max(self._steps // 10, 1)
        self._next = (step // every + 1) * every

    def update(self, step: int, loss: float, tokens: int) -> None:
        self._meter.update(step, loss, tokens)
        if step >= self._next or step == self._steps:
            self._plan(step)
            of = "" if self._steps is None else f"/{self._steps}"
            self.message(f"step {step:>{max(len(of) - 1, 0)}}{of}  {self._meter}")

    def message(self, text: str) -> None:
        print(text, file=self._file, flush=True)

    def close(self) -> None: ...


class Bar:
    """A bar that is redrawn in place, messages and what is printed meanwhile above it."""

    def __init__(self, file: TextIO, unit: str = "tokens") -> None:
        self._file = file
        self._meter = Meter(unit=unit)
        self._steps: int | None = None
        self._numbers = ""
        self._drawn = 0.0
        self._replaced: dict[str, TextIO] | None = None  # None where nothing is shown

    def start(self, step: int, steps: int | None) -> None:
        self._meter.start(step, steps)
        self._steps = steps
        self._numbers = "compiling"
        if self._replaced is None:
            self._replaced = {}
            for name in ("stdout", "stderr"):
                stream: TextIO = getattr(sys, name)
                if stream is not None and stream.isatty():
                    self._replaced[name] = stream
                    setattr(sys, name, _Above(self, stream))
        self._draw()

    def update(self, step: int, loss: float, tokens: int) -> None:
        self._meter.update(step, loss, tokens)
        if time.perf_counter() - self._drawn > 0.1:
            self._numbers = str(self._meter)
            self._draw()

    def _draw(self, end: str = "") -> None:
        room = shutil.get_terminal_size().columns - 1
        line = bar_line(self._meter.step, self._steps, self._numbers, room)
        try:
            self._file.write(f"\r{line}{end}")
        except UnicodeEncodeError:
            self._file.write(f"\r{line.replace(DONE, '#').replace(TO_DO, '-')}{end}")
        self._file.flush()
        self._drawn = time.perf_counter()

    def message(self, text: str) -> None:
        self.above(f"{text}\n", self._file)

    def above(self, text: str, file: TextIO) -> None:
        """Write whole lines to a file, in the place of the bar, which moves down."""
        if self._replaced is not None:
            self._file.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            self._file.flush()
        file.write(text)
        file.flush()
        if self._replaced is not None:
            self._draw()

    def close(self) -> None:
        if self._replaced is None:
            return
        for name, stream in self._replaced.items():
            printed = getattr(sys, name)
            if isinstance(printed, _Above):
                printed.finish()
                setattr(sys, name, stream)
        self._numbers = str(self._meter)
        self._draw("\n")
        self._replaced = None


class _Above(io.TextIOBase):
    """What stands for a stream while there is a bar: whole lines go above it."""

    def __init__(self, bar: Bar, stream: TextIO) -> None:
        self._bar, self._stream, self._line = bar, stream, ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        lines, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            self._bar.above(lines + newline, self._stream)
        return len(text)

    def finish(self) -> None:
        """Write what is left of a line."""
        if self._line:
            self.write("\n")


DONE, TO_DO = "━", "─"


def bar_line(step: int, steps: int | None, numbers: str, room: int) -> str:
    """The step, a bar where there is room for one, and numbers, in as many characters as given.

    >>> bar_line(1, 4, "loss 2", 27)
    'step 1/4  ━━───────  loss 2'
    >>> bar_line(7, None, "loss 2", 20)
    'step 7  loss 2      '
    """
    label = f"step {step}" + ("" if steps is None else f"/{steps}")
    width = room - len(label) - len(numbers) - 4
    if not steps or width < 4:
        return f"{label}  {numbers}"[: max(room, 0)].ljust(room)
    done = min(step * width // steps, width)
    return f"{label}  {DONE * done}{TO_DO * (width - done)}  {numbers}"


class CellBar:
    """A bar below the cell of a notebook, redrawn in place, messages below it."""

    def __init__(self, unit: str = "tokens") -> None:
        self._meter = Meter(unit=unit)
        self._steps: int | None = None
        self._shown: Shown | None = None
        self._messages: list[str] = []
        self._drawn = 0.0

    def start(self, step: int, steps: int | None) -> None:
        self._meter.start(step, steps)
        self._steps = steps
        self._draw("compiling")

    def update(self, step: int, loss: float, tokens: int) -> None:
        self._meter.update(step, loss, tokens)
        if time.perf_counter() - self._drawn > 0.2:
            self._draw(str(self._meter))

    def message(self, text: str) -> None:
        self._messages.append(text)
        self._draw(str(self._meter))

    def close(self) -> None:
        self._draw(f"loss {self._meter.loss:.4f}")

    def _draw(self, numbers: str) -> None:
        step, steps = self._meter.step, self._steps
        line = f"step {step}{'' if steps is None else f'/{steps}'}  {numbers}"
        bar = f'<progress value="{step}" max="{steps}"></progress> ' if steps else ""
        told = "".join(f"<div>{notebook.text(m, 1000)}</div>" for m in self._messages[-LAST:])
        html = notebook.output(f"<div>{bar}{notebook.text(line)}</div>", told)
        text = "\n".join([line, *self._messages[-LAST:]])
        if self._shown is None:
            self._shown = Shown(html, text)
        else:
            self._shown.replace(html, text)
        self._drawn = time.perf_counter()


def reporter(file: TextIO, unit: str = "tokens") -> Reporter:
    """A bar on a terminal or in a notebook, lines elsewhere; `unit` is what a step consists of."""
    if in_notebook():
        return CellBar(unit)
    on_terminal = file.isatty() and os.environ.get("TERM") != "dumb"
    on_terminal &= not isinstance(file, _Above)  # there is a bar already
    return Bar(file, unit) if on_terminal else Lines(file, unit)
