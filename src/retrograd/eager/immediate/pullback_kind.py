"""The gradient of a call as a call of its own, through which gradients go: see create_graph.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from retrograd.eager.immediate.call_kind import (
    Arguments,
    BackwardPlan,
    CallKind,
    kernel_of,
    reach_of,
)
from retrograd.eager.immediate.size_pattern import Shapes, SizePattern
from retrograd.eager.program_cache import LOCK
from retrograd.ir import Node, product, reachable, substitute


class GraphArguments(Arguments):
    """The arguments of calls of which there is a graph alone."""

    __slots__ = ()
    is_traced = True

    def __init__(self) -> None:
        super().__init__(_no_function, (), {})


def _no_function(*values: Any) -> Any:
    """In the place of a function that nobody calls."""
    raise NotImplementedError


class PullbackKind(NamedTuple):
    """The gradient of a call as a call: its kind, which outputs are operands of it, behind those of
    the call and before the cotangents, and what is not computed but handed on."""

    kind: CallKind
    used: tuple[int, ...]
    plan: BackwardPlan


def pullback_of(
    call: CallKind, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...],
    shapes: Shapes,
) -> PullbackKind | None:  # fmt: skip
    """What `CallKind.backward` computes, as a kind of calls; None where that hands on what is no
    operand of it. The shapes are those of operands."""
    key = given, at, more
    if key not in call.pullbacks:
        with LOCK:
            found = call.pullbacks[key] = _pullback_of(call, given, at, more)
            if found is not None:
                found.kind.weigh(call.pattern.sizes(shapes), product(shapes[0]))
    made: PullbackKind | None = call.pullbacks[key]
    return made


def _pullback_of(
    call: CallKind, given: tuple[int, ...], at: tuple[int, ...], more: tuple[bool, ...]
) -> PullbackKind | None:
    starts, found = call.pulled(given, at, more)
    plan = call.backward(given, at, more)
    tensors, behind = call.tensors, len([*call.leaves, *call.outputs, *call.kept])
    if any(tensors <= where < behind for _, where in plan.passed):
        return None
    made = [found[k] for k in plan.computed]
    used = _results_in(call, made)
    leaves = [x.node for x in call.leaves]
    new = [*[call.results[i].node for i in used], *starts]
    operands = [*leaves[:tensors], *new, *leaves[tensors:]]
    pattern = call.pattern.then([x.type for x in new], tensors)
    kind = CallKind(GraphArguments(), pattern, [x.type for x in operands], tensors + len(new))
    given_as = {x: y.node for x, y in zip(operands, kind.leaves, strict=True)}
    _computes(kind, made, given_as, call)
    return PullbackKind(kind, used, plan)


def _results_in(call: CallKind, ends: Sequence[Node]) -> tuple[int, ...]:
    """The results of a call that nodes of its gradient are computed from, where they meet what the
    call computes. What is inside of it is a result from then on: cotangents from there and those
    that go on through the call meet in it, as in one program."""
    leaves = {x.node for x in call.leaves}
    inside = set(leaves)
    for x in reachable([y.node for y in call.results], stop=leaves):
        if not inside.isdisjoint(x.inputs):
            inside.add(x)
    met = [x for x in reachable(ends, stop=inside) if x in inside and x not in leaves]
    found = [call.site.trace_node(x) for x in met]
    known = set(call.results)
    call.interior = [*call.interior, *[x for x in found if x not in known]]
    if call.interior:
        call.kernel.extend([reach_of(y, len(call.leaves)) for y in call.interior])
    return tuple(sorted(map(call.results.index, found)))


def merged(call: CallKind, which: tuple[int, ...]) -> CallKind | None:
    """The kind of calls some of whose tensors are the same, once each: `which` has for each the
    number of the first that is the same. None where other sizes have the same value by chance."""
    if which not in call.merged:
        with LOCK:
            call.merged[which] = _merged(call, which)
    return call.merged[which]


def _merged(call: CallKind, which: Sequence[int]) -> CallKind | None:
    types = [x.type for x in call.leaves]
    if any(types[k] != types[first] for k, first in enumerate(which)):
        return None
    at = [k for k, first in enumerate(which) if k == first]
    own = [*at, *range(len(which), len(call.leaves))]
    pattern = SizePattern([call.pattern.entries[k] for k in own], call.pattern.names)
    kind = CallKind(GraphArguments(), pattern, [call.leaves[k].node.type for k in own], len(at))
    new = {k: x.node for k, x in zip(own, kind.leaves, strict=True)}
    first = [*which, *own[len(at) :]]
    given_as = {x.node: new[k] for x, k in zip(call.leaves, first, strict=True)}
    _computes(kind, [y.node for y in call.outputs], given_as, call)
    kind.weight, kind.multiplies, kind.sample = call.weight, call.multiplies, call.sample
    kind.kernel = kernel_of(kind)
    return kind


def _computes(
    kind: CallKind, ends: Sequence[Node], given_as: Mapping[Node, Node], call: CallKind
) -> None:
    """Have the outputs of a kind be nodes of another, on its own leaves."""
    kind.site.numbers, kind.inner = call.site.numbers, call.inner
    kind.outputs = [kind.site.trace_node(y) for y in substitute(ends, given_as)]
    kind.result = list, kind.outputs
