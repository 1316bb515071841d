"""Choices, loops, sequences and optional values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import NeedsValue, as_tensor, known, number, sizes
from retrograd.tuning import TUNING


@rule("If", sizes=True)
def if_(call: NodeCall, condition: Any) -> Any:
    """Where the condition is known, one branch; else both stand in the graph."""
    then, other = call.get("then_branch"), call.get("else_branch")
    holds = known(condition)
    if holds is not None:
        return tuple(call.run(then if holds.any() else other, []))

    def branch(graph: Any) -> Any:
        found = call.run(graph, [])
        if any(value is None or isinstance(value, list) for value in found):
            raise NeedsValue("the condition of If, whose branches give sequences or nothing")
        return tuple(map(as_tensor, found))

    return rg.cond(rg.reshape(condition, ()), lambda: branch(then), lambda: branch(other))


@rule("Loop", sizes=True)
def loop(call: NodeCall, count: Any = None, condition: Any = None, *state: Any) -> Any:
    """Steps whose number is known are written one after the other, up to some; more of them are a
    scan. Where the condition is computed it is a `while_loop`, which collects nothing."""
    body, n = call.get("body"), len(state)
    limit = None if count is None else known(count)
    begins = True if condition is None else known(condition)
    if (count is None or limit is not None) and begins is not None:
        steps = None if limit is None else int(limit.reshape(()))
        if steps is None or steps <= TUNING.onnx_unrolled_steps:
            try:
                return _unrolled(call, body, steps, bool(np.all(begins)), state)
            except _Undecided:
                pass
        elif (scanned := _scanned(call, body, steps, state)) is not None:
            return scanned
    if len(call.outputs) > n:
        raise NeedsValue("the number of steps of Loop, which collects a value of each")
    start = rg.asarray(True) if condition is None else rg.reshape(condition, ())

    def goes_on(at: Any) -> Any:
        return at[1] if count is None else at[1] & (at[0] < rg.reshape(count, ()))

    def step(at: Any) -> Any:
        i, holds, *values = at
        new = list(map(as_tensor, call.run(body, [i, holds, *values])))
        return [i + 1, rg.reshape(new[0], ()), *new[1 : n + 1]]

    first = [rg.asarray(0, dtype=rg.int64), start, *map(as_tensor, state)]
    return tuple(rg.while_loop(goes_on, step, first)[2:])


class _Undecided(Exception):
    """The condition of a loop is computed by the model."""


def _unrolled(call: NodeCall, body: Any, steps: int | None, holds: bool, state: Any) -> Any:
    n, values, i = len(state), list(state), 0
    collected: list[list[Any]] = [[] for _ in call.outputs[n:]]
    while holds and (steps is None or i < steps):
        if i > TUNING.onnx_unrolled_steps:
            raise _Undecided
        at = [rg.asarray(i, dtype=rg.int64), rg.asarray(True), *values]
        after, *new = call.run(body, at)
        decided = known(after)
        if decided is None:
            raise _Undecided
        values = new[:n]
        for part, value in zip(collected, new[n:], strict=True):
            part.append(as_tensor(value))
        holds, i = bool(decided.all()), i + 1
    return (*values, *(_stacked(part) for part in collected))


def _stacked(parts: list[Any]) -> Any:
    return rg.stack(parts) if parts else rg.zeros((0,))


def _scanned(call: NodeCall, body: Any, steps: int, state: Any) -> Any:
    """As a scan; None where the condition may end it before."""
    n, ends = len(state), []

    def step(carry: Any, i: Any) -> Any:
        after, *new = call.run(body, [i, rg.asarray(True), *carry])
        decided = known(after)
        ends.append(decided is None or not decided.all())
        new = list(map(as_tensor, new))
        return new[:n], new[n:]

    last, collected = rg.scan(step, list(map(as_tensor, state)), rg.arange(steps))
    return None if any(ends) else (*last, *collected)


@rule("Scan")
def scan(call: NodeCall, *values: Any) -> Any:
    body, m = call.get("body"), call.get("num_scan_inputs")
    n = len(values) - m
    given, collected = m, len(call.outputs) - n
    axes = call.get("scan_input_axes", [0] * given)
    turned = call.get("scan_input_directions", [0] * given)
    xs = [rg.moveaxis(x, a, 0) for x, a in zip(values[n:], axes, strict=True)]
    xs = [rg.flip(x, axis=0) if t else x for x, t in zip(xs, turned, strict=True)]

    def step(carry: Any, x: Any) -> Any:
        new = list(map(as_tensor, call.run(body, [*carry, *x])))
        return new[:n], new[n:]

    last, ys = rg.scan(step, list(values[:n]), xs)
    axes = call.get("scan_output_axes", [0] * collected)
    turned = call.get("scan_output_directions", [0] * collected)
    ys = [rg.flip(y, axis=0) if t else y for y, t in zip(ys, turned, strict=True)]
    return (*last, *(rg.moveaxis(y, 0, a) for y, a in zip(ys, axes, strict=True)))


def _place(position: Any, default: int) -> int:
    return default if position is None else number(position, "a place in a sequence")


rule("SequenceConstruct")(lambda _call, *parts: list(parts))
rule("SequenceEmpty")(lambda _call: [])
rule("SequenceLength")(lambda _call, parts: rg.asarray(len(parts), dtype=rg.int64))
rule("SequenceAt")(lambda _call, parts, place: parts[_place(place, 0)])
rule("Optional")(lambda _call, value=None: value)
rule("OptionalHasElement")(lambda _call, value=None: rg.asarray(value is not None))


@rule("OptionalGetElement")
def optional_get_element(_call: NodeCall, value: Any = None) -> Any:
    if value is None:
        raise BackendError("OptionalGetElement of an optional value that is empty")
    return value


@rule("SequenceInsert")
def sequence_insert(_call: NodeCall, parts: Any, value: Any, position: Any = None) -> Any:
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
    if call.get("new_axis", 0):
        return rg.stack(parts, axis=call.get("axis"))
    return rg.concat(parts, axis=call.get("axis"))


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
