"""A graph repeated until a condition fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.errors import LoopLimitError, ShapeError
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
    full,
    int64,
    substitute,
)
from retrograd.ops.control.body import (
    closed,
    fresh,
    inline,
    inputs_like,
    need,
    need_counts,
    pulled,
    pushed,
    run,
    stacked,
    types_of,
    wide,
    zeros,
)
from retrograd.ops.control.cond import choose
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.control.nested_scan import nested_scan
from retrograd.ops.control.scan import Scan
from retrograd.ops.elementwise import cast
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceAny
from retrograd.ops.shape import expand

STEPS = TensorType(int64, ())


@declare
class WhileLoop(Op):
    """`carry = body(constants, carry)` for as long as `test(constants, carry)` holds.

    The results are the carries at the end, then the number of steps, of type i64[]. More steps than
    `most`, if that is given, are a `LoopLimitError`. The gradient is a scan of as many steps back,
    inside of a `sized`; with `segments`, one that keeps the carries at the beginning of segments of
    so many steps, of the segments of these, and so on (`ops/control/nested_scan.py`).
    """

    name = "while_loop"
    traits = frozenset({Trait.READS_MANY, Trait.CONTROL})
    test: Graph
    body: Graph
    carries: int
    most: int | None = None
    segments: tuple[int, ...] = ()

    @property
    def constants(self) -> int:
        """How many inputs are the same in every step."""
        return len(self.body.inputs) - self.carries

    def infer(self, *types: TensorType) -> TensorType:
        for graph in (self.test, self.body):
            need(self, "the inputs", types, types_of(graph.inputs))
        need_counts(self, len(types), carries=self.carries)
        need(self, "the condition", types_of(self.test.outputs), [TensorType(bool_, ())])
        carries = list(types[self.constants :])
        if not carries:
            raise ShapeError("while_loop: a loop that carries nothing never ends")
        need(self, "the carries after a step", types_of(self.body.outputs), carries)
        return TupleType([*carries, STEPS])

    def reference(self, *arrays: Any) -> Any:
        constants, carry = list(arrays[: self.constants]), list(arrays[self.constants :])
        steps = 0
        while run(self.test, [*constants, *carry])[0]:
            if steps == self.most:
                raise self.refusal(0, (), 1)
            carry = run(self.body, [*constants, *carry])
            steps += 1
        return [*carry, np.int64(steps)]

    def refusal(self, item: int, batch: tuple[int, ...], code: int) -> Exception:
        return LoopLimitError(
            f"while_loop: the condition still holds after {self.most} steps, which max_steps says "
            "are enough; raise max_steps, or see whether the state approaches what ends the loop"
        )

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """Now that the number of steps is known, the loop is a scan."""
        steps = items(y)[-1]
        name = _unused(self)
        own = [input_node(x.type, x.name) for x in self.body.inputs]
        again = nested_scan(Scan(self.body, self.carries, 0, Dim(name)), own, self.segments)
        given = [x for x in g[:-1] if x is not None]
        cotangents = inputs_like(given, "")
        rest = iter(cotangents)
        start = [None if x is None else next(rest) for x in g[:-1]]
        found = pulled(again, start, own, set(own))
        ends = [x for x in found if x is not None]
        body = closed([*own, *cotangents], ends, "pullback")
        new = iter(items(Sized(body, name)(steps, *inputs, *given)))
        return [None if x is None else next(new) for x in found]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        own, outputs = fresh(self.body)
        first = self.constants
        moving = {i for i, t in enumerate(tangents) if t is not None}
        while True:
            wrt = sorted(moving)
            ts = inputs_like([own[i] for i in wrt], "t_")
            found = pushed(outputs, [own[i] for i in wrt], ts, set(own))
            more = {first + k for k in range(self.carries) if found[k] is not None} - moving
            if not more:
                break
            moving |= more
        by_input = dict(zip(wrt, ts, strict=True))
        t_constants = [by_input[i] for i in wrt if i < first]
        t_carries = [i for i in wrt if i >= first]
        ends = [*own[:first], *t_constants, *own[first:], *[by_input[i] for i in t_carries]]
        results = [
            *outputs,
            *[x if (x := found[i - first]) is not None else zeros(own[i].type) for i in t_carries],
        ]
        tests = inputs_like(ends, "")
        known = [*tests[:first], *tests[first + len(t_constants) :][: self.carries]]
        test = closed(tests, inline(self.test, known), self.test.name)
        loop = replace(
            self,
            test=test,
            body=closed(ends, results, "tangent"),
            carries=self.carries + len(t_carries),
        )

        def tangent(i: int) -> Node:
            t = tangents[i]
            return zeros(inputs[i].type) if t is None else t

        given = [tangent(i) for i in wrt if i < first], [tangent(i) for i in t_carries]
        new = items(loop(*inputs[:first], *given[0], *inputs[first:], *given[1]))
        final: list[Node | None] = [None] * (self.carries + 1)
        for j, i in enumerate(t_carries):
            final[i - first] = new[self.carries + j]
        return final

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Any:
        first = self.constants
        flags = list(batched)
        own, outputs = fresh(self.body)
        tests, conditions = fresh(self.test)
        while True:
            ends, found = stacked(outputs, own, flags, size)
            known, ((condition, several),) = stacked(conditions, tests, flags, size)
            now = [flags[first + k] or found[k][1] or several for k in range(self.carries)]
            if now == flags[first:]:
                break
            flags[first:] = now
        given = [
            expand(x, (size, *x.shape), (0,)) if now and not before else x
            for x, before, now in zip(inputs, batched, flags, strict=True)
        ]
        results = [
            wide(y, s, size) if f else y for (y, s), f in zip(found, flags[first:], strict=True)
        ]
        if not several:
            test = closed(known, [condition], self.test.name)
            body = closed(ends, results, self.body.name)
            return items(replace(self, test=test, body=body)(*given))
        return self._until_all(size, given, (known, condition), (ends, results))

    def _until_all(
        self,
        size: int | Dim,
        given: Sequence[Node],
        test: tuple[Sequence[Node], Node],
        body: tuple[Sequence[Node], Sequence[Node]],
    ) -> list[Node]:
        """Steps as long as one sample needs any; samples that are done stay as they are. Each
        counts its own."""
        first = self.constants
        (tests, condition), (ends, results) = test, body
        (going,) = substitute([condition], dict(zip(tests, ends, strict=True)))
        count = input_node(TensorType(int64, (size,)), "")
        after = [choose(going, new, old) for new, old in zip(results, ends[first:], strict=True)]
        counted = count + cast(going, int64)
        spare = input_node(count.type, "")
        loop = replace(
            self,
            test=closed([*tests, spare], [ReduceAny((0,))(condition)], self.test.name),
            body=closed([*ends, count], [*after, counted], self.body.name),
            carries=self.carries + 1,
        )
        return items(loop(*given, full(0, count.type)))[:-1]


def _unused(loop: WhileLoop) -> str:
    """A name for the number of steps that nothing inside has."""
    taken = set(loop.body.dim_names)
    name, count = "steps", 1
    while name in taken:
        count += 1
        name = f"steps{count}"
    return name
