"""Ops that compute nothing and steer differentiation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Dim, Node, Op, TensorType, declare


class Same(Op):
    """An op whose output is its input."""

    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return arrays[0]

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


@declare
class StopGradient(Same):
    """Its input, taken as constant by differentiation."""

    name = "stop_gradient"

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None


@declare
class Alias(Same):
    """Its input under another identity: what a transform differentiates with respect to, so that
    the same value reached through a closure counts as constant."""

    name = "alias"

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (g,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return tangents[0]
