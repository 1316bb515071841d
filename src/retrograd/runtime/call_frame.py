"""The memory that a call of a compiled program works in."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.runtime.backend import Array
from retrograd.schedule.buffer import ALIGNMENT


class CallFrame:
    """The memory of one call at a time: the block of slots and the arena behind it."""

    __slots__ = ("address", "arena", "block", "entry", "pace", "stop", "threads")

    def __init__(self, count: int, arena: Array, threads: int) -> None:
        self.threads = threads
        self.arena = arena
        self.block = np.zeros(count, np.int64)  # and the copies that threads need of it
        self.address = self.block.ctypes.data
        self.entry: Any = None  # what reads arrays and runs the program, see `entry_of`
        self.pace: int | None = None  # the address of what is known of the time that runs take
        self.stop = 0  # the address of the word that ends a long run

    @property
    def start(self) -> int:
        """The first aligned address of the arena."""
        return -(-self.arena.ctypes.data // ALIGNMENT) * ALIGNMENT
