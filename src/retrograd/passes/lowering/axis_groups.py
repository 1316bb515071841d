"""Reshapes as groups of axes: which axes of one shape are which of another."""

from __future__ import annotations

from collections.abc import Container, Sequence

from retrograd.ir import Dim, Node
from retrograd.ops.shape import Reshape


def axis_groups(
    left: Sequence[int | Dim], right: Sequence[int | Dim]
) -> list[tuple[list[int], list[int]]]:
    """Split two shapes of equal size into the shortest runs of axes of equal product."""
    groups: list[tuple[list[int], list[int]]] = []
    if any(d == 0 for d in (*left, *right)):
        return [(list(range(len(left))), list(range(len(right))))]
    i = j = 0
    while i < len(left) or j < len(right):
        outer, inner = [], []
        p: int | Dim = 1
        q: int | Dim = 1
        if i < len(left):
            outer, p, i = [i], left[i], i + 1
        if j < len(right):
            inner, q, j = [j], right[j], j + 1
        while p != q:
            if j < len(right) and (_smaller(q, p) or i == len(left)):
                inner.append(j)
                q, j = q * right[j], j + 1
            elif i < len(left):
                outer.append(i)
                p, i = p * left[i], i + 1
            else:
                break
        groups.append((outer, inner))
    return groups


def _smaller(a: int | Dim, b: int | Dim) -> bool:
    """Whether `a` is the one to be extended: the smaller, or the one of lower degree."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return _degree(a) < _degree(b) or (_degree(a) == _degree(b) and isinstance(a, int))


def _degree(size: int | Dim) -> int:
    if isinstance(size, int):
        return 0
    return max(sum(power for _, power in monomial) for monomial, _ in size.terms)


def is_plain_reshape(node: Node) -> bool:
    """Whether reading through a reshape needs no division: it merges axes of its result only."""
    return all(
        sum(1 for i in inner if node.inputs[0].shape[i] != 1) <= 1
        for _, inner in axis_groups(node.shape, node.inputs[0].shape)
    )


def reshape_root(node: Node, stop: Container[Node]) -> Node:
    """What a chain of reshapes starts from."""
    while isinstance(node.prim, Reshape) and node not in stop:
        (node,) = node.inputs
    return node
