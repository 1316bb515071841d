"""Sequences of tensors, also of as many as a loop of unknown length makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

import retrograd as rg
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import NeedsValue, as_tensor, number, sizes


@dataclass(frozen=True)
class GrowingList:
    """A sequence in the body of a loop, of which only what a step appends is looked at."""

    parts: tuple[Any, ...] = ()

    def _unknown(self) -> NoReturn:
        raise NeedsValue("the number of steps of Loop, whose body reads a sequence that it makes")

    def __len__(self) -> int:
        self._unknown()

    def __iter__(self) -> Iterator[Any]:
        self._unknown()

    def __getitem__(self, place: Any) -> Any:
        self._unknown()


@dataclass(frozen=True)
class StackedList:
    """A sequence of as many tensors as an array has places along its first axis."""

    tensor: Any

    def stack(self, axis: int) -> Any:
        return rg.moveaxis(self.tensor, 0, axis)

    def concat(self, axis: int) -> Any:
        count, *shape = self.tensor.shape
        axis = axis + len(shape) if axis < 0 else axis
        shape[axis] = count * shape[axis]
        return rg.reshape(rg.moveaxis(self.tensor, 0, axis), tuple(shape))


def appended(before: Any, steps: GrowingList) -> list[Any]:
    """What each step of a loop gives, to be collected, of a sequence that is empty at first."""
    if not isinstance(steps, GrowingList) or (steps.parts and before):
        raise NeedsValue("the number of steps of Loop, which changes a sequence")
    return list(map(as_tensor, steps.parts))


def gathered(before: Any, collected: list[Any]) -> Any:
    """The sequence from what was collected: the first parts of all steps, the second, ..."""
    if not collected:
        return before
    if len(collected) == 1:
        return StackedList(collected[0])
    parts = rg.stack(collected, axis=1)
    return StackedList(rg.reshape(parts, (parts.shape[0] * parts.shape[1], *parts.shape[2:])))


def _place(position: Any, default: int) -> int:
    return default if position is None else number(position, "a place in a sequence")


rule("SequenceConstruct")(lambda _call, *parts: list(parts))
rule("SequenceEmpty")(lambda _call: [])


@rule("SequenceLength")
def sequence_length(_call: NodeCall, parts: Any) -> Any:
    count = parts.tensor.shape[0] if isinstance(parts, StackedList) else len(parts)
    return rg.asarray(count, dtype=rg.int64)


@rule("SequenceAt")
def sequence_at(_call: NodeCall, parts: Any, place: Any) -> Any:
    if not isinstance(parts, StackedList):
        return parts[_place(place, 0)]
    count = rg.asarray(parts.tensor.shape[0], dtype=rg.int64)
    return rg.take(parts.tensor, rg.where(place < 0, place + count, place), axis=0)


@rule("SequenceInsert")
def sequence_insert(_call: NodeCall, parts: Any, value: Any, position: Any = None) -> Any:
    if isinstance(parts, GrowingList) and position is None:
        return GrowingList((*parts.parts, value))
    place = _place(position, len(parts))
    place = place + len(parts) if place < 0 else place
    return [*parts[:place], value, *parts[place:]]


@rule("SequenceErase")
def sequence_erase(_call: NodeCall, parts: Any, position: Any = None) -> Any:
    left = list(parts)
    del left[_place(position, -1)]
    return left


@rule("ConcatFromSequence")
def concat_from_sequence(call: NodeCall, parts: Any) -> Any:
    axis = call.get("axis")
    if isinstance(parts, StackedList):
        return parts.stack(axis) if call.get("new_axis", 0) else parts.concat(axis)
    return rg.stack(parts, axis=axis) if call.get("new_axis", 0) else rg.concat(parts, axis=axis)


@rule("SplitToSequence")
def split_to_sequence(call: NodeCall, x: Any, split: Any = None) -> Any:
    """In pieces of a size, or of given sizes; without any, one by one."""
    axis = call.get("axis", 0)
    length = x.shape[axis]
    kept = split is not None or bool(call.get("keepdims", 1))
    if split is None:
        lengths: Any = [1] * length
    elif split.ndim == 0:
        size = number(split, "the size of SplitToSequence")
        lengths = [min(size, length - i) for i in range(0, length, size)]
    else:
        lengths = sizes(split, "the sizes of SplitToSequence")
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist()
    parts = [rg.take(x, rg.arange(a, b), axis=axis) for a, b in itertools.pairwise(starts)]
    return parts if kept else [rg.squeeze(p, axis) for p in parts]
