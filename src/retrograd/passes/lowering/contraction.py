"""Contractions with operands that the routine for matrix products can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    """Copy the operands of a large contraction that the routine could not read, and no others."""
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    new = node if same else node.with_inputs(inputs)
    if not wants_routine(node) or as_product(new, in_memory) is not None:
        return new
    # The one on the right first: where that is enough, the left one may be windows.
    right, left = _right_copied(new), _left_copied(new)
    return next((x for x in (right, left) if _is_read(x)), _left_copied(right))


def _is_read(node: Node) -> bool:
    return not wants_routine(node) or as_product(node, in_memory) is not None


def _left_copied(node: Node) -> Node:
    """The contraction of a copy of its left operand in rows, whose columns are summed over."""
    (a, b), prim = node.inputs, node.prim
    assert isinstance(prim, DotGeneral)
    free, _ = prim.free_axes(a.type.rank, b.type.rank)
    copy = Materialize()(permute(a, (*prim.a_batch, *free, *prim.a_contract)))
    first = a.type.rank - len(prim.a_contract)
    summed = tuple(range(first, a.type.rank))
    batch = tuple(range(len(prim.a_batch)))
    return replace(prim, a_contract=summed, a_batch=batch)(copy, b)


def _right_copied(node: Node) -> Node:
    """The contraction of a copy of its right operand in rows, which are summed over."""
    (a, b), prim = node.inputs, node.prim
    assert isinstance(prim, DotGeneral)
    _, free = prim.free_axes(a.type.rank, b.type.rank)
    copy = Materialize()(permute(b, (*prim.b_batch, *prim.b_contract, *free)))
    batch = tuple(range(len(prim.b_batch)))
    summed = tuple(range(len(batch), len(batch) + len(prim.b_contract)))
    return replace(prim, b_contract=summed, b_batch=batch)(a, copy)


def in_memory(node: Node) -> bool:
    """Whether a node can be an operand as it is; the others are views of one."""
    return not isinstance(node.prim, Permute | Expand | Slice | Reshape)
