"""Exceptions that come between two instructions, as those of Ctrl-C do.

CPython looks for signals where a function begins, behind a call and where it jumps back, and
nowhere else. `interrupted(f, k)` calls `f` and raises `KeyboardInterrupt` at the `k`-th of these
places that the package, or what it is made of in Python, comes to. Left out are the instructions by
which a `with` block gives back what it holds.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import retrograd

PACKAGE = str(Path(retrograd.__file__).parent)
MADE_OF = ("contextlib.py", "threading.py", "weakref.py", "_weakrefset.py")

LOOKS = ("RESUME", "CALL", "JUMP_BACKWARD")  # `Python/ceval.c`; what their names begin with

_looking: dict[int, frozenset[int]] = {}
_leaving: dict[int, frozenset[int]] = {}
_codes: list[CodeType] = []  # so that no other gets the address of one of them


@dataclass(frozen=True)
class Outcome:
    """What became of a call: how many places it came to, and where it was interrupted."""

    count: int
    where: str | None


def _exits(code: CodeType) -> frozenset[int]:
    """Where a `with` block is left: from the first None for `__exit__` to its call."""
    found = _leaving.get(id(code))
    if found is None:
        steps = list(dis.get_instructions(code))
        places: set[int] = set()
        for i in range(len(steps) - 3):
            nones = steps[i : i + 3]
            if all(x.opname == "LOAD_CONST" and x.argval is None for x in nones):
                call = next((n for n in (3, 4) if steps[i + n].opname.startswith("CALL")), None)
                if call is not None:
                    places |= {x.offset for x in steps[max(i - 1, 0) : i + call + 1]}
        found = _leaving[id(code)] = frozenset(places)
        _codes.append(code)
    return found


def _looks(code: CodeType) -> frozenset[int]:
    """Behind which instructions signals are looked for."""
    found = _looking.get(id(code))
    if found is None:
        steps = dis.get_instructions(code)
        found = frozenset(x.offset for x in steps if x.opname.startswith(LOOKS))
        _looking[id(code)] = found
        _codes.append(code)
    return found


def interrupted(f: Callable[[], Any], k: int) -> Outcome:
    """Call `f`, which is interrupted at place `k`, if it comes to as many."""
    count, where, on = 0, None, True
    looked: dict[FrameType, bool] = {}  # whether the last instruction of a frame looked for signals

    def called(frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        if not on or not (file.startswith(PACKAGE) or file.endswith(MADE_OF)):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    def step(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count, where, on
        if event in ("return", "exception"):
            looked.pop(frame, None)  # nobody looks behind a call that raised
        elif on and event == "opcode":
            before = looked.get(frame, False)
            looked[frame] = frame.f_lasti in _looks(frame.f_code)
            if before and frame.f_lasti not in _exits(frame.f_code):
                count += 1
                if count == k:
                    on = False
                    where = (
                        f"{frame.f_code.co_qualname} in {frame.f_code.co_filename}:{frame.f_lineno}"
                    )
                    raise KeyboardInterrupt
        return step

    traced = sys.gettrace()
    sys.settrace(called)
    try:
        f()
    except KeyboardInterrupt:
        pass
    finally:
        on = False
        sys.settrace(traced)
        looked.clear()
    return Outcome(count, where)
