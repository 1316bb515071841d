"""Contractions with operands that the routine for matrix products can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.ir import Node, Op, TensorType, Trait
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import Expand, Permute, Reshape, Slice, permute
from retrograd.passes.lowering.rules import lowers
from retrograd.passes.lowering.strided_views import as_product, wants_routine


class Materialize(Op):
    """Its input, written to memory. Exists only inside of plans."""

    name = "store"
    traits = frozenset({Trait.READS_MANY, Trait.DETERMINED})
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return arrays[0]


@lowers(DotGeneral)
def contraction(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Copy the operands of a large contraction, one of which the routine could not read."""
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    new = node if same else node.with_inputs(inputs)
    if not wants_routine(node) or as_product(new, in_memory) is not None:
        return new
    prim = node.prim
    assert isinstance(prim, DotGeneral)
    a, b = inputs
    n, k = len(prim.a_batch), len(prim.a_contract)
    a_free, b_free = prim.free_axes(a.type.rank, b.type.rank)
    batch, first = tuple(range(n)), tuple(range(n, n + k))
    a = Materialize()(permute(a, (*prim.a_batch, *a_free, *prim.a_contract)))
    b = Materialize()(permute(b, (*prim.b_batch, *prim.b_contract, *b_free)))
    return DotGeneral(tuple(range(a.type.rank - k, a.type.rank)), first, batch, batch)(a, b)


def in_memory(node: Node) -> bool:
    """Whether a node can be an operand as it is; the others are views of one."""
    return not isinstance(node.prim, Permute | Expand | Slice | Reshape)
