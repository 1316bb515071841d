"""What is known of values without the inputs: the values of what depends on none of them, and of
all other nodes which elements are zero whatever the inputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Node, Trait, TupleType, apply, reachable
from retrograd.ops.elementwise import Cast, Elementwise, Select
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime.backend import Array

MOST = 1 << 31  # products of a contraction for which it is found out where it is zero


def shape_of(node: Node) -> tuple[int, ...]:
    return tuple(map(int, node.shape))


def size_of(node: Node) -> int:
    return int(np.prod(shape_of(node), dtype=np.int64))


class KnownValues:
    """Values of nodes, given some; None stands for those of which nobody knows."""

    def __init__(self, given: Mapping[Node, Array | None]) -> None:
        self._values: dict[Node, Array | None] = dict(given)
        self._supports: dict[Node, Array | None] = {}

    def __call__(self, wanted: Node) -> Array | None:
        found = self._values
        for node in reachable([wanted], found.keys()):
            if node in found:
                continue
            arrays = [found[x] for x in node.inputs]
            missing = Trait.INPUT in node.prim.traits or any(a is None for a in arrays)
            found[node] = None if missing else np.asarray(apply(node, arrays))
        return found[wanted]

    def support(self, wanted: Node) -> Array | None:
        """Where a node may be other than zero; None: everywhere."""
        found = self._supports
        for node in reachable([wanted], found.keys()):
            if node in found:
                continue
            value = None if isinstance(node.type, TupleType) else self(node)
            found[node] = self._support(node) if value is None else value != 0
        return found[wanted]

    def _support(self, node: Node) -> Array | None:
        prim: Any = node.prim
        parts = [self._supports[x] for x in node.inputs]
        if Trait.IDENTITY in prim.traits:
            return parts[0]
        if isinstance(prim, Select):
            return self._chosen(node, parts[1:])
        if isinstance(prim, Elementwise | Cast):
            return _elementwise(node, parts)
        if isinstance(prim, ReduceSum) and parts[0] is not None:
            return np.asarray(parts[0].any(axis=tuple(prim.axes)))
        if Trait.VIEW in prim.traits or isinstance(prim, Gather):
            return self._moved(node, parts)
        if isinstance(prim, ScatterAdd) and (at := self(node.inputs[1])) is not None:
            x, updates = (_count(node.inputs[i], parts[i]) for i in (0, 2))
            return np.asarray(prim.reference(x, at, updates) != 0)
        if isinstance(prim, DotGeneral):
            a, b = node.inputs
            summed = [int(a.shape[i]) for i in prim.a_contract]
            if size_of(node) * int(np.prod(summed, dtype=np.int64)) <= MOST:
                return np.asarray(prim.reference(_count(a, parts[0]), _count(b, parts[1])) != 0)
        return None

    def _chosen(self, node: Node, parts: Sequence[Array | None]) -> Array | None:
        condition = self(node.inputs[0])
        a, b = parts
        if condition is not None:
            ones = np.ones(shape_of(node), bool)
            return np.where(condition, ones if a is None else a, ones if b is None else b)
        return None if a is None or b is None else a | b

    def _moved(self, node: Node, parts: Sequence[Array | None]) -> Array | None:
        """The same operation on ones and zeros."""
        arrays = []
        for x, p in zip(node.inputs, parts, strict=True):
            array = self(x) if x.dtype.is_integer else _count(x, p)
            if array is None:
                return None
            arrays.append(array)
        return np.asarray(apply(node, arrays) != 0)


def _count(x: Node, support: Array | None) -> Array:
    """Numbers that are positive where x may be other than zero."""
    return np.ones(shape_of(x), np.float32) if support is None else support.astype(np.float32)


def _elementwise(node: Node, parts: Sequence[Array | None]) -> Array | None:
    """A product is zero where a factor is, anything where all operands are and it is zero there."""
    shape = shape_of(node)
    known = [np.broadcast_to(p, shape) for p in parts if p is not None]
    if Trait.PRODUCT in node.prim.traits and known:
        return np.logical_and.reduce(known)
    if len(known) < len(parts) or not parts or not node.type.is_inexact:
        return None
    zeros = [np.zeros((), x.dtype.dtype) for x in node.inputs]
    with np.errstate(all="ignore"):
        value = np.asarray(apply(node, zeros))
    return None if value != 0 or np.isnan(value) else np.asarray(np.logical_or.reduce(known))
