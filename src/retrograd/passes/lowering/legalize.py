"""Rewriting composite ops into ones that have a loop nest, or a routine, of their own.

Rules of other topics stand in the files of these, all of them in the registry of `rules.py`. An op
that is not listed there is lowered as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from retrograd.ir import (
    Dim,
    DType,
    Graph,
    Node,
    Op,
    TensorType,
    Trait,
    float32,
    int32,
    int64,
    product,
)
from retrograd.ops.assume import Assume
from retrograd.ops.control import (
    Cond,
    DagScan,
    PureCallback,
    Scan,
    Sized,
    WhileLoop,
)
from retrograd.ops.elementwise import cast
from retrograd.ops.index import Gather, RavelIndex, ScatterAdd
from retrograd.ops.leaf import Iota, SizeOf
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.remat import After, Keep, RegionIn, RegionOut
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.ops.shape import Expand, Permute, expand, inverse, permute
from retrograd.ops.sort import ArgSort, SearchSorted, Sort
from retrograd.ops.special.scipy_functions import FROM_SCIPY
from retrograd.passes.constants import is_buffer
from retrograd.passes.lowering import (  # noqa: F401  (their rules)
    conv,
    extremum,
    fft,
    linalg,
    logsumexp,
    overlap_add,
    windows,
)
from retrograd.passes.lowering.complex_linalg import NumpyFft
from retrograd.passes.lowering.contraction import Materialize
from retrograd.passes.lowering.libcall import by_reference
from retrograd.passes.lowering.rules import RULES, lowers
from retrograd.passes.lowering.windows import reordered
from retrograd.passes.rewrite import RuleSet, rewrite


class CheckIndex(Op):
    """Indices made safe: positions counted from the front, each within `0:size`; in 32 bits where
    these are enough, since they are written and read again.

    Exists only inside of plans. Every gather and scatter reads its positions through one of these;
    a position outside ends the run with an error that names `target`, the node as the user knows
    it and its `axis`. So reading at a checked position cannot fail, and gathers can be fused like
    arithmetic.
    """

    name = "check_index"
    traits = frozenset({Trait.READS_MANY})
    arity = 1

    def __init__(self, size: int | Dim, target: Node, axis: int) -> None:
        self.size = size
        self.target = target
        self.axis = axis

    def infer(self, *types: TensorType) -> TensorType:
        return types[0].with_dtype(positions(self.size))


def positions(size: int | Dim) -> DType:
    """The dtype of positions on an axis."""
    return int32 if isinstance(size, int) and size < 2**31 else int64


@lowers(RegionIn, RegionOut, Keep, After, Assume)
def same(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Ops that only steer differentiation."""
    return inputs[0]


@lowers(Gather, ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin)
def indexed(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Check the indices of a gather or a scatter first; once for all that share them. Half
    precision is added up in float32."""
    x, index, *rest = inputs
    axis = node.attrs["axis"]
    safe = _checked(index, x.shape[axis], node, axis, known)
    if isinstance(node.prim, ScatterAdd) and node.dtype.is_half:
        wide = [cast(given, float32) for given in (x, *rest)]
        return cast(node.prim(wide[0], safe, wide[1]), node.dtype)
    return Node(node.prim, (x, safe, *rest), node.type, node.scope, node.source, node.origin)


def _checked(index: Node, size: int | Dim, target: Node, axis: int, known: dict[Any, Node]) -> Node:
    """Indices made safe, before they are repeated along other axes; counters need no check."""
    if isinstance(index.prim, Iota) and index.shape[index.prim.axis] == size:
        return index
    if (index, size) not in known:
        if isinstance(index.prim, Expand):
            few = _checked(index.inputs[0], size, target, axis, known)
            known[index, size] = index.prim(few)
        else:
            known[index, size] = CheckIndex(size, target, axis)(index)
    return known[index, size]


@lowers(RavelIndex)
def ravelled(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Check the indices on each axis; what is made of them needs no check on the joined axis."""
    sizes, first = node.attrs["sizes"], node.attrs["axis"]
    whole = product(sizes)
    dtype = positions(whole)
    place: Node | None = None
    for axis, (index, size) in enumerate(zip(inputs, sizes, strict=True), first):
        safe = cast(_checked(index, size, node, axis, known), dtype)
        if place is not None:
            step = expand(SizeOf(size, dtype)(), node.shape, tuple(range(node.type.rank)))
            safe = place * step + safe
        place = safe
    assert place is not None
    result = cast(place, int64)
    known[result, whole] = place
    return result


@lowers(Sort, ArgSort)
def ordered(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Sort along the last axis."""
    (x,), axis = inputs, node.attrs["axis"]
    last = x.type.rank - 1
    if axis == last:
        return node if x is node.inputs[0] else node.with_inputs(inputs)
    order = (*(i for i in range(last + 1) if i != axis), axis)
    moved = dataclasses.replace(node.prim, axis=last)(reordered(x, order))  # type: ignore[type-var]
    return permute(moved, inverse(order))


@lowers(SearchSorted)
def searched(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Search in rows that are in memory."""
    row, values = inputs
    if Trait.INPUT not in row.prim.traits:
        stored = known.get(("row", row))
        if stored is None:
            stored = known["row", row] = Materialize()(row)
        row = stored
    return node.with_inputs((row, values))


@lowers(Permute)
def permutation(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """A permutation of a permutation is one, or none: rules make the inner ones."""
    same = inputs[0] is node.inputs[0]
    return node if same else reordered(inputs[0], node.attrs["perm"])


@lowers(Scan, WhileLoop, Cond, Sized, DagScan)
def held(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """An operation that holds graphs reads its operands in memory."""
    stored = []
    for x in inputs:
        if Trait.LEAF in x.prim.traits and not is_buffer(x):
            if ("held", x) not in known:
                known["held", x] = Materialize()(x)
            x = known["held", x]
        stored.append(x)
    same = all(a is b for a, b in zip(stored, node.inputs, strict=True))
    return node if same else node.with_inputs(stored)


lowers(NumpyFft, PureCallback, *FROM_SCIPY)(by_reference)
# Whose values are those of their reference in compiled programs, too.
CALLED = frozenset(op for op, rule in RULES.items() if rule is by_reference)
# What only a CPU does: these, routines of libraries, walks through graphs.
CPU_ONLY = CALLED | linalg.ROUTINES | {DagScan.name}

LOWER = RuleSet.lowering("lower", RULES)
LIGHT = RuleSet.lowering("lower", RULES, chosen=lambda node: not isinstance(node.prim, DotGeneral))
PARTS = RuleSet.lowering("parts", RULES, chosen=lambda node: _has_parts(node))


def in_parts(graph: Graph) -> Graph:
    """The graph with operations that slide windows, and sums of logarithms, in the ops that a plan
    makes of them: NumPy has these, or they have programs for all sizes. What is summed in which
    order stays what it is in a plan."""
    if not any(_has_parts(n) and not isinstance(n.prim, ReduceSum) for n in graph.nodes):
        return graph
    return rewrite(graph, PARTS)


def _has_parts(node: Node) -> bool:
    """Also sums, where windows are slid over their operands. Half precision of logarithms would be
    rounded between the parts by code of its own."""
    traits = node.prim.traits
    if Trait.IN_PARTS not in traits:
        return isinstance(node.prim, ReduceSum)
    return Trait.TRANSCENDENTAL not in traits or not node.dtype.is_half


def legalize(graph: Graph, light: bool = False) -> Graph:
    """The graph in ops that the planner lowers; provenance and outputs' order kept. For `light`
    see `KernelPlan`."""
    return rewrite(graph, LIGHT if light else LOWER)
