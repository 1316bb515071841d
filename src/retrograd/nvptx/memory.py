"""Memory of the device that an array on it has: given back to the pool when the array is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.nvptx.device import CudaDevice
from retrograd.runtime.backend import Array


class CudaMemory:
    """The numbers of an array on the device; a `DeviceCopy`."""

    __slots__ = ("address", "bytes", "device", "dtype", "shape")
    backend = "cuda"

    def __init__(self, device: CudaDevice, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.device = device
        self.shape, self.dtype = tuple(shape), dtype
        self.bytes = int(np.prod(self.shape, dtype=np.int64)) * dtype.itemsize
        self.address = device.allocate(self.bytes)

    def fetch(self) -> Array:
        """The numbers, on the host."""
        found = np.empty(self.shape, self.dtype)
        with self.device.lock:
            self.device.enter()
            self.device.download(self.address, found)
        return found

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address is not None:
            with self.device.lock:
                self.device.enter()
                self.device.release(address, self.bytes)
