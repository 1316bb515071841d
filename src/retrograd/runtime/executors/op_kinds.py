"""Which operations are alike: one compiled function, or one interpreted rule, serves them all."""

from __future__ import annotations

from collections.abc import Hashable

from retrograd.ir import Node

Kind = Hashable
# A function, and what it is called with: the number of an operand, or -1 for the result.
Step = tuple[int, list[int]]


def kind_of(node: Node) -> Kind:
    """What all operations of one kind have in common, and no others."""
    return node.prim, tuple([x.type for x in node.inputs])
