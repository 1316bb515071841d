"""Tensors for einops: `rearrange`, `reduce`, `repeat`, `einsum`, `pack` and `unpack`.

einops looks for what knows an array among the subclasses of its `AbstractBackend`; here is one. It
is imported with einops, see `post_import.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from retrograd.eager.lazy_tensor import Array, LazyTensor
from retrograd.functions import contractions, creation, manipulation, reductions
from retrograd.functions.tensor.tensor import Tensor

try:
    _Base: Any = import_module("einops._backends").AbstractBackend
except ModuleNotFoundError:  # nobody asks then
    _Base = object


class RetrogradBackend(_Base):
    """What einops does with tensors, eagerly and in functions that are traced."""

    framework_name = "retrograd"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, LazyTensor)

    def from_numpy(self, x: Array) -> Tensor:
        return creation.asarray(x)

    def to_numpy(self, x: Tensor) -> Array:
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return creation.arange(start, stop)

    def reshape(self, x: Tensor, shape: Sequence[Any]) -> Any:
        return manipulation.reshape(x, tuple(shape))

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Any:
        return manipulation.permute_dims(x, tuple(axes))

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Any:
        return getattr(reductions, operation)(x, axis=tuple(axes))  # einops knows which there are

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Any:
        return manipulation.stack(list(tensors))

    def add_axis(self, x: Tensor, new_position: int) -> Any:
        return manipulation.expand_dims(x, axis=new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: Mapping[int, Any]) -> Any:
        for position in pos2len:
            x = self.add_axis(x, position)
        shape = [pos2len.get(i, size) for i, size in enumerate(x.shape)]
        return manipulation.broadcast_to(x, tuple(shape))

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Any:
        return manipulation.tile(x, tuple(repeats))

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Any:
        return manipulation.concat(list(tensors), axis=axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.dtype.is_float

    def einsum(self, pattern: str, *x: Tensor) -> Any:
        return contractions.einsum(pattern, *x)
