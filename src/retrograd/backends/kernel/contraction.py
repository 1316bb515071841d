"""Contractions with operands that the routine for matrix products can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograd.backends.kernel.views import as_product, wants_routine
from retrograd.ir import Node, Op, TensorType
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.shape import permute


class Store(Op):
    """Its input, written to memory. Exists only inside of plans."""

    name = "store"
    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]


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
    a = Store()(permute(a, (*prim.a_batch, *a_free, *prim.a_contract)))
    b = Store()(permute(b, (*prim.b_batch, *prim.b_contract, *b_free)))
    batch = tuple(range(n))
    contract = tuple(range(a.type.rank - k, a.type.rank)), tuple(range(n, n + k))
    return DotGeneral(*contract, batch, batch)(a, b)


def in_memory(node: Node) -> bool:
    """Whether a node can be an operand as it is; the others are views of one."""
    return node.op not in ("permute", "expand", "slice", "reshape")
