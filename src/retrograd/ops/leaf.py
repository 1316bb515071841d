"""Ops without inputs: graph inputs, constants, counters and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from retrograd.errors import ShapeError
from retrograd.ir import Dim, DType, Node, Op, Shape, TensorType, Trait, as_dtype, declare

KEPT = 1 << 16  # bytes of a filled constant that stays with it


class Leaf(Op):
    """An op without inputs: nothing to differentiate, the same for every sample of a batch."""

    traits = frozenset({Trait.FREE})
    arity = 0

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return ()

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self()


@declare
class Input(Leaf):
    """A value that the caller gives."""

    name = "input"
    traits = frozenset({Trait.INPUT, Trait.PLACEHOLDER, Trait.FREE})
    dtype: DType
    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, self.shape)


def input_node(type: TensorType, name: str = "") -> Node:
    """A fresh graph input."""
    return Node(Input(type.dtype, type.shape), (), type, name=name)


@declare
class Constant(Leaf):
    """An array known when the graph is built; a scalar value fills the whole shape."""

    name = "constant"
    traits = frozenset({Trait.LEAF, Trait.CONSTANT, Trait.DETERMINED, Trait.HANDS_ON, Trait.FREE})
    array = None  # of an instance: all of it, see `filled`; no attribute of the op
    value: np.ndarray[Any, Any]
    shape: Shape

    def __post_init__(self) -> None:
        value = np.array(self.value, order="C")  # a private copy
        value = value.astype(as_dtype(value.dtype).dtype, copy=False)  # in native byte order
        value.setflags(write=False)
        if value.ndim and value.shape != self.shape:
            raise ShapeError(f"a constant of shape {value.shape} declared as {self.shape}")
        object.__setattr__(self, "value", value)

    def filled(self) -> Any:
        """All of it as an array, read-only. A small one is kept, in `array`, where C looks for it:
        operations that run at once take it as an operand again and again."""
        found: Any = self.array
        if found is None:
            found = np.array(self.reference(), order="C")
            found.setflags(write=False)
            if found.nbytes <= KEPT:
                object.__setattr__(self, "array", found)
        return found

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(as_dtype(self.value.dtype), self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.broadcast_to(self.value, tuple(map(index, self.shape)))

    def _key(self) -> tuple[Any, ...]:
        return self.value.dtype.str, self.value.ndim, self.shape, self.value.tobytes()

    def __eq__(self, other: object) -> bool:
        """Equal to the bit: 0.0 and -0.0 differ, equal NaNs are equal."""
        return isinstance(other, Constant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def constant(value: Any) -> Node:
    """A constant node holding a copy of the array."""
    array = np.asarray(value)
    return Constant(array, array.shape)()


@declare
class Iota(Leaf):
    """`y[i0, ..., in] = i_axis`: the position along one axis, cast from int64."""

    name = "iota"
    traits = frozenset({Trait.LEAF, Trait.DETERMINED, Trait.FREE})
    shape: Shape
    axis: int
    dtype: DType

    def infer(self, *types: TensorType) -> TensorType:
        if not 0 <= self.axis < len(self.shape):
            raise ShapeError(f"{self} has an axis outside of its shape {self.shape}")
        return TensorType(self.dtype, self.shape)

    def reference(self, *arrays: Any) -> Any:
        shape = tuple(map(index, self.shape))
        ones = [1] * len(shape)
        ones[self.axis] = -1
        counter = np.arange(shape[self.axis]).astype(self.dtype.dtype).reshape(ones)
        return np.broadcast_to(counter, shape)


@declare
class SizeOf(Leaf):
    """The value of a symbolic size, as a scalar, cast from int64."""

    name = "size_of"
    traits = frozenset({Trait.LEAF, Trait.ROUNDED_ONCE, Trait.FREE, Trait.NO_TRAFFIC})
    size: Dim | int
    dtype: DType

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, ())

    def reference(self, *arrays: Any) -> Any:
        return np.asarray(index(self.size), np.int64).astype(self.dtype.dtype)
