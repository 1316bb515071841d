"""The registry of what writes a loop nest: `@emits_nest(RowReduction)` enters it by the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.codegen.emit.kernel import KernelEmitter
from retrograd.schedule.loop_nest import LoopNest

NestEmitter = Callable[[KernelEmitter, Any], None]

NESTS: dict[type[LoopNest], NestEmitter] = {}


def emits_nest(*kinds: type[LoopNest]) -> Callable[[NestEmitter], NestEmitter]:
    """A decorator that enters a function for classes of nests."""

    def enter(emit: NestEmitter) -> NestEmitter:
        NESTS.update(dict.fromkeys(kinds, emit))
        return emit

    return enter
