"""The table of functions of the operating system, and how threads sleep by it."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest

from retrograd.runtime.native.layout import OS_FUNCTIONS
from retrograd.runtime.native.os_functions import os_functions, parking


def test_how_threads_sleep_elsewhere():
    assert parking("linux", "x86_64") == parking("linux", "aarch64") == "futex"
    assert parking("darwin", "arm64") == parking("linux", "s390x") == "condition"
    assert parking("win32", "AMD64") == "windows"


def table(how: str) -> dict[str, int]:
    return dict(zip(OS_FUNCTIONS, os_functions(how), strict=True))


@pytest.mark.skipif(sys.platform == "win32", reason="functions of POSIX")
def test_what_sleeping_by_conditions_takes() -> None:
    found = table("condition")
    own = {name for name, address in found.items() if address}
    assert own == {n for n in OS_FUNCTIONS if n.startswith(("pthread_mutex", "pthread_cond"))}


@pytest.mark.skipif(parking() != "futex", reason="functions of Linux")
def test_functions_can_be_called() -> None:
    found = table("futex")
    processor = ctypes.CFUNCTYPE(ctypes.c_int)(found["sched_getcpu"])()
    assert 0 <= processor < (os.cpu_count() or 1)
    syscall = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_int)
    word = ctypes.c_int32(5)
    wake = 1
    assert syscall(found["syscall"])(found["futex"], ctypes.addressof(word), wake) == 0
    assert found["wait_on_address"] == 0
