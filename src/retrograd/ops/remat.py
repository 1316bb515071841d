"""Ops that mark which values reverse mode computes again instead of keeping them.

A *region* is what lies between `region_in` nodes, one for each value that is computed outside and
read inside, and `region_out` nodes, one for each value that is read outside. They may be nested,
like parentheses, along every path. `autodiff/remat.py` says what becomes of a region.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Dim, Node, Op, TensorType, declare
from retrograd.ops.identity import SAME, IdentityOp
from retrograd.ops.shape import expand


class Mark(IdentityOp):
    """An op whose output is its input, and the same of tangents."""

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (g,)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else self(tangents[0])


@declare
class RegionIn(Mark):
    """Its input: a value that enters a region which reverse mode computes again."""

    name = "region_in"


@declare
class RegionOut(Mark):
    """Its input: a value that leaves a region which reverse mode computes again."""

    name = "region_out"


@declare
class Keep(Mark):
    """Its input: a value inside of a region that is kept, not computed again."""

    name = "keep"


@declare
class After(Op):
    """The first input, `x`, which is not to be computed from or merged with anything before the
    other inputs are known: what is computed from it is computed late."""

    name = "after"
    traits = SAME
    value_inputs = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return arrays[0]

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (g, *[None] * (len(inputs) - 1))

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return tangents[0]

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        x, *others = inputs
        return self(x if batched[0] else expand(x, (size, *x.shape), (0,)), *others)
