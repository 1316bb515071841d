"""What makes two calls of a compiled function alike: the parts of a signature."""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.frontend.recorder import FUNCTIONS
from retrograd.ir import Dim, TensorType

# What is part of the signature without being asked to. Functions are compared by identity.
CONSTANT = (
    bool,
    str,
    bytes,
    *FUNCTIONS,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
    functools.partial,
    np.ufunc,
)


def by_identity(cls: Any) -> bool:
    """Whether instances of a class are equal only to themselves, whatever they hold."""
    return cls.__hash__ is object.__hash__


class Static:
    """A leaf that is part of the signature: a new value is a new trace."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Static)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


def parse_shape(text: Any) -> tuple[int | Dim | None, ...]:
    """`"N 784"` as `(Dim("N"), 784)`; `_` stands for the size the array has."""
    words = text.replace(",", " ").split() if isinstance(text, str) else text
    if not isinstance(words, list | tuple):
        raise ShapeError(f'jit: sizes are declared as in "N 784", not as {text!r}')
    return tuple(_size(word) for word in words)


def _size(word: Any) -> int | Dim | None:
    if not isinstance(word, str):
        return word
    if word == "_":
        return None
    return int(word) if word.isdigit() else Dim(word)


def symbolic(given: TensorType, shape: Sequence[Any], label: str) -> TensorType:
    if len(shape) != given.rank:
        raise ShapeError(f"jit: {label} is declared with {len(shape)} axes, but is {given}")
    sizes = tuple(n if d is None else d for d, n in zip(shape, given.shape, strict=True))
    for d, n in zip(sizes, given.shape, strict=True):
        if not isinstance(d, Dim) and d != n:
            raise ShapeError(f"jit: {label} is declared as {shape}, but is {given}")
    return given.with_shape(sizes)
