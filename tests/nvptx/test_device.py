"""The pool of a device's memory."""

from __future__ import annotations

import pytest

import retrograd as rg
from retrograd.nvptx.device import ALIGNMENT, rounded
from tests.nvptx.interpreted_device import InterpretedDevice


def test_what_is_given_back_is_given_out_again() -> None:
    device = InterpretedDevice()
    first, second = device.allocate(1000), device.allocate(1000)
    device.release(second, 1000)
    device.release(first, 1000)
    assert device.available() == device.size
    assert device.allocate(1024) == first  # the lowest, of the same rounded size
    assert device.allocate(900) == second


def test_nothing_takes_something() -> None:
    assert rounded(0) == ALIGNMENT
    device = InterpretedDevice()
    assert device.allocate(0) != device.allocate(0)


def test_what_is_kept_is_given_up_before_memory_runs_out() -> None:
    device = InterpretedDevice(memory=4096)
    device.release(device.allocate(2048), 2048)
    device.release(device.allocate(1024), 1024)
    assert device.allocate(4096) > 0
    with pytest.raises(rg.MemoryLimitError, match=r"256 B are not to be had on an interpreter"):
        device.allocate(1)
