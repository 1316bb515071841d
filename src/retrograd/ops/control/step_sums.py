"""Sums over the steps of a loop that are taken after it, as products and sums of stacks.

The cotangent of what is the same in every step is a sum over steps. Where a step adds the product
of two of its values, as it does for the weights of a recurrent network, all steps together add one
product: of the stacks of these values, with the steps as one more axis that is summed over. That is
one matrix product with a long sum in place of many with short ones, and its sum is as accurate as
that of any product.

A sum of values alone (that of a bias) is taken from a stack only where there is one anyway: where
it is the operand of such a product, or the cotangent of what is gone through. Everything else grows
from step to step in a carry (`compensated_carry.py`). So the choice depends on operations and not
on sizes: named sizes give the same bits as known ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from retrograd.ir import Node
from retrograd.ir.graph import reachable
from retrograd.ops.elementwise import add
from retrograd.ops.leaf import Constant
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import LinearOp, Pad


class Addend(NamedTuple):
    """`end`, moved about by `moves`, the first of them last."""

    end: Node
    moves: tuple[Node, ...]


class StepSums:
    """What is summed after the loop of `terms`, values of each step.

    `moving` are inputs of the body that differ from step to step, `ready` nodes that are stacked
    anyway. `stacked` are the nodes of which there have to be stacks, `left` what is left of each
    term for a carry, None if that is nothing.
    """

    def __init__(
        self, terms: Sequence[Node], moving: Collection[Node], ready: Collection[Node]
    ) -> None:
        self._moving = _depending(terms, moving)
        products = [a.end for term in terms for a in _addends(term, ()) if self._is_product(a.end)]
        known = {*ready, *(x for node in products for x in node.inputs)}
        self._taken: list[list[Addend]] = []
        self.left: list[Node | None] = []
        for term in terms:
            addends = _addends(term, known)
            taken = [a for a in addends if self._is_product(a.end) or _stacked_in(a.end, known)]
            left = [_moved(a.end, a.moves) for a in addends if a not in taken]
            self._taken.append(taken)
            self.left.append((reduce(add, left) if left else None) if taken else term)
        ends = [a.end for part in self._taken for a in part]
        self.stacked = list(dict.fromkeys(x for end in ends for x in _read(end, known)))

    def _is_product(self, node: Node) -> bool:
        return isinstance(node.prim, DotGeneral) and self._moving.issuperset(node.inputs)

    def total(self, k: int, stacks: Mapping[Node, Node]) -> Node | None:
        """The sum over all steps of what was taken of a term; None if that is nothing."""
        parts = [_moved(_summed(a.end, stacks), a.moves) for a in self._taken[k]]
        return reduce(add, parts) if parts else None


def _depending(terms: Sequence[Node], moving: Collection[Node]) -> set[Node]:
    """Nodes that differ from step to step."""
    found = set(moving)
    for node in reachable(terms, found):
        if not found.isdisjoint(node.inputs):
            found.add(node)
    return found


def _addends(term: Node, known: Collection[Node]) -> list[Addend]:
    """What a term is the sum of, as far as additions and moves show, in order. Nodes that are known
    are not looked into, nor is a sum that is met again: a term may double again and again."""
    found: list[Addend] = []
    seen: set[Node] = set()
    todo = [Addend(term, ())]
    while todo:
        node, moves = addend = todo.pop()
        if _stacked_in(node, known) or node in seen:
            found.append(addend)
        elif node.op == add.name:
            seen.add(node)
            todo += [Addend(x, moves) for x in reversed(node.inputs)]
        elif isinstance(node.prim, LinearOp) or _fills_with_zeros(node):
            todo.append(Addend(node.inputs[0], (*moves, node)))
        else:
            found.append(addend)
    return found


def _fills_with_zeros(node: Node) -> bool:
    if not isinstance(node.prim, Pad):
        return False
    fill = node.inputs[1].prim
    return isinstance(fill, Constant) and not fill.value.any()


def _moved(x: Node, moves: Sequence[Node]) -> Node:
    for move in reversed(moves):
        x = move.prim(x, *move.inputs[1:])
    return x


def _stacked_in(node: Node, known: Collection[Node]) -> bool:
    """Whether a node, or what it is the sum of, is known."""
    return node in known or (isinstance(node.prim, ReduceSum) and node.inputs[0] in known)


def _read(end: Node, known: Collection[Node]) -> Sequence[Node]:
    """The stacks that the sum of an addend is made of."""
    return (end,) if end in known else end.inputs


def _summed(end: Node, stacks: Mapping[Node, Node]) -> Node:
    """The sum of an addend over all steps."""
    if end in stacks:
        return ReduceSum((0,))(stacks[end])
    prim = end.prim
    if isinstance(prim, ReduceSum):
        return ReduceSum((0, *(i + 1 for i in prim.axes)))(stacks[end.inputs[0]])
    assert isinstance(prim, DotGeneral)

    def later(axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(i + 1 for i in axes)

    product = DotGeneral(
        (0, *later(prim.a_contract)),
        (0, *later(prim.b_contract)),
        later(prim.a_batch),
        later(prim.b_batch),
    )
    a, b = (stacks[x] for x in end.inputs)
    return product(a, b)
