"""Showing how training goes: a bar on a terminal and below the cell of a notebook, lines
elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

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

    def __init__(self, console: Console, unit: str = "tokens") -> None:
        self._console = console
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
        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None: ...


class Bar:
    """A bar that is redrawn in place, messages above it."""

    def __init__(self, console: Console, unit: str = "tokens") -> None:
        self._console = console
        self._meter = Meter(unit=unit)
        self._progress: Progress | None = None
        self._drawn = 0.0

    def start(self, step: int, steps: int | None) -> None:
        self._meter.start(step, steps)
        columns = (
            TextColumn("step {task.completed}" + ("" if steps is None else "/{task.total}")),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}"),
        )
        self._progress = Progress(*columns, console=self._console, auto_refresh=False, expand=True)
        self._progress.add_task("", total=steps, completed=step, numbers="compiling")
        self._progress.start()
        self._progress.refresh()

    def update(self, step: int, loss: float, tokens: int) -> None:
        self._meter.update(step, loss, tokens)
        if time.perf_counter() - self._drawn > 0.1:
            self._draw(step)

    def _draw(self, step: int) -> None:
        if self._progress is not None:
            self._progress.update(
                self._progress.task_ids[0], completed=step, numbers=str(self._meter), refresh=True
            )
        self._drawn = time.perf_counter()

    def message(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        if self._progress is not None:
            self._draw(self._meter.step)
            self._progress.stop()
            self._progress = None


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


def reporter(console: Console, unit: str = "tokens") -> Reporter:
    """A bar on a terminal or in a notebook, lines elsewhere; `unit` is what a step consists of."""
    if in_notebook():
        return CellBar(unit)
    return Bar(console, unit) if console.is_terminal else Lines(console, unit)
