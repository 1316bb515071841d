"""Calls of compiled functions whose program leaves its results on a device.

What `CallSite` is for programs of the CPU: a call like an earlier one (the same structure, types
and backend, tensors that stand for arrays) needs no look at its signature.
"""

from __future__ import annotations

from typing import Any

from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Donated, LazyTensor, is_weak
from retrograd.runtime.device_array import DeviceArray, resides
from retrograd.runtime.fast_call import MISSED
from retrograd.transforms.jit.fast_call import CompiledFunction, FlatArguments
from retrograd.transforms.jit.signature import StaticLeaf, is_large

DTYPES = {int: "int64", float: "float64"}  # of numbers


class DeviceSite:
    """Calls of one signature, whose program is `traced`."""

    __slots__ = ("_backend", "_gone", "_kinds", "_structure", "_traced", "signature")

    def __init__(self, traced: CompiledFunction, call: FlatArguments) -> None:
        self.signature = call.signature
        self._structure, _, self._backend = call.signature
        self._traced = traced
        arrays = iter(call.arrays)
        # For each leaf the type of a tensor's array, the class of a number, or what it has to be.
        self._kinds: list[Any] = []
        for x, key in zip(call.leaves, call.keys, strict=True):
            if isinstance(key, StaticLeaf):
                self._kinds.append(key)
                continue
            array = next(arrays)
            self._kinds.append(type(x) if type(x) in DTYPES else (array.dtype, array.shape))
        self._gone = [
            gone and isinstance(x, LazyTensor)
            for x, gone in zip(call.leaves, call.donated, strict=True)
        ]

    @staticmethod
    def serves(traced: CompiledFunction, call: FlatArguments) -> bool:
        """Whether there is the short way for calls like this one."""
        leaves = zip(call.leaves, call.keys, strict=True)
        return (
            resides(traced.program)
            and not traced.needs_grad
            and all(
                isinstance(key, StaticLeaf)
                or type(x) in DTYPES
                or (type(x) is LazyTensor.handle_class and not is_weak(x))
                for x, key in leaves
            )
        )

    def serve(
        self, call: FlatArguments, backend: str, gone: Donated | None, untracked: bool
    ) -> Any:
        """The result of a call like that, or `MISSED`. What is donated has `gone` in its place."""
        if backend != self._backend or call.structure != self._structure:
            return MISSED
        arrays: list[Any] = []
        handles: list[tuple[int, LazyTensor]] = []
        for x, kind, taken in zip(call.leaves, self._kinds, self._gone, strict=True):
            if type(kind) is StaticLeaf:
                if kind.value is not x:
                    return MISSED
                continue
            # A donated tensor that may want a gradient stays: that is for the long way.
            array = _array_of(x, kind, untracked and not taken)
            if array is None:
                return MISSED
            if taken:
                if type(array) is not DeviceArray:
                    return MISSED
                handles.append((len(arrays), x))
            arrays.append(array)
        array = None  # a program takes the memory of arrays that nobody else has
        return self._traced.run_with(arrays, handles, gone)


def _array_of(x: Any, kind: Any, untracked: bool) -> Any:
    """The array of a leaf of this kind; None for what is of another, or has to be computed."""
    if type(kind) is type:
        number = type(x) is kind and not is_large(x)
        return as_array(x, DTYPES[kind]) if number else None
    if type(x) is not LazyTensor.handle_class:
        return None
    array = x.array_there(untracked)
    if array is None or (array.dtype, array.shape) != kind:
        return None
    return array
