"""Gradients through which gradients go: each way back through a call is a call itself.

What PyTorch calls `create_graph`. The numbers are those of the programs that go back anyway; what
is new is that a result knows, as its grad_fn, a call of the kind `PullbackKind`, whose
operands are those of the call, what it gave, and the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from retrograd.eager.grad_fn import Output
from retrograd.eager.immediate.call_kind import CallKind
from retrograd.eager.immediate.function_call import (
    AssignCall,
    Call,
    Edge,
    FunctionCall,
    JoinCall,
    ScatterCall,
    SliceCall,
)
from retrograd.eager.immediate.pullback_kind import merged, pullback_of
from retrograd.eager.immediate.slicing import SlicedGradients, index_function, sliced
from retrograd.eager.immediate_base import compiled
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import current_backend
from retrograd.eager.trace_buffer import CURRENT
from retrograd.runtime.backend import Array


class Tracked(NamedTuple):
    """An array, and what a gradient with respect to it goes to."""

    array: Array
    edge: Edge


Key = Any  # of what has a gradient: a call and the number of its result, or a leaf
Added = Callable[[LazyTensor, LazyTensor], LazyTensor]  # a gradient so far and what is added to it


def key_of(edge: Any) -> Key:
    """What stands for an edge: two outputs may be the same result."""
    if edge.__class__ is Output:
        return edge.call, edge.index
    fn = edge.prim.grad_fn
    return edge if fn is None else (fn.segment, fn.output)


def handle_of(value: Tracked) -> LazyTensor:
    """A tensor that stands for a value."""
    array, edge = value
    if edge is None:
        return LazyTensor.handle_class.dehydrated(array)
    if isinstance(edge, Output):
        made: LazyTensor = LazyTensor.output(edge, True)
        return made
    return LazyTensor.handle_class(edge, True)


def value_of(handle: LazyTensor) -> Tracked:
    """The value of a tensor that was computed at once."""
    state: Any = handle._state
    if isinstance(state, Output):
        return Tracked(state.array, state if handle._requires_grad else None)
    return Tracked(handle.value(), None)


class _Path(NamedTuple):
    """The calls that lead from what is wanted to a result, the last first, and all keys on it."""

    calls: list[Call]
    keys: set[Key]


def _path(root: Output, wanted: Collection[Key]) -> _Path | None:
    """None where nodes are needed: through segments, assignments, compiled functions."""
    calls = {root.call: None}
    for call in (todo := [root.call]):
        if not isinstance(call, Call) or call.freed or isinstance(call, AssignCall):
            return None
        for edge in call.edges:
            if edge is None or (key := key_of(edge)) in wanted:
                continue
            if isinstance(edge, Output):
                if edge.freed:
                    return None
            elif edge.prim.replaced or edge.prim.freed:  # type: ignore[attr-defined]
                return None
            if isinstance(key, tuple) and key[0] not in calls:
                calls[key[0]] = None
                todo.append(key[0])
    on: list[Call] = []
    keys = set(wanted)
    for call in sorted(calls, key=attrgetter("number")):
        edges = enumerate(call.edges)
        leading = [k for k, edge in edges if edge is not None and key_of(edge) in keys]
        if leading:
            on.append(call)
            keys.update([(call, i) for i in call.reached_from(leading)])
    return _Path(on[::-1], keys)


def gradients_with_graph(
    root: Output, seed: Array, wanted: Sequence[Key], added: Added
) -> list[Tracked | None] | None:
    """The gradients of a result with respect to what is wanted; None where nodes are needed."""
    path = _path(root, set(wanted))
    if path is None:
        return None
    outputs: dict[Key, Output] = {(root.call, root.index): root}
    for call in path.calls:
        for edge in call.edges:
            if isinstance(edge, Output):
                outputs.setdefault((edge.call, edge.index), edge)
    found: dict[Key, Tracked] = {(root.call, root.index): Tracked(seed, None)}
    for call in path.calls:
        keys = [(call, k) for k in range(call.results)]
        cotangents = {k: found.pop(key) for k, key in enumerate(keys) if key in found}
        if not cotangents:
            continue
        if isinstance(call, FunctionCall):
            if not _through_function(call, cotangents, path.keys, found, outputs):
                return None
        else:
            _through_moved(call, cotangents[0], path.keys, found, added)
    return [found.get(key) for key in wanted]


def _through_function(
    call: FunctionCall, cotangents: Mapping[int, Tracked], keys: Collection[Key],
    found: dict[Key, Tracked], outputs: Mapping[Key, Output],
) -> bool:  # fmt: skip
    """Add the gradients of operands to `found`; whether that is possible."""
    given = tuple(sorted(cotangents))
    own = [None if edge is None else key_of(edge) for edge in call.edges]
    reach = {k for i in given for k in call.reach(i)}
    at = tuple([k for k in sorted(reach) if own[k] in keys])
    if not at:
        return True
    more = tuple([own[k] in found for k in at])
    starts = [cotangents[i] for i in given]
    starts += [found[own[k]] for k, yes in zip(at, more, strict=True) if yes]
    tensors, ints = len(call.edges), len(call.ints)
    shapes = tuple([a.shape for a in call.given[:tensors]]) + tuple([(n,) for n in call.ints])
    way = pullback_of(call.kind, given, at, more, shapes)
    if way is None:
        return False
    values = (*call.given, *[x.array for x in starts])
    slopes = _pull(call, given, at, more, values)
    used = [
        Tracked(a, outputs.get((call, i)) or Output.of(a, call, i, False))
        for i, a in zip(way.used, call.inside(way.used), strict=True)
    ]
    operands = [Tracked(a, x) for a, x in zip(call.given[:tensors], call.edges, strict=True)]
    given_to = [*operands, *used, *starts]
    computed = [slopes[k] for k in way.plan.computed]
    made = None
    if computed and any(x.edge is not None for x in given_to):
        kind, operands = _distinct(way.kind, given_to)
        if kind is None:
            return False
        arrays = [*[x.array for x in operands], *call.given[tensors : tensors + ints], *computed]
        edges = [x.edge for x in operands]
        made = FunctionCall.of(kind, edges, arrays, call.ints, call.numbers, False)
        _count(kind, operands[0].array)
    for k, where in way.plan.passed:
        handed_on = where if where < tensors else where - len(call.given) + tensors + len(used)
        found[own[k]] = given_to[handed_on]
    for i, k in enumerate(way.plan.computed):
        edge = None if made is None else Output.of(slopes[k], made, i, False)
        found[own[k]] = Tracked(slopes[k], edge)
    return True


def _distinct(kind: CallKind, given: list[Tracked]) -> tuple[CallKind | None, list[Tracked]]:
    """A call where what is given twice is one operand."""
    first: dict[Key, int] = {}
    keys = [k if x.edge is None else key_of(x.edge) for k, x in enumerate(given)]
    which = [first.setdefault(key, k) for k, key in enumerate(keys)]
    if len(first) == len(given):
        return kind, given
    return merged(kind, tuple(which)), [given[k] for k in first.values()]


def _pull(
    call: FunctionCall, given: Sequence[int], at: Sequence[int], more: Sequence[bool],
    values: tuple[Array, ...],
) -> Mapping[int, Any] | Sequence[Any]:  # fmt: skip
    """The gradients of operands, by the program that C knows, if it does."""
    if compiled is None or current_backend() != "llvm":
        return call.slopes(tuple(given), tuple(at), tuple(more), values)
    to = sum([1 << k for k in at])
    so_far = sum([1 << k for k, yes in zip(at, more, strict=True) if yes])
    return compiled.pull(call, sum([1 << k for k in given]), to, so_far, values)


def _count(kind: Any, array: Array) -> None:
    """A way back is part of what tells runs apart, as calls are."""
    run = CURRENT.run
    if run is not None:
        run.calls += 1
        run.work += 1 + int(array.size * kind.weight)
        run.mix(id(kind))


def _through_moved(
    call: Any, g: Tracked, keys: Collection[Key], found: dict[Key, Tracked], added: Added
) -> None:
    """The same of what only moves elements."""
    if isinstance(call, SliceCall):
        key = key_of(call.edges[0])
        found[key] = _scattered(call, found.get(key), g)
        return
    for k, edge in enumerate(call.edges):
        key = None if edge is None else key_of(edge)
        if key in keys:
            found[key] = _added(found.get(key), _part(call, k, g), added)


def _added(so_far: Tracked | None, new: Tracked, added: Added) -> Tracked:
    return new if so_far is None else value_of(added(handle_of(so_far), handle_of(new)))


def _scattered(call: SliceCall, so_far: Tracked | None, g: Tracked) -> Tracked:
    """The gradient of what is indexed."""
    x: Any = call.edges[0]
    shape = (x.array if isinstance(x, Output) else x.prim.array).shape
    before = None if so_far is None else so_far.array
    total = SlicedGradients().add(None, shape, before, g.array, call.key)
    given = [g] if so_far is None else [so_far, g]
    edges = [v.edge for v in given]
    if all(edge is None for edge in edges):
        return Tracked(total, None)
    made = ScatterCall.of(call.f, edges, [v.array for v in given], call.key, shape)
    return Tracked(total, Output.of(total, made, 0, False))


def _part(call: JoinCall | ScatterCall, k: int, g: Tracked) -> Tracked:
    """The gradient of operand `k` of a join, or of a scatter: a part of that of the result."""
    if isinstance(call, ScatterCall):
        f, key = call.f, call.key
        if k < len(call.edges) - 1:
            return g
    else:
        f, key = index_function(), call.key_of(k)
    array = sliced(g.array, key)
    if g.edge is None:
        return Tracked(array, None)
    return Tracked(array, Output.of(array, SliceCall.of(f, g.edge, key, False), 0, False))
