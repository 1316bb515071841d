"""Stopping cleanly when the user or the system asks for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether somebody asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Inside the block, Ctrl-C (SIGINT) and SIGTERM only set the request, so that a loop can end
    in good order; a second Ctrl-C interrupts at once. Outside the main thread nothing changes."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(s, note) for s in signals]
    try:
        yield request
    finally:
        for s, handler in zip(signals, before, strict=True):
            signal.signal(s, handler)
