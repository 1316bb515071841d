"""Functions of the operating system for the native runtime, in the order of `struct os`."""

from __future__ import annotations

import ctypes
import platform
import sys

from retrograd.runtime.native.layout import OS_FUNCTIONS

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # the number of the system call
_CONDITION = tuple(name for name in OS_FUNCTIONS if name.startswith(("pthread_m", "pthread_c")))
_PLACING = ("sched_getcpu", "sched_getaffinity", "sched_setaffinity")
_LOOKING = ("clock_gettime", "getrusage", "pthread_self")
_WINDOWS = {"wait_on_address": "WaitOnAddress", "wake_by_address_single": "WakeByAddressSingle"}


def parking(system: str = sys.platform, machine: str = platform.machine()) -> str:
    """The name of how threads sleep here: "futex", "windows" or, elsewhere, "condition"."""
    if system == "win32":
        return "windows"
    return "futex" if system == "linux" and machine in _FUTEX else "condition"


def os_functions(how: str) -> list[int]:
    """The table for threads that sleep by `how` (see `parking`): addresses, 0 for what is left out.
    Other systems than Linux offer no way to place threads, or place them well enough."""
    found = dict.fromkeys(OS_FUNCTIONS, 0)
    if how == "windows":
        kernel = ctypes.WinDLL("kernelbase")  # type: ignore[attr-defined,unused-ignore]
        found |= {name: _address(kernel, symbol) for name, symbol in _WINDOWS.items()}
        return list(found.values())
    process = ctypes.CDLL(None)
    names = _CONDITION
    if how == "futex":
        names = ("syscall", *_PLACING, *_LOOKING)
        found["futex"] = _FUTEX[platform.machine()]
    found |= {name: _address(process, name) for name in names}
    return list(found.values())


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
