"""What commands are told apart by."""

from __future__ import annotations

import dataclasses

import pytest

from retrograd.wgpu.commands import LEAST_BYTES, BufferSlice, Instruction
from retrograd.wgpu.dispatch import Dispatch


def test_equal_dispatches_are_two_commands() -> None:
    """Bind groups are kept by command: two of one text read other memory."""
    d = Dispatch("text", (), (), 1)
    assert d == Dispatch("text", (), (), 1)
    one, two = Instruction(d, (1, 1, 1)), Instruction(d, (1, 1, 1))
    assert one != two
    assert len({one, two}) == 2


def test_a_place_is_one_by_its_memory_and_part() -> None:
    memory = object()
    place = BufferSlice(memory, 0, LEAST_BYTES)
    assert place == BufferSlice(memory, 0, 16, 0)
    for other in ((memory, 256, 16), (memory, 0, 32), (memory, 0, 16, 1), (object(), 0, 16)):
        assert place != BufferSlice(*other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.offset = 1  # type: ignore[misc]
