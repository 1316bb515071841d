"""What a loop keeps of its steps for the way back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from retrograd.ir import Graph, Node, Op, Trait, TupleType, reachable
from retrograd.ops.assume import Assume
from retrograd.ops.control.body import closed
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.identity import Alias, Item, StopGradient
from retrograd.ops.leaf import input_node


def _is_view(prim: Op) -> bool:
    """Whether an op only moves what there is: computed again it costs no memory."""
    view = prim.arity == 1 and Trait.VIEW in prim.traits
    return view or isinstance(prim, Alias | Assume | StopGradient)


class ScanOp(Protocol):
    """What is asked of a `Scan`, which is built on this module."""

    @property
    def body(self) -> Graph: ...
    @property
    def carries(self) -> int: ...
    @property
    def reverse(self) -> bool: ...
    @property
    def recompute(self) -> bool: ...
    def parts(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]: ...
    def __call__(self, *inputs: Node) -> Node: ...


class Residuals:
    """Cuts the pullback of a body off from its forward part.

    `back` are outputs computed from `own` inputs of the body, from its `outputs`, and from nodes of
    `linear` (cotangents). What is needed of the forward part is computed again if that takes
    nothing but constants, or is a view, or a single elementwise operation that only the pullback
    needs; everything else is kept: `steps` are inputs for it, `step_values` the stacks to go
    through. `outputs` are those of the pullback in terms of these.
    """

    def __init__(
        self,
        scan: ScanOp,
        y: Node,
        inputs: Sequence[Node],
        own: Sequence[Node],
        outputs: Sequence[Node],
        back: Sequence[Node],
        linear: Collection[Node],
    ) -> None:
        constants, _, xs = scan.parts(own)
        self._kind = dict.fromkeys(constants, "constant") | dict.fromkeys(xs, "step")
        self._values = dict(zip(own, inputs, strict=True))
        self._own = set(own)
        self._forward = set(reachable(outputs, self._own))
        self._fixed = self._depend_on_nothing(back, constants)
        self._linear = self._depend_on(back, linear)
        self._all = scan.recompute
        keep = self._cut(back)
        self.constants = [x for x in keep if self._kind.get(x) == "constant"]
        self.constant_values = [self._values[x] for x in self.constants]
        self.steps = [x for x in keep if self._kind.get(x) == "step"]
        self.step_values = [self._values[x] for x in self.steps]
        extra = [x for x in keep if x not in self._kind]
        new = {x: input_node(x.type) for x in extra}
        self.outputs = self._rebuilt(back, new)
        self.steps += new.values()
        self.step_values += self._recorded(scan, y, inputs, own, outputs, extra)

    def _depend_on_nothing(self, back: Sequence[Node], constants: Sequence[Node]) -> set[Node]:
        """Nodes that are the same in every step."""
        found = set(constants)
        for node in reachable(back, self._own):
            if (
                node not in self._own
                and Trait.INPUT not in node.prim.traits
                and found.issuperset(node.inputs)
            ):
                found.add(node)
        return found

    def _depend_on(self, back: Sequence[Node], linear: Collection[Node]) -> set[Node]:
        found = set(linear)
        for node in reachable(back, self._own):
            if not found.isdisjoint(node.inputs):
                found.add(node)
        return found

    def _again(self, node: Node) -> bool:
        """Whether a node of the forward part is computed again."""
        if node in self._own:
            return False
        if self._all or node in self._fixed or _is_view(node.prim):
            return True
        if isinstance(node.type, TupleType):
            return False
        return node not in self._forward and isinstance(node.prim, Elementwise | Cast)

    def _cut(self, back: Sequence[Node]) -> list[Node]:
        """Nodes of the forward part to be kept, in order."""
        keep: dict[Node, None] = {}
        seen = set(back)
        todo = list(back)
        while todo:
            node = todo.pop()
            if node not in self._linear and not self._again(node):
                keep[node] = None
                continue
            for x in node.inputs:
                if x not in seen:
                    seen.add(x)
                    todo.append(x)
        return sorted((n for n in keep if n not in self._linear), key=lambda n: n.id)

    def _rebuilt(self, back: Sequence[Node], new: dict[Node, Node]) -> list[Node]:
        """The pullback on what was kept."""
        found: dict[Node, Node] = dict(new)
        for node in reachable(back, {*self._own, *new}):
            if node not in found:
                inputs = tuple([found[x] for x in node.inputs])
                found[node] = node if inputs == node.inputs else node.with_inputs(inputs)
        return [found[x] for x in back]

    def _recorded(
        self, scan: ScanOp, y: Node, inputs: Sequence[Node], own: Sequence[Node],
        outputs: Sequence[Node], extra: Sequence[Node],
    ) -> list[Node]:  # fmt: skip
        """The stacks of these nodes: results of the scan already, or of one that gives more."""
        there = {x: k for k, x in enumerate(outputs) if k >= scan.carries}
        more = [x for x in extra if x not in there]
        if more:
            body = closed(own, [*outputs, *more], scan.body.name)
            y = replace(scan, body=body)(*inputs)  # type: ignore[type-var]
        there |= {x: len(outputs) + j for j, x in enumerate(more)}
        return [Item(there[x])(y) for x in extra]
