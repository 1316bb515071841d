"""Programs of kinds of calls, handed over to C: all but those that take long, which can be
interrupted.

It gets a program once that is native code, and with the sizes that it was run at: those that are
rounded to the same ones have their temporaries in the same places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.eager.immediate.call_kind import CallKind, polynomial
from retrograd.eager.immediate_base import compiled
from retrograd.eager.trace_program import TraceProgram
from retrograd.ir import evaluate
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.executable import Executable, SpecializedExecutable
from retrograd.runtime.executors.tiered import TieredProgram
from retrograd.runtime.thread_pool import current_team
from retrograd.runtime.threads import threads_here
from retrograd.tuning import TUNING

VALUE, ADDRESS, NUMBER = range(3)  # where an input is
HELD, RELEASED, SHARED = range(3)  # the interpreter's lock during a run; by several threads
_TEAM: list[Any] = [None]  # the one that C knows
NUMBERS = frozenset("fd")  # dtypes of numbers that C makes, by their characters


def hand_over_forward(
    kind: CallKind, tracked: bool, values: Sequence[Array], numbers: dict[int, float],
    sizes: Mapping[str, int],
) -> bool:  # fmt: skip
    """Have C run the program that has just run; whether it does, at these sizes."""
    if compiled is None:
        return False
    program = kind.forward(tracked)
    new = program.brief is None
    if not _allow(kind, program, values, numbers, sizes):
        return False
    if new:
        kind.kernel.forward(tracked, program.brief)  # type: ignore[attr-defined]
    return True


def hand_over_backward(
    kind: CallKind, key: tuple[int, int, int], plan: Any, values: Sequence[Array],
    numbers: dict[int, float], sizes: Mapping[str, int],
) -> None:  # fmt: skip
    """The same of a way back."""
    program = plan.program
    if program is not None and not _allow(kind, program, values, numbers, sizes):
        return
    if key not in kind.handed_over:
        kind.handed_over.add(key)
        passed = [n for pair in plan.passed for n in pair]
        brief = None if program is None else program.brief
        kind.kernel.backward(*key, brief, passed, plan.computed)  # type: ignore[attr-defined]


def _allow(
    kind: CallKind, program: TraceProgram, values: Sequence[Array], numbers: dict[int, float],
    sizes: Mapping[str, int],
) -> bool:  # fmt: skip
    """Make the program for C, unless it is there, and let it run at these sizes; whether that is
    possible."""
    native = program.program
    executable = native.executable if isinstance(native, TieredProgram) else None
    if type(executable) is not Executable or executable.donated:
        return False
    given = program.arguments(values, numbers)
    if any(a.size == 0 for a in given):
        return False
    shaped = executable.shaped_for(given)
    if shaped.long:  # which can be interrupted
        return False
    if program.brief is None:
        program.brief = _made(kind, program, executable, shaped, given)
    if program.brief is None:
        return False
    how = HELD if shaped.at_once else SHARED if shaped.shared else RELEASED
    if how == SHARED and current_team() is not _TEAM[0]:
        _TEAM[0] = current_team()
        compiled.install_team(_TEAM[0].launcher, _TEAM[0].address, threads_here)
    placed = shaped.placement
    names = [sizes[name] for name in kind.names]
    program.brief.allow(names, placed.offsets, placed.arena, how)
    return True


def _made(
    kind: CallKind, program: TraceProgram, executable: Executable, shaped: SpecializedExecutable,
    given: Sequence[Array],
) -> Any:  # fmt: skip
    """The program for C; None where it takes or makes something that C does not know of."""
    if len(program.ends) > compiled.OUTPUTS or len(kind.names) > compiled.NAMES:
        return None
    record, inputs = executable.recipe, _inputs(program)
    known = {} if kind.names else bind(executable.graph.inputs, given)
    outputs = [
        (
            y.dtype.dtype,
            [polynomial(evaluate(d, known) if known else d, kind.names) for d in y.shape],
        )
        for y in executable.graph.outputs
    ]
    inner = [polynomial(d, kind.names) for d in record.sizes] if kind.names else []
    if inputs is None or None in inner or any(None in shape for _, shape in outputs):
        return None
    frame = shaped.frame_in_common()
    return compiled.BriefProgram(
        (executable, frame, program.constants),
        executable.address,
        frame.address,
        frame.start,
        inputs,
        outputs,
        inner,
        len(kind.names),
        record.first_size,
        record.first_temporary,
        record.facts.temporaries,
        record.slots,
        record.stop,
        record.facts.scratch,
        TUNING.common_layout_size if record.facts.grows else -1,
    )


def _inputs(program: TraceProgram) -> list[tuple[int, int, str]] | None:
    """Where the inputs of a program are."""
    found: list[tuple[int, int, str]] = [(VALUE, k, "") for k in program.known]
    numbers = {i: k for pairs in program.free.values() for i, k in pairs}
    for i, c in enumerate(program.scalars):
        kind = c.dtype.dtype.char
        if i not in numbers:
            found.append((ADDRESS, program.constants[i].ctypes.data, ""))
        elif kind in NUMBERS:
            found.append((NUMBER, numbers[i], kind))
        else:
            return None
    return found
