"""Choices, loops and optional values."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.interop.onnx.dynamic_size import length_of, size_of
from retrograd.interop.onnx.operators.sequence import GrowingList, appended, gathered
from retrograd.interop.onnx.registry import NodeCall, rule
from retrograd.interop.onnx.values import NeedsValue, as_tensor, known, known_sizes
from retrograd.ir import Dim
from retrograd.ir.dim import evaluate
from retrograd.ops.elementwise import gt
from retrograd.ops.shape import Reshape
from retrograd.tuning import TUNING


@rule("If", sizes=True)
def if_(call: NodeCall, condition: Any) -> Any:
    """Where the condition is known, one branch; else both stand in the graph."""
    then, other = call.get("then_branch"), call.get("else_branch")
    holds = known(condition)
    if holds is not None:
        return tuple(call.run(then if holds.any() else other, []))

    def branch(graph: Any, but: Container[int] = ()) -> Any:
        found = call.run(graph, [])
        if any(value is None or isinstance(value, list) for value in found):
            raise NeedsValue("the condition of If, whose branches give sequences or nothing")
        return tuple(as_tensor(x) for i, x in enumerate(found) if i not in but)

    condition = rg.reshape(condition, ())
    size, empty = _asks_for_elements(condition), dict[int, Any]()
    if size is not None:  # where there are none, nothing is in arrays of that size
        pairs = zip(branch(then), branch(other), strict=True)
        empty = {i: x for i, (x, y) in enumerate(pairs) if _is_none_at_zero(x, y, size)}
    chosen = iter(rg.cond(condition, lambda: branch(then, empty), lambda: branch(other, empty)))
    return tuple(empty[i] if i in empty else next(chosen) for i in range(len(call.outputs)))


def _asks_for_elements(condition: Any) -> Dim | None:
    """The size of which a condition asks whether it is more than 0."""
    node = condition.node
    while isinstance(node.prim, Reshape):
        node = node.inputs[0]
    if node.op != gt.name:
        return None
    size, least = map(rg.Tensor, node.inputs)
    return size_of(size) if known(least) == 0 else None


def _is_none_at_zero(x: Any, y: Any, size: Dim) -> bool:
    """Whether an array has no elements where a size is 0, and then the shape of the other."""
    (name,) = size.names
    shape = tuple(
        evaluate(d, {name: 0}) if isinstance(d, Dim) and d.names == {name} else d for d in x.shape
    )
    return x.dtype is y.dtype and 0 in shape and 0 not in x.shape and shape == tuple(y.shape)


@rule("Loop", sizes=True)
def loop(call: NodeCall, count: Any = None, condition: Any = None, *state: Any) -> Any:
    """Steps whose number is known are written one after the other, up to some. More of them, or as
    many as a size with a name or a value says, are a scan; where the condition is computed it is a
    `while_loop`, and a scan of as many steps again if something is collected."""
    body, n = call.get("body"), len(state)
    steps, begins = _steps(count), True if condition is None else known(condition)
    if isinstance(steps, int | Dim | None) and begins is not None:
        if steps is None or (isinstance(steps, int) and steps <= TUNING.onnx_unrolled_steps):
            try:
                return _unrolled(call, body, steps, bool(np.all(begins)), state)
            except _Undecided:
                pass
        elif np.all(begins) and (found := _scanned(call, body, steps, state)) is not None:
            return found
    start = rg.asarray(True) if condition is None else rg.reshape(as_tensor(condition), ())
    first = [x if isinstance(x, list) else as_tensor(x) for x in state]
    if len(call.outputs) <= n and not any(isinstance(x, list) for x in state):
        return tuple(_while(call, body, steps, start, first)[2:])
    if steps is not None and begins is not None and _goes_on(call, body, first):
        made = rg.asarray(steps, dtype=rg.int64) if np.all(begins) else rg.asarray(0)
    else:
        made = _while(call, body, steps, start, first)[0]
    return length_of(
        made, lambda size: _scanned(call, body, size, state, True), "the number of steps of Loop"
    )


def _steps(count: Any) -> Any:
    """The greatest number of steps: a number, a size with a name, a scalar, or None."""
    if count is None:
        return None
    if (found := known_sizes(count)) is None:
        return rg.reshape(count, ())
    (size,) = found.ravel()
    return size if isinstance(size, Dim) else int(size)


def _while(call: NodeCall, body: Any, steps: Any, start: Any, state: Sequence[Any]) -> Any:
    """The number of steps made, whether it would go on, and the state at the end but for what is no
    tensor."""
    tensors = [x for x in state if not isinstance(x, list)]

    def goes_on(at: Any) -> Any:
        return at[1] if steps is None else at[1] & (at[0] < steps)

    def step(at: Any) -> Any:
        i, holds, *values = at
        new = call.run(body, [i, holds, *_with_sequences(state, values)])
        after = [x for x, old in zip(new[1:], state, strict=False) if not isinstance(old, list)]
        return [i + 1, rg.reshape(as_tensor(new[0]), ()), *map(as_tensor, after)]

    return rg.while_loop(goes_on, step, [rg.asarray(0, dtype=rg.int64), start, *tensors])


def _with_sequences(state: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """A state with other tensors in their places."""
    rest = iter(tensors)
    return [GrowingList() if isinstance(x, list) else next(rest) for x in state]


def _goes_on(call: NodeCall, body: Any, state: Sequence[Any]) -> bool:
    """Whether the condition never ends the loop. The step that tells is not used."""
    return _scanned(call, body, 1, state) is not None


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


def _scanned(
    call: NodeCall, body: Any, steps: Any, state: Sequence[Any], counted: bool = False
) -> Any:
    """As a scan; None where the condition may end it before, unless the steps were counted. What is
    appended to sequences is collected, too."""
    n, ends, lengths = len(state), [], list[int]()
    tensors = [as_tensor(x) for x in state if not isinstance(x, list)]

    def step(carry: Any, i: Any) -> Any:
        after, *new = call.run(body, [i, rg.asarray(True), *_with_sequences(state, carry)])
        decided = known(after)
        ends.append(decided is None or not decided.all())
        pairs = list(zip(new, state, strict=False))
        parts = [appended(old, x) for x, old in pairs if isinstance(old, list)]
        lengths[:] = map(len, parts)
        kept = [as_tensor(x) for x, old in pairs if not isinstance(old, list)]
        return kept, [*itertools.chain(*parts), *map(as_tensor, new[n:])]

    last, collected = rg.scan(step, tensors, rg.arange(steps))
    if any(ends) and not counted:
        return None
    rest, counts, found = iter(last), iter(lengths), iter(collected)
    final = [
        gathered(x, list(itertools.islice(found, next(counts)))) if isinstance(x, list)
        else next(rest)
        for x in state
    ]  # fmt: skip
    return (*final, *found)


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


rule("Optional")(lambda _call, value=None: value)
rule("OptionalHasElement")(lambda _call, value=None: rg.asarray(value is not None))


@rule("OptionalGetElement")
def optional_get_element(_call: NodeCall, value: Any = None) -> Any:
    if value is None:
        raise BackendError("OptionalGetElement of an optional value that is empty")
    return value
