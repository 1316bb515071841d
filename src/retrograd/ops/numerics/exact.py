"""Operations whose result has no choice of bits: NumPy's is that of every backend."""

from __future__ import annotations

from retrograd.ir import Node, Trait


def is_determined(node: Node) -> bool:
    """Whether the result of a node is the same to the bit however it is computed: nothing is
    rounded, or IEEE 754 says how."""
    if Trait.DETERMINED in node.prim.traits:
        return True
    types = [x.type for x in (node, *node.inputs)]
    if not any(t.is_inexact for t in types):
        return True
    rounded_once = not any(t.dtype.is_half or t.dtype.is_complex for t in types)
    return Trait.ROUNDED_ONCE in node.prim.traits and rounded_once
