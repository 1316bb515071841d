"""A graph with a size that becomes known while the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, Op, TensorType, Trait, TupleType, declare, int64
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
)
from retrograd.ops.control.cond import Cond
from retrograd.ops.control.per_sample import alike, longest, masked
from retrograd.ops.control.scan import Scan
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node


@declare
class Sized(Op):
    """`body` applied to the operands, where the size named `dim` is the value of the first input.

    Arrays whose shape depends on the name exist inside only: no operand and no result has one. So a
    loop of which the number of steps is only known when it has ended can be followed by one that
    goes back through as many. With `enough`, every size from some on gives the same results, which
    the one given is.
    """

    name = "sized"
    traits = frozenset({Trait.READS_MANY, Trait.CONTROL})
    body: Graph
    dim: str
    enough: bool = False

    @property
    def dim_names(self) -> frozenset[str]:
        return frozenset(self.body.dim_names) - {self.dim}

    def bind(self, sizes: Mapping[str, int]) -> Self:
        inner: Any = {**sizes, self.dim: Dim(self.dim)}
        return replace(self, body=self.body.bind(inner))

    def infer(self, *types: TensorType) -> TensorType:
        if not types or types[0] != TensorType(int64, ()):
            raise ShapeError(f"sized takes a size of type i64[], not {', '.join(map(str, types))}")
        need(self, "the operands", types[1:], types_of(self.body.inputs))
        results = types_of(self.body.outputs)
        for t in (*types[1:], *results):
            if self.dim in t.dim_names:
                raise ShapeError(f"sized: {t} has the size {self.dim}, which is known inside only")
        return TupleType(results)

    def reference(self, *arrays: Any) -> Any:
        size, *operands = arrays
        return run(self.body.bind({self.dim: int(size)}), operands)

    def vjp(self, g: Any, y: Node, *inputs: Node) -> Sequence[Node | None]:
        """The pullback of the body, which computes its values anew."""
        size, *operands = inputs
        own, outputs = fresh(self.body)
        given = [x for x in g if x is not None]
        cotangents = inputs_like(given, "")
        rest = iter(cotangents)
        found = pulled(outputs, [None if x is None else next(rest) for x in g], own, set(own))
        ends = [x for x in found if x is not None]
        body = closed([*own, *cotangents], ends, "pullback")
        new = iter(items(replace(self, body=body)(size, *operands, *given)))
        return [None, *[None if x is None else next(new) for x in found]]

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Any:
        size, *operands = inputs
        own, outputs = fresh(self.body)
        pairs = [(x, t) for x, t in zip(own, tangents[1:], strict=True) if t is not None]
        ts = inputs_like([x for x, _ in pairs], "t_")
        found = pushed(outputs, [x for x, _ in pairs], ts, set(own))
        body = closed([*own, *ts], [x for x in found if x is not None], "tangent")
        new = iter(items(replace(self, body=body)(size, *operands, *[t for _, t in pairs])))
        return [None if x is None else next(new) for x in found]

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Any:
        if not batched[0]:
            return self._same_size(size, batched, inputs)
        if self.enough:
            most = longest(inputs[0])
            return self._same_size(size, [False, *batched[1:]], [most, *inputs[1:]])
        found = masked(self.body, self.dim)
        if found is None:
            return self._each(size, batched, inputs)
        own = [input_node(x.type, x.name) for x in inputs]
        counts = own[0]
        graph, kept = found
        op = Sized(graph, self.dim, True)
        flags = [False, *batched]
        side_by_side = op._same_size(size, flags, [longest(counts), counts, *own[1:]])
        graphs = [
            closed(own, results, self.body.name)
            for results in (side_by_side, self._each(size, batched, own))
        ]
        return items(Cond(graphs[0], graphs[1], True)(alike(inputs[0], kept), *inputs))

    def _same_size(
        self, size: int | Dim, batched: Sequence[bool], inputs: Sequence[Node]
    ) -> list[Node]:
        own, outputs = fresh(self.body)
        ends, found = stacked(outputs, own, batched[1:], size)
        results = [wide(y, s, size) for y, s in found]
        return items(replace(self, body=closed(ends, results, self.body.name))(*inputs))

    def _each(self, size: int | Dim, batched: Sequence[bool], inputs: Sequence[Node]) -> list[Node]:
        """One sample after the other, as each has a size of its own."""
        same = [x for x, s in zip(inputs, batched, strict=True) if not s]
        stacks = [x for x, s in zip(inputs, batched, strict=True) if s]
        fixed, moving = inputs_like(same, ""), []
        for x in stacks:
            moving.append(input_node(x.type.with_shape(x.shape[1:]), x.name))
        first, second = iter(fixed), iter(moving)
        given = [next(second) if s else next(first) for s in batched]
        body = closed([*fixed, *moving], items(self(*given)), self.body.name)
        return items(Scan(body, 0, len(moving), size)(*same, *stacks))
