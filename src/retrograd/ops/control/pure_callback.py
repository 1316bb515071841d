"""Functions in Python that a graph calls: `pure_callback`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import BackendError, GradientError, ShapeError
from retrograd.ir import Dim, DType, Node, Op, Shape, TensorType, Trait, declare
from retrograd.ops.identity import StopGradient

Array = np.ndarray[Any, Any]


class HostFunction:
    """A function of arrays that gives one array, under a number by which compiled programs, which
    can hold no Python object, find it in this process. It stays: a program may be kept on disk."""

    def __init__(self, call: Callable[..., Array]) -> None:
        self.call = call
        self.number = next(_NUMBERS)
        FUNCTIONS[self.number] = self


FUNCTIONS: dict[int, HostFunction] = {}
_NUMBERS = itertools.count()


@declare
class PureCallback(Op):
    """The array that a function in Python gives for arrays: a function of their values alone, which
    may be called any number of times, or never, on any thread.

    The first `levels` axes of the result are those of stacks of samples, for each of which the
    function is called; bit k of `stacked[i]` says that input i has the axis of level k, where level
    0 is the last of these axes. In compiled programs complex numbers are pairs of reals along one
    more axis: bit i of `pairs` says that input i is, `pair` that the result is.

    The text of a graph has the name of the function only, and says so:
    what is read from it cannot run.
    """

    name = "pure_callback"
    traits = frozenset({Trait.DETERMINED, Trait.READS_MANY, Trait.EXPENSIVE, Trait.KEPT})
    label: str
    shape: Shape
    dtype: DType
    number: int = -1
    levels: int = 0
    stacked: tuple[int, ...] = ()
    pairs: int = 0
    pair: bool = False
    function: HostFunction | None = None

    @property
    def remark(self) -> str:  # type: ignore[override]
        """That the text lacks the function."""
        return "" if self.function is None else "a function in Python, which is not in this text"

    @property
    def attrs(self) -> dict[str, Any]:
        names = ("label", "shape", "dtype", "number", "levels", "stacked", "pairs", "pair")
        return {name: getattr(self, name) for name in names}

    def infer(self, *types: TensorType) -> TensorType:
        if any(not isinstance(d, Dim) and d < 0 for d in self.shape):
            raise ShapeError(f"{self} of {', '.join(map(str, types))}: sizes are not negative")
        return TensorType(self.dtype, self.shape)

    def need(self) -> HostFunction:
        """The function."""
        if self.function is None:
            raise BackendError(
                f"the function {self.label} is Python, which the text of a graph does not hold; "
                "trace the graph in this process"
            )
        return self.function

    def reference(self, *arrays: Any) -> Any:
        own = [_complex(x) if self.pairs >> i & 1 else x for i, x in enumerate(arrays)]
        if not self.pair:
            return self._called(own, self.shape, self.dtype)
        z = self._called(own, self.shape[:-1], self.dtype.complex)
        return z.reshape(*z.shape, 1).view(self.dtype.dtype)

    def _called(self, arrays: Sequence[Any], shape: Any, dtype: DType) -> Array:
        call = self.need().call
        result: Array = np.empty(shape, dtype.dtype)
        masks = self.stacked or (0,) * len(arrays)
        last = self.levels - 1
        for place in np.ndindex(*result.shape[: self.levels]):
            own = [
                x[tuple([p for axis, p in enumerate(place) if mask >> (last - axis) & 1])]
                for x, mask in zip(arrays, masks, strict=True)
            ]
            found, size = call(*own), result.shape[self.levels :]
            if found.shape != size:  # a size that had a name when the results were announced
                raise ShapeError(f"{self.label} returned {found.shape}, where {size} was announced")
            result[place] = found
        return result

    def on_pairs(self, pairs: Sequence[bool]) -> PureCallback:
        """The same on pairs of reals."""
        mask = sum(is_pair << i for i, is_pair in enumerate(pairs))
        if not self.dtype.is_complex:
            return dataclasses.replace(self, pairs=mask)
        return dataclasses.replace(
            self, pairs=mask, pair=True, shape=(*self.shape, 2), dtype=self.dtype.real
        )

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """Refused, unless `custom_vjp` or `custom_jvp` says what it is."""
        if all(isinstance(x.prim, StopGradient) or not x.dtype.is_inexact for x in inputs):
            return [None] * len(inputs)
        raise self._refused()

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        raise self._refused()

    def _refused(self) -> GradientError:
        return GradientError(
            f"pure_callback: nothing is known of the derivatives of {self.label}, which is Python; "
            "say what they are by rg.custom_vjp, or pass rg.stop_gradient of its arguments"
        )

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        masks = self.stacked or (0,) * len(inputs)
        stacked = tuple(m | (int(b) << self.levels) for m, b in zip(masks, batched, strict=True))
        shape = (size, *self.shape)
        op: Op = dataclasses.replace(self, shape=shape, levels=self.levels + 1, stacked=stacked)
        return op(*inputs)


def at_hand(node: Node) -> Node:
    """A node that was read from the text in a compiled program of this process, with the function
    that the program was made for."""
    prim = node.prim
    if not isinstance(prim, PureCallback) or prim.function is not None:
        return node
    found = dataclasses.replace(prim, function=FUNCTIONS[prim.number])
    return Node(found, node.inputs, node.type)


def _complex(x: Array) -> Array:
    z: Array = np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))[..., 0]
    return z
