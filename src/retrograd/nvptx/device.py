"""What a program needs of a device: memory, copies, kernels, graphs of launches.

`DriverDevice` (`driver.py`) is a real one. Everything is put into one stream, in which a command
begins when those before it are done; so memory that is given back may be given out again at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from retrograd.errors import MemoryLimitError
from retrograd.memory_limit import scaled
from retrograd.runtime.backend import Array
from retrograd.shared import own_lock
from retrograd.tuning import TUNING

ALIGNMENT = 256  # of memory; also the least that is given out, so that element 0 can be read


class CudaDevice(ABC):
    """A device with a pool of memory. Use it under its `lock`."""

    name: str
    capability: int  # 80 is 8.0

    def __init__(self) -> None:
        self.lock = own_lock()
        self._free: dict[int, list[int]] = {}  # addresses by size
        self._kept = 0  # bytes that these are
        self._loaded: dict[str, Any] = {}
        self.noting = False  # commands down for a graph: nothing may be given back to the driver

    # -- memory -------------------------------------------------------------------------------
    def allocate(self, size: int) -> int:
        """The address of so many bytes."""
        size = rounded(size)
        free = self._free.get(size)
        if free:
            self._kept -= size
            return heappop(free)  # the lowest, so that calls that are alike get the same
        address = self.new_memory(size)
        if address is None:
            self.drop_free()
            address = self.new_memory(size)
        if address is None:
            raise MemoryLimitError(
                f"{scaled(size)} are not to be had on {self.name}, which has "
                f"{scaled(self.free_bytes())} free; use smaller sizes, or compute in parts"
            )
        return address

    def release(self, address: int, size: int) -> None:
        """Give memory back."""
        size = rounded(size)
        if not self.noting and self._kept + size > TUNING.cuda_kept_bytes:
            self.delete_memory(address)
            return
        self._kept += size
        heappush(self._free.setdefault(size, []), address)

    def drop_free(self) -> None:
        """Give what nobody uses back to the driver."""
        for addresses in self._free.values():
            for address in addresses:
                self.delete_memory(address)
        self._free.clear()
        self._kept = 0

    def available(self) -> int:
        """Bytes that can be had."""
        return self.free_bytes() + self._kept

    @property
    def products(self) -> Any:
        """What multiplies matrices, see `cublas.py`; None: kernels of our own."""
        return None

    def kernels(self, ptx: str) -> dict[str, Any]:
        """The kernels of a text, by their names; equal texts are loaded once."""
        found = self._loaded.get(ptx)
        if found is None:
            found = self._loaded[ptx] = self.load(ptx)
        return found

    def word(self, address: int, dtype: Any) -> Any:
        """A number in memory; all commands before are done."""
        found = np.empty(1, dtype)
        self.download(address, found)
        return found[0]

    # -- what a device does -------------------------------------------------------------------
    @abstractmethod
    def enter(self) -> None:
        """Use the device in this thread."""

    @abstractmethod
    def new_memory(self, size: int) -> int | None:
        """The address of so many bytes; None if there are none left."""

    @abstractmethod
    def delete_memory(self, address: int) -> None: ...

    @abstractmethod
    def free_bytes(self) -> int: ...

    @abstractmethod
    def upload(self, address: int, array: Array) -> None:
        """Copy a contiguous array to the device; it may be changed afterwards."""

    @abstractmethod
    def download(self, address: int, array: Array) -> None:
        """Fill a contiguous array from the device, when all commands before are done."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all commands are done."""

    @abstractmethod
    def copy(self, to: int, source: int, size: int) -> None: ...

    @abstractmethod
    def load(self, ptx: str) -> dict[str, Any]: ...

    @abstractmethod
    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None: ...

    @abstractmethod
    def begin_graph(self) -> None:
        """What follows is not run, but noted down."""

    @abstractmethod
    def end_graph(self) -> Any:
        """What was noted down, for `run_graph`."""

    @abstractmethod
    def run_graph(self, graph: Any) -> None: ...

    @abstractmethod
    def drop_graph(self, graph: Any) -> None: ...


def rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT), 1) * ALIGNMENT
