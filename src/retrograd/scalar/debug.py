"""Values inside of `rg.debug`: each operation is computed at once, and the first number that is not
finite is an error at its line.

Nothing is asked for this outside of such a block: inside, every tape is closed after its only
operation, so that the next one goes the way of operands that are not on one open tape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograd.eager.modes import current_backend
from retrograd.errors import NonFiniteError
from retrograd.ir.source import user_source
from retrograd.runtime.executors.nan_causes import CAUSES, DERIVATIVES
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.scalar.machine import CUSTOM, FOREIGN, LEAF, NAMES, OPCODES
from retrograd.scalar.machine.portable import derivatives
from retrograd.scalar.tape import current_trace

_BY_CODE = {o.code: o for o in OPCODES}


def watching() -> bool:
    """Whether this thread is inside of `rg.debug`, and does not trace."""
    return current_backend() == CHECKED and current_trace() is None


def look(tape: Any, row: int) -> None:
    """Compute a row that was just recorded, note its line, and close the tape."""
    tape.lines[row] = user_source()
    y = tape.value(row)
    code, operands = _operands(tape, row)
    tape.close()
    if code > CUSTOM and not math.isfinite(y):
        _refuse(tape, row, y, [tape.value(r) for r in operands])


def _operands(tape: Any, row: int) -> tuple[int, list[int]]:
    code, a, b = tape.row(row)
    return code, [a, b][: _BY_CODE[code].arity] if code > CUSTOM else []


def _refuse(tape: Any, row: int, y: float, x: Sequence[float]) -> None:
    if any(not math.isfinite(v) for v in x) and (math.isinf(y) or any(map(math.isnan, x))):
        return  # handed on
    name = NAMES[tape.row(row)[0]]
    why = CAUSES[name].why if name in CAUSES else "the result is larger than float64 holds"
    raise NonFiniteError("\n".join([f"{name} gives {y}", *_computed(tape, row), _cause(why)]))


def look_back(tape: Any, start: int) -> None:
    """After the way back through a tape: whether an operation made a gradient that is not finite
    of one that was."""
    if all(math.isfinite(g) for _, g in tape.reached()):
        return
    for row in range(start, 0, -1):
        code, operands = _operands(tape, row)
        g = tape.grad(row)
        if not operands or g == 0 or not math.isfinite(g):
            continue
        x = [tape.value(r) for r in operands]
        for k, slope in enumerate(derivatives(code, tape.value(row), *x)):
            if not math.isfinite(slope * g) and all(map(math.isfinite, x)):
                _refuse_slope(tape, row, k, slope, g)


def _refuse_slope(tape: Any, row: int, k: int, slope: float, g: float) -> None:
    name = NAMES[tape.row(row)[0]]
    why = DERIVATIVES[name].why if name in DERIVATIVES else "the product overflows"
    lines = [f"the derivative of {name} by operand {k} is {slope}, times a gradient of {g}"]
    raise NonFiniteError("\n".join([*lines, *_computed(tape, row), _cause(why)]))


def _cause(why: str) -> str:
    return f"  likely cause: {why}"


def _computed(tape: Any, row: int) -> list[str]:
    """The lines of an error that say what was computed of what, and where."""
    label = tape.labels.get(row)
    found = [f"  computed{f' as {label!r}' if label else ''}{_line(tape, row)}"]
    for k, r in enumerate(_operands(tape, row)[1]):
        found.append(f"  operand {k}: {_described(tape, r)}")
    return found


def _described(tape: Any, row: int) -> str:
    code = tape.row(row)[0]
    if code == LEAF:
        return repr(tape.leaf(row))
    if code == FOREIGN:
        return _described(*tape.foreign[row])
    label = tape.labels.get(row)
    named = f", label={label!r}" if label else ""
    return f"{tape.value(row)}{named}{_line(tape, row)}"


def _line(tape: Any, row: int) -> str:
    source = tape.lines.get(row)
    return f" (at {source})" if source else ""
