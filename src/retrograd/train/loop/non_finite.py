"""Where a loss that is NaN or infinite came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd.errors import NonFiniteError
from retrograd.train.loop.batches import Group, nbytes, samples_of
from retrograd.train.loop.step import Leaves, TrainingStep
from retrograd.tuning import TUNING
from retrograd.xla.agreement import is_several

REPEATED = 20  # steps that are done again, about, to find the one that went wrong


class StepCall(NamedTuple):
    """Steps that were done in one call: the carry before them, and their batches, `each` of them
    for a step; `batches` has those of a step that takes some of several groups."""

    carry: Leaves
    group: Group | None
    start: int
    stop: int
    each: int = 1
    batches: Sequence[tuple[Leaves, Any]] = ()

    @property
    def steps(self) -> int:
        """How many steps."""
        return (self.stop - self.start) // self.each if self.group is not None else 1

    @property
    def last(self) -> tuple[Leaves, Any]:
        """The leaves of the last batch, and its structure."""
        if self.group is None:
            return self.batches[-1]
        return self.group.batch(self.stop - 1), self.group.structure

    @property
    def nbytes(self) -> int:
        """The memory that the batches take."""
        if self.group is None:
            return sum(nbytes(leaves) for leaves, _ in self.batches)
        return self.group.nbytes * self.used

    @property
    def samples(self) -> int:
        """How many samples."""
        if self.group is None:
            return sum(samples_of(leaves) for leaves, _ in self.batches)
        return self.group.samples * self.used

    @property
    def used(self) -> int:
        """How many batches."""
        return len(self.batches) or self.stop - self.start


class Recent:
    """The last calls, of which the first has the carry to do them again with: at least the last
    two, so that what spoilt the parameters is among them; for large models the last alone.

    Arrays that are kept make the next ones take fresh memory. So a carry is kept once in
    `REPEATED` steps, or as many as their batches do not take much memory. `keeps` says whether the
    model is small enough for that.
    """

    def __init__(self, carry: Leaves) -> None:
        held = sum(x.size * x.dtype.dtype.itemsize for x in carry)
        self.keeps = held <= TUNING.fit_kept_bytes
        self._older: list[StepCall] = []
        self._newer: list[StepCall] = []
        self._steps = self._bytes = 0

    @property
    def calls(self) -> list[StepCall]:
        """The calls, the last one last."""
        return self._older + self._newer

    def add(self, call: StepCall) -> None:
        """One more call is about to be made."""
        if not self.keeps:
            self._newer = [call]
            return
        if not self._newer or self._steps >= REPEATED or self._bytes >= TUNING.fit_loop_bytes:
            self._older, self._newer, self._steps, self._bytes = self._newer, [call], 0, 0
        else:
            self._older = []  # the new ones are two by now
            self._newer.append(call._replace(carry=()))
        self._steps += call.steps
        self._bytes += call.nbytes


def diverged(
    what: str,
    cause: NonFiniteError | None,
    remedy: str,
    *,
    bad: Sequence[str] = (),
    checkpoint: Path | None = None,
) -> NonFiniteError:
    """The error of a run in which something is not finite: `what` it is, the operation that gave
    the first such number, or else what was `bad` before, the last checkpoint, and what to do."""
    lines = [f"{what}: training has diverged"]
    if cause is not None:
        lines.append(f"first, {cause}")
    elif bad:
        lines.append(f"before that step these were not finite already: {', '.join(bad[:5])}")
    if checkpoint is not None:
        lines.append(f"the last good checkpoint is {checkpoint}")
    node, index = (cause.node, cause.index) if cause is not None else (None, None)
    error = NonFiniteError("\n".join([*lines, remedy]), node, index)
    for note in getattr(cause, "__notes__", ()):
        error.add_note(note)
    return error


def spoilt(step: int, names: Sequence[str]) -> str:
    """What is said of parameters that a step has spoilt, though its loss is a number."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"the parameters after step {step} are not finite ({', '.join(names[:3])}{more})"


def first_bad(step: Callable[[], Any]) -> NonFiniteError | None:
    """The error of the first operation of a step that gives NaN or an infinity; None if it gives
    none. The step is done under `debug`."""
    try:
        with rg.debug():
            step()
    except NonFiniteError as error:
        return error
    return None


def diagnosis(programs: TrainingStep, calls: Sequence[StepCall]) -> NonFiniteError | None:
    """The error of the first operation that gave NaN or an infinity, in the steps of these calls;
    None where it cannot be found. The steps are done again, the one that fails under `debug`."""
    carry = calls[0].carry
    if not all_finite(carry[: programs.size]):
        return None  # it came from what was before
    for call in calls:
        for i in range(call.steps):
            new, failed = _again(programs, carry, call, i)
            if failed or not all_finite(new[: programs.size]):
                cause = first_bad(partial(_again, programs, carry, call, i))
                if cause is not None or failed:
                    return cause
            carry = new
    return None


def bad_leaves(programs: TrainingStep, carry: Leaves) -> list[str]:
    """The names of what in the model is not finite, and was at first. Of several processes each has
    a part of it, and nobody looks."""
    if is_several():
        return []
    leaves = zip(programs.names, carry, programs.start, strict=False)
    return [name for name, x, first in leaves if not all_finite((x,)) and all_finite((first,))]


def _again(programs: TrainingStep, carry: Leaves, call: StepCall, i: int) -> tuple[Leaves, bool]:
    """A step of a call; the carry after it, and whether its loss is not finite."""
    group = call.group
    if group is None:
        done = programs.accumulated(carry, call.batches)
    elif call.each > 1:
        first = call.start + i * call.each
        some = range(first, first + call.each)
        done = programs.accumulated(carry, [(group.batch(j), group.structure) for j in some])
    else:
        done = programs.one(carry, group, call.start + i)
    return done.carry, not bool(np.isfinite(done.losses).all())


def all_finite(leaves: Iterable[Any]) -> bool:
    """Whether all numbers of some tensors are finite."""
    return all(bool(np.isfinite(x.value()).all()) for x in leaves if x.dtype.is_inexact)
