"""Ops that compute nothing: they steer differentiation, and take results apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Node, Op, TensorType, Trait, TupleType, declare

# Of ops whose result is their first input.
SAME = frozenset({Trait.IDENTITY, Trait.DETERMINED, Trait.HANDS_ON, Trait.FREE})


class IdentityOp(Op):
    """An op whose output is its input."""

    traits = SAME | {Trait.REAL_LINEAR}
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return arrays[0]

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


@declare
class StopGradient(IdentityOp):
    """Its input, taken as constant by differentiation."""

    name = "stop_gradient"

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


@declare
class Alias(IdentityOp):
    """Its input under another identity: what a transform differentiates with respect to, so that
    the same value reached through a closure counts as constant."""

    name = "alias"

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (g,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return tangents[0]


@declare
class Item(Op):
    """One result of an operation of several."""

    name = "item"
    traits = frozenset({Trait.DETERMINED, Trait.FREE})
    arity = 1
    index: int

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if not isinstance(x, TupleType) or not 0 <= self.index < len(x.items):
            raise ShapeError(f"item {self.index} of {x}: there is no such result")
        return x.items[self.index]

    def reference(self, *arrays: Any) -> Any:
        return arrays[0][self.index]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Any]:
        """The cotangent of the one result."""
        return ({self.index: g},)

    def jvp(self, tangents: Sequence[Any], y: Node, *inputs: Node) -> Node | None:
        found: Node | None = tangents[0][self.index]
        return found

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Any) -> Node:
        found: Node = inputs[0][self.index]
        return found


def items(node: Node) -> list[Node]:
    """The results of a node of several, each as a node."""
    assert isinstance(node.type, TupleType)
    return [Item(i)(node) for i in range(len(node.type.items))]
