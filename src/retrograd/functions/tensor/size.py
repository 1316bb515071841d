"""`x.size`: the number of elements, which PyTorch's users call to get the shape."""

from __future__ import annotations

import functools
from typing import Any

from retrograd.functions.broadcasting import normal_axis
from retrograd.ir import Dim, Shape, product


class Size(int):
    """The number of elements of a tensor, as an integer; called, it is PyTorch's `x.size()`, the
    shape, or `x.size(0)`, the size of one axis."""

    shape: Shape

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[normal_axis(dim, len(self.shape), "size")]

    def __reduce__(self) -> Any:
        return int, (int(self),)


class SymbolicSize(Dim):
    """The same where the number of elements is symbolic."""

    __slots__ = ("shape",)

    shape: Shape

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[normal_axis(dim, len(self.shape), "size")]


@functools.lru_cache(1024)  # to make one takes longer than all the rest
def size_of(shape: Shape) -> Size | SymbolicSize:
    """The number of elements of a tensor, which knows the shape."""
    count = product(shape)
    if isinstance(count, Dim):
        named = object.__new__(SymbolicSize)
        named._set(count.terms)
        named.shape = shape
        return named
    made = Size(count)
    made.shape = shape
    return made
