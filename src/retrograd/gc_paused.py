"""Blocks that make a great many objects, without the collector of garbage: `gc_paused`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_off = False  # by a block: also by one that was interrupted on its way out


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collections of garbage inside of the block: tracing, compiling and the documents of
    graphs make a great many objects, which all stay, and which a collector would go through time
    and again."""
    global _off
    try:
        if gc.isenabled():
            _off = True
            gc.disable()
        yield
    finally:
        if _off:
            gc.enable()
            _off = False
