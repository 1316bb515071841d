"""The registry of what writes a loop nest: `@emits_nest("row")` enters it by the kind of the nest.

The kinds are those of `schedule/loop_nest.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.schedule.loop_nest import LoopNest

NestEmitter = Callable[[KernelEmitter, LoopNest], None]

NESTS: dict[str, NestEmitter] = {}


def emits_nest(*kinds: str) -> Callable[[NestEmitter], NestEmitter]:
    """A decorator that enters a function for kinds of nests."""

    def enter(emit: NestEmitter) -> NestEmitter:
        NESTS.update(dict.fromkeys(kinds, emit))
        return emit

    return enter
