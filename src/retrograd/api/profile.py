"""`profile`: a block in which compiled programs tell how long each of their kernels takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import Token
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrograd import viz
from retrograd.backend_registry import PROFILED
from retrograd.context_setting import Setting
from retrograd.eager.modes import _BACKEND
from retrograd.errors import OptionError
from retrograd.graph.display import show_page
from retrograd.graph.explorer import put_kernels
from retrograd.runtime.denormals import tells
from retrograd.runtime.executable import RUNS, KernelTimes
from retrograd.schedule.planning.explain import SUBNORMAL
from retrograd.schedule.planning.kernel_report import kernel_reports

WIDEST = 70  # characters of a kernel's description in the table


@dataclass(frozen=True)
class KernelTime:
    """A kernel over all calls: what it computes, how often it ran, nanoseconds in all, bytes that
    one call moves (None where sizes differed between calls), which program it is of, and whether a
    call met subnormal numbers (None where the processor does not tell: it does on x86-64)."""

    text: str
    ops: str
    calls: int
    nanoseconds: float
    bytes: int | None
    program: int
    subnormal: bool | None = None


def profile() -> Profile:
    """Inside `with rg.profile() as p:` programs run on the compiled backend and are timed, kernel
    by kernel. Afterwards `print(p)` is a table, the dearest kernel first; `p.kernels` has the same
    as data, and `p.show()` draws the program that took longest, with its kernels. Kernels that met
    subnormal numbers, which many processors are slow at, are marked; see `rg.flush_subnormals`.

    What counts is what is computed inside: values are computed when they are looked at. Programs
    are compiled anew for it, which is not part of the times. Only the thread that enters is
    concerned.

    >>> import retrograd as rg
    >>> x = rg.ones((100, 100))
    >>> with rg.profile() as p:
    ...     _ = rg.sum(rg.tanh(x @ x)).item()
    >>> sum(k.calls for k in p.kernels) >= 1
    True
    """
    return Profile()


class Profile(Setting):
    """What `profile` returns."""

    def __init__(self) -> None:
        super().__init__(_BACKEND, PROFILED)
        self.runs: list[KernelTimes] = []
        self._tokens: list[Token[Any]] = []

    def __enter__(self) -> Profile:  # type: ignore[override]
        self._tokens.append(RUNS.set(self.runs))
        super().__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        RUNS.reset(self._tokens.pop())

    @property
    def kernels(self) -> list[KernelTime]:
        """The kernels of all programs, the one that took longest in all first."""
        found = []
        for number, runs in enumerate(self._programs()):
            plan = runs[0].plan
            same = all(r.sizes == runs[0].sizes for r in runs)
            total = [sum(column) for column in zip(*(r.times for r in runs), strict=True)]
            reports = kernel_reports(plan, runs[0].sizes if same else None, total)
            met = _met(runs)
            for i, (k, spent) in enumerate(zip(reports, total, strict=True)):
                subnormal = None if met is None else met[i]
                found.append(
                    KernelTime(k.text, k.ops, len(runs), spent, k.bytes, number, subnormal)
                )
        return sorted(found, key=lambda k: -k.nanoseconds)

    def _programs(self) -> list[list[KernelTimes]]:
        """The runs of each program."""
        groups: dict[int, list[KernelTimes]] = {}
        for run in self.runs:
            groups.setdefault(id(run.plan), []).append(run)
        return list(groups.values())

    @property
    def nanoseconds(self) -> float:
        """The time of all kernels together."""
        return sum(sum(run.times) for run in self.runs)

    def __str__(self) -> str:
        programs = self._programs()
        total = self.nanoseconds
        head = f"{len(self.runs)} runs of {len(programs)} programs: {total / 1e6:.3f} ms"
        lines = [head, "     total  share  calls     bytes  program  kernel"]
        for k in self.kernels:
            text = k.text if len(k.text) <= WIDEST else k.text[: WIDEST - 1] + "…"
            share = 100 * k.nanoseconds / total if total else 0.0
            size = "?" if k.bytes is None else str(k.bytes)
            text += "; met subnormal numbers" if k.subnormal else ""
            lines.append(
                f"{k.nanoseconds / 1e3:7.1f} us {share:5.1f}% {k.calls:6} {size:>9} {k.program:8}  "
                f"{text}"
            )
        met = sorted({k.program for k in self.kernels if k.subnormal})
        if met:
            which = f"program{'s' * (len(met) > 1)} {', '.join(map(str, met))}"
            lines.append(f"Subnormal numbers were met by {which}. {SUBNORMAL}")
        elif self.runs and not tells():
            lines.append("Whether subnormal numbers were met, this processor does not tell.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def show(self, path: str | os.PathLike[str] | None = None, open: bool = True) -> Path:
        """The explorer's page of the program that took longest, with the mean time of each kernel.
        `path` and `open` as of `Graph.show`."""
        programs = self._programs()
        if not programs:
            raise OptionError("nothing was computed inside of rg.profile(), so there is no page")
        runs = max(programs, key=lambda runs: sum(sum(r.times) for r in runs))
        mean = [sum(t) / len(runs) for t in zip(*(r.times for r in runs), strict=True)]
        doc = viz.document(runs[0].graph)
        put_kernels(doc, runs[0].graph, runs[0].plan, runs[0].sizes, mean)
        return show_page(doc, path, open)


def _met(runs: Sequence[KernelTimes]) -> list[bool] | None:
    """Which kernels of a program met subnormal numbers in a run."""
    rows = [r.subnormal for r in runs if r.subnormal is not None]
    return [any(column) for column in zip(*rows, strict=True)] if rows else None
