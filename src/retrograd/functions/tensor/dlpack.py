"""DLPack: arrays from and to other libraries, by NumPy's own capsules.

NumPy has no bfloat16. Such arrays cross as the unsigned integers that they are made of, in capsules
in which the dtype is rewritten, on the way out and on the way in.

Tensors do not change. PyTorch writes to what it is given, read-only or not, so what is exported is
a copy; with `copy=False` the tensor becomes one that shares its memory, as `asarray` makes them,
and what was recorded of it before keeps the memory of before.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.errors import DTypeError, GradientError, OptionError
from retrograd.runtime.backend import Array

CPU = (1, 0)  # kDLCPU, and the number of the device
UNSIGNED, BFLOAT = 1, 4  # codes of kinds of numbers
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class _DType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("dtype", _DType),
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _described(capsule: Any) -> Any:
    """What a capsule says of its array, which nobody may have taken; writing to it changes that."""
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Tensor)):
        if _is_valid(capsule, name):
            found: Any = kind.from_address(_pointer(capsule, name))
            return found if kind is _Tensor else found.tensor
    raise DTypeError(
        "there is no array in the capsule, or it has been taken already: a capsule can be used once"
    )


def exported(
    x: LazyTensor, stream: Any, max_version: tuple[int, int] | None, device: Any, copy: bool | None
) -> Any:
    """A capsule with the value of a tensor. See `Tensor.__dlpack__`."""
    if stream is not None:
        raise OptionError(f"tensors are on the CPU, which has no streams such as {stream!r}")
    if device is not None and tuple(device) != CPU:
        raise BufferError(f"tensors are on the CPU, device {CPU}, not on {device}; move them there")
    refuse_tracked(x)
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    array = x.give_memory() if copy is False else x.value().copy()
    narrow = array.dtype == BFLOAT16
    if narrow:
        array = array.view(np.uint16)
    if versioned:
        array = array.view()
        array.setflags(write=copy is True)
        capsule: Any = array.__dlpack__(max_version=max_version)
    else:  # cannot say that it is not to be written to
        capsule = array.__dlpack__()
    if narrow:
        _described(capsule).dtype.code = BFLOAT
    return capsule


def refuse_tracked(x: LazyTensor) -> None:
    """`GradientError` where a gradient may be asked for through a tensor, which would be lost."""
    if x._requires_grad:
        raise GradientError(
            "a tensor that requires a gradient cannot be exported, as its history would be lost; "
            "export x.detach()"
        )


class _Capsule:
    """What has a capsule, for NumPy to take it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def imported(x: Any, copy: bool | None = None) -> Array:
    """An array on the memory of another library's, which may be given as a capsule."""
    if is_capsule(x):
        capsule, place = x, tuple(_described(x).device)
    else:
        place = x.__dlpack_device__()
        capsule = _capsule_of(x, copy) if int(place[0]) == CPU[0] else None
    if int(place[0]) != CPU[0]:
        raise BufferError(
            f"the array is on device {(int(place[0]), place[1])}; move it to the CPU first"
        )
    dtype = _described(capsule).dtype
    narrow = (dtype.code, dtype.bits, dtype.lanes) == (BFLOAT, 16, 1)
    if narrow:
        dtype.code = UNSIGNED
    try:
        array = np.from_dlpack(_Capsule(capsule))
    except RuntimeError as error:
        raise DTypeError(
            f"from_dlpack: {type(x).__name__} holds numbers of code {dtype.code} and {dtype.bits} "
            f"bits, which retrograd does not compute with; convert them first ({error})"
        ) from None
    return array.view(BFLOAT16) if narrow else array


def is_capsule(x: Any) -> bool:
    """Whether it is a capsule of Python's, such as `torch.utils.dlpack.to_dlpack` gives."""
    return type(x).__name__ == "PyCapsule"


def _capsule_of(x: Any, copy: bool | None) -> Any:
    """What the other library hands out; older ones do not know the later arguments."""
    asked = {"copy": False} if copy is False else {}
    try:
        return x.__dlpack__(max_version=(1, 0), **asked)
    except TypeError:
        return x.__dlpack__()
