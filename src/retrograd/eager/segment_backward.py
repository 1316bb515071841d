"""Gradients through segments: what `backward()` does where a recording was cut.

Segments are gone through from the last to the first, each by one program, which computes the
inside of the segment again where nothing was kept of it. The sum of what later segments have
contributed to a value goes into the program, which adds to it: so the order of additions is that of
one program for the whole recording, and so are the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from retrograd.autodiff import pullback
from retrograd.eager.grad_fn import JitCall, Output, TapeSegment, grad_fn_of
from retrograd.eager.immediate.function_call import Call
from retrograd.eager.immediate.slicing import SlicedGradients
from retrograd.eager.immediate_base import compiled
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import leaf_handle
from retrograd.eager.modes import current_backend
from retrograd.eager.program_cache import COUNTS, LOCK
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.trace_program import TraceProgram
from retrograd.ir import Node
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.tiered import Patience


def gradients_by_calls(
    root: LazyTensor, seed: Array, wanted: Collection[Node] = (), alone: bool = False
) -> dict[Node, tuple[LazyTensor | None, Array]] | None:
    """The gradient of what calls alone lead to, by leaf, with the handle that gets it: found in C.
    None where Python has to find it, and with `alone` where others than `wanted` would get one."""
    if compiled is None or not isinstance(root._state, Output) or current_backend() != "llvm":
        return None
    walk = compiled.walk(root._state)
    if walk is None:
        return None
    handles: list[LazyTensor | None] = []
    for x in walk.leaves:
        prim: Any = x.prim
        if prim.replaced or prim.freed or prim.grad_fn is not None:
            return None
        handles.append(leaf_handle(x))
    pairs = list(zip(walk.leaves, handles, strict=True))
    if alone and any(h is not None and x not in wanted for x, h in pairs):
        return None
    asked = [h is not None or x in wanted for x, h in pairs]
    found = walk.run(seed, asked, SlicedGradients())
    return {x: (h, g) for (x, h), g in zip(pairs, found, strict=True) if g is not None}


class BackwardPath(NamedTuple):
    """What a gradient goes through: leaves with a grad_fn by segment, and the handles at the
    end."""

    segments: dict[Any, list[Node]]
    ends: dict[Node, LazyTensor | None]


def backward_path(root: Node, wanted: Collection[Node] = ()) -> BackwardPath | None:
    """The path of a gradient from a leaf with a grad_fn to those that get one, and to `wanted`;
    None where it may not be gone: through what `backward()` went through already, or to a parameter
    that has another value now, or where nodes are needed: through a call of a compiled function."""
    path = BackwardPath({}, {})
    todo, seen = [root], {root}
    for leaf in todo:  # the list grows while the loop goes through it
        grad_fn = grad_fn_of(leaf)
        assert grad_fn is not None
        segment, output = grad_fn
        if isinstance(segment, JitCall):
            return None
        path.segments.setdefault(segment, []).append(leaf)
        if isinstance(segment, Call):
            reached = None if segment.freed else segment.reached(output)
        else:
            slots = output.slots()
            reached = None if -1 in slots else [segment.arrays[k] for k in slots]
        if reached is None:
            return None
        for x in reached:
            if x in seen:
                continue
            seen.add(x)
            prim: Any = x.prim
            if prim.replaced or prim.freed:
                return None
            if grad_fn_of(x) is not None:
                todo.append(x)
            elif (handle := leaf_handle(x)) is not None or x in wanted:
                path.ends[x] = handle
    return path


def gradients(root: Node, seed: Array, path: BackwardPath) -> dict[Node, Array]:
    """The gradient with respect to the ends of a path, of a leaf with a grad_fn."""
    found = {root: seed}
    slices = SlicedGradients()

    def asks(x: Node) -> bool:
        """Whether somebody wants the gradient with respect to a leaf."""
        return x in path.ends or grad_fn_of(x) is not None

    for segment in sorted(path.segments, key=lambda s: s.number, reverse=True):
        leaves = path.segments.pop(segment)
        given = [(fn.output, found.pop(x)) for x in leaves if x in found and (fn := grad_fn_of(x))]
        if given and isinstance(segment, Call):
            segment.backward(dict(given), asks, found, slices)
        elif given:
            backward_segment(segment, given, asks, found)
    return {x: g for x, g in found.items() if x in path.ends}


def backward_segment(
    segment: TapeSegment,
    given: list[tuple[TraceNode, Array]],
    asks: Callable[[Node], bool],
    found: dict[Node, Array],
) -> None:
    """Add the gradients of what a segment was computed from to `found`, given those of results."""
    given.sort(key=lambda pair: pair[0].node.id)
    trace_nodes = tuple([trace_node for trace_node, _ in given])
    arrays = segment.arrays
    at = tuple(sorted({k for f in trace_nodes for k in f.slots() if asks(arrays[k])}))
    more = tuple([arrays[k] in found for k in at])
    plans = segment.site.plans
    key = ("through", current_backend(), trace_nodes, at, more, *segment.values)
    if key in plans:
        COUNTS["hits"] += 1
    else:
        with LOCK:
            plans[key] = _plan(segment, trace_nodes, at, more)
    which, plan = plans[key]
    known: dict[Any, Array] = {**segment.values}
    known |= {("of", i): g for i, (_, g) in enumerate(given)}
    known |= {("to", k): found[arrays[k]] for k in at if arrays[k] in found}
    results = plan.run(arrays, known, segment.numbers)
    for k, g in zip(which, results, strict=True):
        found[arrays[k]] = g


def _plan(
    segment: TapeSegment, trace_nodes: Sequence[TraceNode], at: Sequence[int], more: Sequence[bool]
) -> tuple[list[int], TraceProgram]:
    """Of a segment the program of the gradient with respect to slots, and those that have one."""
    known: dict[Node, Any] = {f.node: f for f in segment.values}
    wanted = [_leaf(segment, k).node for k in at]
    ends = [
        *[f.node for f in trace_nodes],
        *[x for x, yes in zip(wanted, more, strict=True) if yes],
    ]
    starts = [input_node(y.type) for y in ends]
    keys = [("of", i) for i in range(len(trace_nodes))]
    keys += [("to", k) for k, yes in zip(at, more, strict=True) if yes]
    known |= zip(starts, keys, strict=True)
    parts = pullback(ends, starts, wanted)
    found = dict(zip(at, parts, strict=True))
    results = {k: StopGradient()(g) for k, g in found.items() if g is not None}  # g may be given
    return list(results), TraceProgram(
        segment.site, list(results.values()), known, patience=Patience.RUNS
    )


def _leaf(segment: TapeSegment, k: int) -> TraceNode:
    """The trace node of the array in a slot."""
    x = segment.arrays[k]
    return segment.site.leaf(k, x, x.prim.freed)  # type: ignore[attr-defined]
