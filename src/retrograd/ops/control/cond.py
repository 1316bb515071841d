"""The op `cond`: one of two graphs runs, chosen by a boolean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    Dim,
    Graph,
    Node,
    Op,
    TensorType,
    Trait,
    TupleType,
    bool_,
    declare,
    substitute,
)
from retrograd.ops.control.body import (
    closed,
    fresh,
    inputs_like,
    need,
    pulled,
    pushed,
    run,
    stacked,
    types_of,
    wide,
    zeros,
)
from retrograd.ops.elementwise import select
from retrograd.ops.identity import items
from retrograd.ops.reduce import ReduceAll
from retrograd.ops.shape import expand


@declare
class Cond(Op):
    """`then` applied to the operands where the first input is true, otherwise `other`.

    Only the graph that is chosen runs. The gradient chooses in the same way. Batched over the
    condition both run, and a `select` takes what is wanted of each; unless `either` says that they
    compute the same, and only their costs differ: then one runs for all samples.
    """

    name = "cond"
    traits = frozenset({Trait.READS_MANY, Trait.CONTROL})
    then: Graph
    other: Graph
    either: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        if not types or types[0] != TensorType(bool_, ()):
            kind = DTypeError if types and types[0].dtype is not bool_ else ShapeError
            raise kind(f"cond takes a condition of type b1[], not {', '.join(map(str, types))}")
        for graph in (self.then, self.other):
            need(self, "the operands", types[1:], types_of(graph.inputs))
        results = types_of(self.then.outputs)
        need(self, "the results of the second graph", types_of(self.other.outputs), results)
        return TupleType(results)

    def reference(self, *arrays: Any) -> Any:
        condition, *operands = arrays
        return run(self.then if condition else self.other, operands)

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The pullback of the graph that was chosen, which computes its values anew."""
        condition, *operands = inputs
        given = [x for x in g if x is not None]
        parts = []
        for graph in (self.then, self.other):
            own, outputs = fresh(graph)
            cotangents = inputs_like(given, "")
            rest = iter(cotangents)
            start = [None if x is None else next(rest) for x in g]
            parts.append(([*own, *cotangents], own, pulled(outputs, start, own, set(own))))
        wanted = [
            i for i in range(len(operands)) if any(found[i] is not None for _, _, found in parts)
        ]
        graphs = []
        for ends, own, found in parts:
            results = [x if (x := found[i]) is not None else zeros(own[i].type) for i in wanted]
            graphs.append(closed(ends, results, "pullback"))
        op = replace(self, then=graphs[0], other=graphs[1])
        new = iter(items(op(condition, *operands, *given)))
        return [None, *[next(new) if i in wanted else None for i in range(len(operands))]]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        condition, *operands = inputs
        moving = [i for i, t in enumerate(tangents[1:]) if t is not None]
        given = [t for t in tangents[1:] if t is not None]
        parts = []
        for graph in (self.then, self.other):
            own, outputs = fresh(graph)
            ts = inputs_like([own[i] for i in moving], "t_")
            parts.append(([*own, *ts], pushed(outputs, [own[i] for i in moving], ts, set(own))))
        types = types_of(self.then.outputs)
        wanted = [k for k in range(len(types)) if any(found[k] is not None for _, found in parts)]
        graphs = []
        for ends, found in parts:
            results = [x if (x := found[k]) is not None else zeros(types[k]) for k in wanted]
            graphs.append(closed(ends, results, "tangent"))
        op = replace(self, then=graphs[0], other=graphs[1])
        new = iter(items(op(condition, *operands, *given)))
        return [next(new) if k in wanted else None for k in range(len(types))]

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Any:
        condition, *operands = inputs
        if batched[0] and self.either:
            return self.batch(size, [False, *batched[1:]], ReduceAll((0,))(condition), *operands)
        parts = []
        for graph in (self.then, self.other):
            own, outputs = fresh(graph)
            parts.append(stacked(outputs, own, batched[1:], size))
        if not batched[0]:
            first, second = ([s for _, s in found] for _, found in parts)
            flags = [a or b for a, b in zip(first, second, strict=True)]
            graphs = [
                closed(
                    ends,
                    [wide(y, s, size) if f else y for (y, s), f in zip(found, flags, strict=True)],
                    "",
                )
                for ends, found in parts
            ]
            return items(replace(self, then=graphs[0], other=graphs[1])(condition, *operands))
        both = []
        for ends, found in parts:
            results = substitute([y for y, _ in found], dict(zip(ends, operands, strict=True)))
            both.append([wide(y, s, size) for y, (_, s) in zip(results, found, strict=True)])
        return [choose(condition, a, b) for a, b in zip(*both, strict=True)]


def choose(condition: Node, a: Node, b: Node) -> Node:
    """Of two stacks, of each sample what its condition says."""
    axes = tuple(range(1, a.type.rank))
    return select(expand(condition, a.shape, axes), a, b)
