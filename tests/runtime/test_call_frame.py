"""The memory of a call: aligned, and cleared."""

import numpy as np

from retrograd.runtime.call_frame import CallFrame
from retrograd.schedule.buffer import ALIGNMENT


def test_the_arena_begins_at_a_multiple_of_the_alignment() -> None:
    """Wherever the array lies, within the bytes that are added for it."""
    whole = np.zeros(4 * ALIGNMENT, np.uint8)
    for shift in (0, 1, 8, ALIGNMENT - 1):
        arena = whole[shift : shift + 2 * ALIGNMENT]
        frame = CallFrame(5, arena, 2)
        assert frame.start % ALIGNMENT == 0
        assert 0 <= frame.start - arena.ctypes.data < ALIGNMENT


def test_slots_are_words_of_zero() -> None:
    frame = CallFrame(7, np.zeros(ALIGNMENT, np.uint8), 3)
    assert frame.block.tolist() == [0] * 7
    assert frame.block.dtype.itemsize == 8
    assert frame.address == frame.block.ctypes.data
    frame.block[3] = 9
    assert frame.threads == 3
    assert CallFrame(7, frame.arena, 3).block[3] == 0
