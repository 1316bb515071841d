"""Context variables that have a value inside a block, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import Any

from retrograd.shared import completed

# The blocks around here, with what their variables were outside.
Blocks = tuple[tuple["Setting", Any], ...]
_BLOCKS: ContextVar[Blocks] = ContextVar("blocks", default=())


class Setting(ContextDecorator):
    """A context variable has a value inside a block. May be entered more than once, by several
    threads at a time; other threads do not notice. Also a decorator."""

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        around = _BLOCKS.get()
        try:
            _BLOCKS.set((*around, (self, self._variable.get())))
            self._variable.set(self._value)
        except BaseException:
            self._leave(around)
            raise

    def __exit__(self, *failure: object) -> None:
        completed(self._exit)

    def _exit(self) -> None:
        blocks = _BLOCKS.get()
        inside = [i for i, (block, _) in enumerate(blocks) if block is self]
        if inside:  # else it has been left, and was interrupted behind that
            self._leave(blocks[: inside[-1]])

    @staticmethod
    def _leave(around: Blocks) -> None:
        """Restore what blocks have set inside of others; some of them may have been interrupted on
        their way out. May be done again."""
        for block, before in reversed(_BLOCKS.get()[len(around) :]):
            block._variable.set(before)
        _BLOCKS.set(around)


@contextmanager
def restored() -> Iterator[None]:
    """Take back what blocks inside have set, should one be interrupted on its way out."""
    around = _BLOCKS.get()
    try:
        yield
    finally:
        Setting._leave(around)
