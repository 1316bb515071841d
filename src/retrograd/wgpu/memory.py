"""Memory of the device that an array on it has: given back to the pool when the array is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import DType
from retrograd.runtime.backend import Array
from retrograd.wgpu.commands import LEAST_BYTES, BufferSlice
from retrograd.wgpu.device import Device


class DeviceMemory:
    """The numbers of an array on the device; a `DeviceCopy`."""

    __slots__ = ("bytes", "device", "dtype", "gpu", "shape")
    backend = "wgpu"

    def __init__(
        self, device: Device, gpu: Any, size: int, shape: Sequence[int], dtype: DType
    ) -> None:
        self.device = device
        self.gpu = gpu
        self.bytes = size
        self.shape = tuple(shape)
        self.dtype = dtype

    @property
    def place(self) -> BufferSlice:
        return BufferSlice(self.gpu, 0, max(self.bytes, LEAST_BYTES))

    def another(self) -> DeviceMemory:
        """Memory for as many numbers."""
        gpu = self.device.allocate(self.bytes)
        return DeviceMemory(self.device, gpu, self.bytes, self.shape, self.dtype)

    def fetch(self) -> Array:
        """The numbers, on the host."""
        if self.bytes == 0:
            return np.empty(self.shape, self.dtype.dtype)
        found = self.device.read(self.gpu, 0, self.bytes, self.dtype)
        return found.reshape(self.shape)

    def __del__(self) -> None:
        self.device.release(self.gpu)
