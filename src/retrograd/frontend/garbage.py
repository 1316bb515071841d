"""Blocks that make a great many objects, without the collector of garbage: `uncollected`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collections of garbage inside of the block: tracing, compiling and the documents of
    graphs make a great many objects, which all stay, and which a collector would go through time
    and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
