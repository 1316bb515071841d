"""Rewriting composite ops into ones that have a loop nest of their own.

A table from op name to a function of the node and its new inputs. An op that is not listed is
lowered as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.ir import (
    Dim,
    Graph,
    Node,
    Op,
    Provenance,
    TensorType,
    float32,
    full,
    int32,
    int64,
    lookup,
    made_by,
)
from retrograd.ops.elementwise import cast, exp, isfinite, keep_if, log
from retrograd.ops.shape import expand, inverse, permute
from retrograd.passes.after_autodiff import settled, written
from retrograd.passes.lowering import linalg
from retrograd.passes.lowering.contraction import Materialize, contraction
from retrograd.passes.lowering.conv import convolution
from retrograd.passes.lowering.libcall import by_reference
from retrograd.passes.lowering.linalg import ordered_nodes
from retrograd.passes.lowering.overlap_add import folding
from retrograd.passes.lowering.windows import max_pool, max_pool_index, reordered, sliding, sums
from retrograd.schedule.buffer import accumulator_of
from retrograd.schedule.fusion import LEAVES, LOOPS, SCATTERS, is_buffer
from retrograd.schedule.lower_scan import logcumsumexp


class CheckIndex(Op):
    """Indices made safe: positions counted from the front, each within `0:size`; in 32 bits where
    these are enough, since they are written and read again.

    Exists only inside of plans. Every gather and scatter reads its positions through one of these;
    a position outside ends the run with an error that names `target`, the node as the user knows
    it. So reading at a checked position cannot fail, and gathers can be fused like arithmetic.
    """

    name = "check_index"
    arity = 1

    def __init__(self, size: int | Dim, target: Node) -> None:
        self.size = size
        self.target = target

    def infer(self, *types: TensorType) -> TensorType:
        few = isinstance(self.size, int) and self.size < 2**31
        return types[0].with_dtype(int32 if few else int64)


Rule = Callable[[Node, Sequence[Node], dict[Any, Node]], Node]


def logsumexp(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """`log(sum(exp(x - top))) + top`, top the finite maximum or zero, as the reference has it; half
    precision by way of float32."""
    (x,), axes = inputs, node.attrs["axes"]
    if any(x.shape[a] == 0 for a in axes):
        return full(float("-inf"), node.type)
    x = cast(x, accumulator_of(x.dtype))
    # The maximum over no elements is not defined, but has the value wanted here.
    highest = lookup("reduce_max")(axes)(x)
    top = keep_if(isfinite(highest), highest)
    total = lookup("reduce_sum")(axes)(exp(x - expand(top, x.shape, axes)))
    return cast(log(total) + top, node.dtype)


def same(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Ops that only steer differentiation."""
    return inputs[0]


def indexed(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Check the indices of a gather or a scatter first; once for all that share them. Half
    precision is added up in float32."""
    x, index, *rest = inputs
    size = x.shape[node.attrs["axis"]]
    safe = known.get((index, size))
    if safe is None:
        safe = known[index, size] = CheckIndex(size, node)(index)
    if node.op == "scatter_add" and node.dtype.is_half:
        wide = [cast(given, float32) for given in (x, *rest)]
        return cast(node.prim(wide[0], safe, wide[1]), node.dtype)
    return Node(node.prim, (x, safe, *rest), node.type, node.scope, node.source, node.origin)


def ordered(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Sort along the last axis."""
    (x,), axis = inputs, node.attrs["axis"]
    last = x.type.rank - 1
    if axis == last:
        return node if x is node.inputs[0] else node.with_inputs(inputs)
    order = (*(i for i in range(last + 1) if i != axis), axis)
    moved = dataclasses.replace(node.prim, axis=last)(reordered(x, order))  # type: ignore[type-var]
    return permute(moved, inverse(order))


def searched(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """Search in rows that are in memory."""
    row, values = inputs
    if row.op != "input":
        stored = known.get(("row", row))
        if stored is None:
            stored = known["row", row] = Materialize()(row)
        row = stored
    return node.with_inputs((row, values))


def permutation(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """A permutation of a permutation is one, or none: rules make the inner ones."""
    same = inputs[0] is node.inputs[0]
    return node if same else reordered(inputs[0], node.attrs["perm"])


def held(node: Node, inputs: Sequence[Node], known: dict[Any, Node]) -> Node:
    """An operation that holds graphs reads its operands in memory."""
    stored = []
    for x in inputs:
        if x.op in LEAVES and not is_buffer(x):
            if ("held", x) not in known:
                known["held", x] = Materialize()(x)
            x = known["held", x]
        stored.append(x)
    same = all(a is b for a, b in zip(stored, node.inputs, strict=True))
    return node if same else node.with_inputs(stored)


RULES: dict[str, Rule] = {
    "logsumexp": logsumexp,
    "logcumsumexp": logcumsumexp,
    "gather": indexed,
    **dict.fromkeys(SCATTERS, indexed),
    "sort": ordered,
    "argsort": ordered,
    "searchsorted": searched,
    "dot_general": contraction,
    "conv": convolution,
    "fold": folding,
    "permute": permutation,
    "max_pool": max_pool,
    "max_pool_index": max_pool_index,
    "reduce_sum": sums,
    "windows": sliding,
    "dag_order": ordered_nodes,
    "paired_fft": by_reference,
    **dict.fromkeys(
        ("stop_gradient", "alias", "region_in", "region_out", "keep", "after", "assume"), same
    ),
    **dict.fromkeys(LOOPS, held),
    **linalg.RULES,
}


# Whose values are those of their reference in compiled programs, too.
CALLED = frozenset(op for op, rule in RULES.items() if rule is by_reference)

# What slides windows over its operand, or is another sum where that is done.
SLIDING = frozenset(("conv", "fold", "max_pool", "max_pool_index", "reduce_sum", "windows"))

LOGARITHMS = ("logsumexp", "logcumsumexp")


def in_parts(graph: Graph) -> Graph:
    """The graph with operations that slide windows, and sums of logarithms, in the ops that a plan
    makes of them: NumPy has these, or they have programs for all sizes. What is summed in which
    order stays what it is in a plan."""
    if not any(_has_parts(node) and node.op != "reduce_sum" for node in graph.nodes):
        return graph
    return _rewritten(graph, {op: RULES[op] for op in (*SLIDING, *LOGARITHMS)}, _has_parts)


def _has_parts(node: Node) -> bool:
    """Half precision would be rounded between the parts by code of its own."""
    return node.op in SLIDING or (node.op in LOGARITHMS and not node.dtype.is_half)


def legalize(graph: Graph, light: bool = False) -> Graph:
    """The graph in ops that the planner lowers; provenance and outputs' order kept. For `light`
    see `Plan`."""
    rules = {op: rule for op, rule in RULES.items() if rule is not contraction} if light else RULES
    return _rewritten(written(settled(graph)), rules)


def _rewritten(
    graph: Graph, rules: Mapping[str, Rule], chosen: Callable[[Node], bool] = lambda node: True
) -> Graph:
    if not any(node.op in rules for node in graph.nodes):
        return graph
    known: dict[Any, Node] = {}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        rewrite = rules.get(node.op)
        if rewrite is not None and chosen(node):
            with made_by(Provenance(node.scope, node.source, node)):
                return rewrite(node, inputs, known)
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return node.with_inputs(inputs)

    return graph.rewrite(rule)
