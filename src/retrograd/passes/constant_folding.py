"""Constant folding: what depends on constants alone is computed now, by the op's own reference.

Only where all backends give its bits: whether a value is a constant depends on how it was recorded
and where the recording was cut, and no bit of a result may.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from retrograd.ir import Graph, Node, Op, Trait, TupleType
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.identity import Alias, StopGradient
from retrograd.ops.leaf import Constant
from retrograd.ops.shape import Expand
from retrograd.passes.constants import same_bits, splat
from retrograd.passes.rewrite import NodeRule, RuleSet, rewrite, sealed

G = TypeVar("G", bound=Graph)

LARGEST_RESULT = 1024  # elements of an array that takes the place of the ops that compute it
LARGEST_INPUT = 1 << 16  # elements looked at to compute it


def fold(graph: G) -> G:
    """Replace operations on constants by constants.

    A splat (one value everywhere) stays a splat, of whatever size, symbolic ones included. Other
    results are computed up to `LARGEST_RESULT` elements, so that a graph does not grow fat, and an
    operation whose reference raises is left to raise when the program runs. Leaves such as `iota`
    are smaller than the arrays they describe, and stay.
    """
    return sealed(graph, lambda g: rewrite(g, FOLD))


def folding(graph: Graph) -> NodeRule:
    return _fold


FOLD = RuleSet.simplifying("fold", folding)


def _fold(node: Node) -> Node:
    value = _value(node)
    if value is None:
        return node
    op = Constant(value, node.shape)
    return Node(op, (), node.type, node.scope, node.source, node.origin, node.name)


def _value(node: Node) -> np.ndarray[Any, Any] | None:
    """The value of a node that may become a constant, or a constant array a splat."""
    if isinstance(node.prim, Constant):
        smaller = _shrink(node.prim.value)
        return None if smaller is node.prim.value else smaller
    if isinstance(node.type, TupleType):
        return None  # what runs graphs may run for long, or for ever
    for x in node.inputs:
        if not isinstance(x.prim, Constant):
            return None
    if not node.inputs or not is_determined(node):
        return None
    value = _fold_splats(node) if all(splat(x) is not None for x in node.inputs) else None
    return _fold_arrays(node) if value is None else value


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


def _shrink(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One element, where all are the same to the bit."""
    if value.ndim and value.size:
        first, last = value.flat[0], value.flat[-1]
        if same_bits(first, last) and first.tobytes() * value.size == value.tobytes():
            return np.asarray(first)
    return value


def _fold_splats(node: Node) -> np.ndarray[Any, Any] | None:
    values = [x.prim.value for x in node.inputs]  # type: ignore[attr-defined]
    if isinstance(node.prim, Elementwise | Cast):
        return _reference(node.prim, node, values)
    if _puts_together(node.prim) and all(same_bits(v, values[0]) for v in values):
        return np.asarray(values[0])
    return None


def _puts_together(prim: Op) -> bool:
    """Whether nothing but elements of the inputs is in the result: of equal splats a splat."""
    return Trait.VIEW in prim.traits or isinstance(prim, Alias | StopGradient)


def _fold_arrays(node: Node) -> np.ndarray[Any, Any] | None:
    if isinstance(node.prim, Expand) or not all(x.type.is_static for x in (node, *node.inputs)):
        return None
    if _elements(node) > LARGEST_RESULT or sum(map(_elements, node.inputs)) > LARGEST_INPUT:
        return None
    value = _reference(node.prim, node, [x.prim.reference() for x in node.inputs])
    return None if value is None else _shrink(value)


def _elements(x: Node) -> int:
    return math.prod(d for d in x.shape if isinstance(d, int))


def _reference(prim: Op, node: Node, values: list[Any]) -> np.ndarray[Any, Any] | None:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(prim.reference(*values), node.dtype.dtype)
    except Exception:  # whatever it is, it is the running program's to raise
        return None
