"""Arrays that stay on a device between calls.

A program of a device takes arrays and gives arrays, as every `Program` does. Its `resident` does
the same, but what it gives may be a `DeviceArray`, whose numbers are still on the device. It is no
array of NumPy, so that nobody reads memory that has not been filled: `np.asarray` fetches the
numbers, once, and so does `host`, which every other way to a value goes through
(`LazyTensor.value`). What goes into the next program of that device is not fetched at all: the
program finds the copy there by `device_copy`. Numbers that are on the device of another backend
alone are not fetched behind the user's back: `numbers_for` says so.

A tensor's array that was made on the host is `adopted`: the same array, with a place for the copy
that its first upload makes (`remember`). That is for arrays that nobody edits, as tensors' are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from retrograd.errors import BackendError
from retrograd.runtime.backend import Array


class DeviceCopy(Protocol):
    """The numbers of an array on a device."""

    backend: str  # whose it is, by name
    device: Any  # of which two copies differ, if they are on different ones

    def fetch(self) -> Array:
        """The numbers, in an array of the dtype and shape that they have on the host."""


class DeviceArray:
    """An array of which a device has a copy, or the host, or both."""

    __slots__ = ("__weakref__", "_host", "copy", "dtype", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        copy: DeviceCopy | None = None,
        host: Array | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.copy = copy
        self._host = host

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_fetched(self) -> bool:
        """Whether the numbers are here."""
        return self._host is not None

    def host(self) -> Array:
        """The numbers; fetched, if they are not here."""
        if self._host is None:
            assert self.copy is not None
            self._host = self.copy.fetch()
        return self._host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.host()
        return found if dtype is None and not copy else np.array(found, dtype)

    def __reduce__(self) -> Any:
        return self.host().__reduce__()

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"


ARRAYS = (np.ndarray, DeviceArray)


def pending(shape: Sequence[int], dtype: np.dtype[Any], copy: DeviceCopy) -> Any:
    """An array whose numbers are on a device."""
    return DeviceArray(shape, dtype, copy)


def adopted(array: Any) -> Any:
    """The same array, with a place for a copy on a device."""
    if type(array) is DeviceArray:
        return array
    return DeviceArray(array.shape, array.dtype, None, array)


def host(array: Any) -> Array:
    """An array of NumPy's; its numbers are fetched, if they are not here."""
    return array.host() if type(array) is DeviceArray else array


def numbers_for(array: Any, backend: str) -> Array:
    """The numbers that a backend copies to its device; `BackendError` for what is on that of
    another one and nowhere else."""
    if type(array) is DeviceArray and not array.is_fetched:
        there = array.copy.backend  # type: ignore[union-attr]
        if there != backend:
            sizes = ", ".join(map(str, array.shape))
            raise BackendError(
                f"a tensor {array.dtype}[{sizes}] is on the device of the backend {there!r}, and "
                f"what computes with it here runs on {backend!r}: an operation takes tensors of "
                f"one backend. Compute it inside of rg.backend({there!r}), or fetch the tensor "
                "first: x.cpu(), or model.cpu() for the parameters of a model"
            )
    return host(array)


def device_copy(array: Any, device: Any) -> Any:
    """The copy that a device has of an array, or None."""
    copy = array.copy if type(array) is DeviceArray else None
    return copy if copy is not None and copy.device is device else None


def resides(program: Any) -> bool:
    """Whether a program leaves what it computes on a device."""
    return hasattr(program, "resident")


def resident(program: Any) -> Any:
    """The program, leaving on its device what it computes, where it has one."""
    return getattr(program, "resident", program)


def kept_as(array: Any, before: Any, used: bool = False) -> Any:
    """An array, divided over devices as one of its shape is whose place it takes; with `used` also
    computed with as that is. Others are what they are."""
    if type(array) is not DeviceArray or type(before) is not DeviceArray:
        return array
    divide = getattr(before.copy, "divide", None)
    if divide is None or array.copy is None or array.shape != before.shape:
        return array
    return divide(array, used)


def remember(array: Any, copy: DeviceCopy) -> None:
    """Note the copy that was made of an array, if it is one that was `adopted`."""
    if type(array) is DeviceArray:
        array.copy = copy
