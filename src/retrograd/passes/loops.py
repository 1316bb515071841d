"""Simplification of what holds graphs: loops and choices, from outside and from inside.

- The graphs inside are optimised like any other.
- Results that nobody reads are dropped, with the carries, constants and rows they needed.
- A carry that no step changes is a constant; what is made of constants alone is computed before the
  loop, if it cannot fail.
- A choice that is known is made.
- Of two scans over the same steps of which one computes all that the other does, one is left, that
  gives the results of both: a loop and the one that its gradient made of it, to keep more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from retrograd.ir import (
    Graph,
    Node,
    Op,
    Provenance,
    Trait,
    entering,
    full,
    graphs_of,
    made_by,
    substitute,
)
from retrograd.ops.control import Cond, Scan, Sized, WhileLoop
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.identity import Alias, Item
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import Reduction
from retrograd.passes.constants import splat
from retrograd.passes.rewrite import Rule, RuleSet, rewrite, sealed, with_new_inputs

G = TypeVar("G", bound=Graph)
Optimize = Callable[[Graph], Graph]
Results = dict[int, Node]  # of a node of several results, those that are read


def inner_graphs(optimize: Optimize) -> RuleSet:
    """The graphs that operations hold, optimised."""

    def rule(node: Node) -> Node:
        held = graphs_of(node.prim)
        if not held:
            return node
        new = {k: optimize(g) for k, g in node.attrs.items() if isinstance(g, Graph)}
        if all(new[k] is node.attrs[k] for k in new):
            return node
        prim: Any = node.prim
        op: Op = replace(prim, **new)
        return Node(op, node.inputs, node.type, node.scope, node.source, node.origin, node.name)

    return RuleSet.simplifying("inner graphs", lambda graph: rule)


SLIM: dict[str, Callable[[Node, Sequence[int]], Results | None]] = {}
slims = entering(SLIM)


def _pruning(graph: Graph) -> Rule:
    used: dict[Node, set[int]] = {}
    for node in graph.body:
        if isinstance(node.prim, Item):
            used.setdefault(node.inputs[0], set()).add(node.attrs["index"])
    results: dict[Node, Results] = {}  # by the node that was replaced

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node.prim, Item) and node.inputs[0] in results:
            return results[node.inputs[0]][node.attrs["index"]]
        new = with_new_inputs(node, inputs)
        slim = SLIM.get(node.op)
        if slim is not None:
            with made_by(Provenance(node.scope, node.source, node.origin)):
                found = slim(new, sorted(used.get(node, ())))
            if found is not None:
                results[node] = found
        return new

    return rule


PRUNE = RuleSet("prune loops", _pruning)  # nothing computed that nobody reads
ROUNDS = 8  # each loop that reads another is one; see `pipeline.py`


def pruned(graph: G) -> G:
    """The graph without operands of loops and choices that no result depends on, nor what only
    these were computed for: the same inputs and outputs."""

    def run(graph: Graph) -> Graph:
        for _ in range(ROUNDS):
            result = rewrite(rewrite(graph, _PRUNED_INSIDE), PRUNE)
            if result is graph:
                break
            graph = result
        return graph

    return sealed(graph, run)


_PRUNED_INSIDE = inner_graphs(pruned)


def _results(op: Op, inputs: Sequence[Node], kept: Sequence[int]) -> Results:
    """The results of a new node, by the numbers they had."""
    node = op(*inputs)
    return {old: Item(new)(node) for new, old in enumerate(kept)}


def _reads(graph_outputs: Sequence[Node], own: Sequence[Node]) -> list[bool]:
    """Which of the inputs the outputs depend on."""
    seen, todo = set(graph_outputs), list(graph_outputs)
    stop = set(own)
    while todo:
        node = todo.pop()
        if node in stop:
            continue
        for x in node.inputs:
            if x not in seen:
                seen.add(x)
                todo.append(x)
    return [x in seen for x in own]


@slims(Scan)
def _scan(node: Node, used: Sequence[int]) -> Results | None:
    prim = node.prim
    assert isinstance(prim, Scan)
    body, first, carries = prim.body, prim.constants, prim.carries
    own, outputs = list(body.inputs), list(body.outputs)
    fixed = {k for k in range(carries) if outputs[k] is own[first + k]}
    needed = _needed(own, outputs, first, carries, used) - fixed
    ys = [k for k in used if k >= carries]
    kept = [*sorted(needed), *ys]
    results = [outputs[k] for k in kept]
    # A carry that never changes is a constant.
    order = [
        *range(first),
        *(first + k for k in sorted(fixed)),
        *(first + k for k in sorted(needed)),
        *range(first + carries, len(own)),
    ]
    inputs = [own[i] for i in order]
    given = [node.inputs[i] for i in order]
    constants = first + len(fixed)
    known = _numbers(inputs, given, constants, len(needed))
    if known:
        results = substitute(results, {x: x for x in inputs} | known)
    inputs, given, results, constants = _hoisted(inputs, given, results, constants)
    inputs, given, constants, scanned = _joined(inputs, given, results, constants, len(needed))
    total = len(inputs)
    if kept == list(range(len(outputs))) and total == len(own) and not fixed:
        return None
    op = Scan(
        Graph(inputs, results, body.name), len(needed), scanned, prim.length, prim.reverse,
        prim.recompute,
    )  # fmt: skip
    found = _results(op, given, kept) if kept else {}
    return found | {k: node.inputs[first + k] for k in used if k in fixed}


def _numbers(
    inputs: Sequence[Node], given: Sequence[Node], constants: int, carries: int
) -> dict[Node, Node]:
    """Inputs that are one number in every step, as constants of the body."""
    found: dict[Node, Node] = {}
    for i, (x, outer) in enumerate(zip(inputs, given, strict=True)):
        value = None if constants <= i < constants + carries else splat(outer)
        if value is not None:
            found[x] = full(value, x.type)
    return found


def _needed(
    own: Sequence[Node], outputs: Sequence[Node], first: int, carries: int, used: Sequence[int]
) -> set[int]:
    """The carries on which results that are read depend."""
    needed = {k for k in used if k < carries}
    while True:
        ends = [outputs[k] for k in (*needed, *(k for k in used if k >= carries))]
        reads = _reads(ends, own)
        more = {k for k in range(carries) if reads[first + k]} | needed
        if more == needed:
            return needed
        needed = more


def _joined(
    inputs: list[Node], given: list[Node], results: list[Node], constants: int, carries: int
) -> tuple[list[Node], list[Node], int, int]:
    """Without inputs that nothing reads, and with one for what is given twice. Changes `results`.
    Returns how many constants and rows there are left."""
    keep: list[int] = []
    known: dict[tuple[bool, Node], Node] = {}
    new: dict[Node, Node] = {}
    reads = _reads(results, inputs)
    left = [0, 0]
    for i, (x, outer) in enumerate(zip(inputs, given, strict=True)):
        if constants <= i < constants + carries:
            keep.append(i)
            continue
        row = i >= constants
        before = known.get((row, outer))
        if not reads[i]:
            continue
        if before is not None:
            new[x] = before
            continue
        known[row, outer] = x
        left[row] += 1
        keep.append(i)
    if new:
        results[:] = substitute(results, {x: x for x in inputs} | new)
    return [inputs[i] for i in keep], [given[i] for i in keep], left[0], left[1]


# Operations that cannot fail, and are worth a place in memory.
SAFE = (Elementwise, Cast, DotGeneral, Reduction)


def _hoisted(
    inputs: list[Node], given: list[Node], results: list[Node], constants: int
) -> tuple[list[Node], list[Node], list[Node], int]:
    """What is made of constants alone, computed before the loop."""
    graph = Graph(inputs, results)
    outer = dict(zip(inputs[:constants], given[:constants], strict=True))
    computed: dict[Node, Node] = dict(outer)  # nodes of the body as nodes around it
    users: dict[Node, bool] = {}  # whether something that stays reads a node
    for node in graph.body:
        leaf = not node.inputs and Trait.INPUT not in node.prim.traits
        safe = isinstance(node.prim, SAFE) or _is_view(node.prim) or leaf
        if safe and all(x in computed for x in node.inputs):
            computed[node] = node if leaf else node.with_inputs([computed[x] for x in node.inputs])
            continue
        for x in node.inputs:
            users[x] = True
    for y in results:
        users[y] = True
    worth = [
        n
        for n in graph.body
        if n in computed and n in users and isinstance(n.prim, SAFE) and not _leafy(n)
    ]
    if not worth:
        return inputs, given, results, constants
    new = {n: input_node(n.type) for n in worth}
    ends = substitute(results, {x: x for x in inputs} | new)
    return (
        [*inputs[:constants], *new.values(), *inputs[constants:]],
        [*given[:constants], *(computed[n] for n in worth), *given[constants:]],
        ends,
        constants + len(new),
    )


def _is_view(prim: Op) -> bool:
    return Trait.VIEW in prim.traits or isinstance(prim, Alias)


def _leafy(node: Node) -> bool:
    """Whether a node is made of leaves alone: cheaper to compute than to read."""
    seen, todo = {node}, [node]
    while todo:
        for x in todo.pop().inputs:
            if Trait.INPUT in x.prim.traits:
                return False
            if x not in seen:
                seen.add(x)
                todo.append(x)
    return True


@slims(WhileLoop)
def _while(node: Node, used: Sequence[int]) -> Results | None:
    prim = node.prim
    assert isinstance(prim, WhileLoop)
    first, carries = prim.constants, prim.carries
    own, outputs = list(prim.body.inputs), list(prim.body.outputs)
    tested = _reads(prim.test.outputs, prim.test.inputs)
    wanted = {k for k in used if k < carries} | {k for k in range(carries) if tested[first + k]}
    needed = sorted(_needed(own, outputs, first, carries, sorted(wanted)) or {0})
    reads = _reads([outputs[k] for k in needed], own)
    constants = [i for i in range(first) if reads[i] or tested[i]]
    if len(needed) == carries and len(constants) == first:
        return None
    keep = [*constants, *(first + k for k in needed)]
    op = replace(
        prim,
        test=Graph([prim.test.inputs[i] for i in keep], prim.test.outputs, prim.test.name),
        body=Graph([own[i] for i in keep], [outputs[k] for k in needed], prim.body.name),
        carries=len(needed),
    )
    found = _results(op, [node.inputs[i] for i in keep], [*needed, carries])
    return found


@slims(Cond)
def _cond(node: Node, used: Sequence[int]) -> Results | None:
    prim = node.prim
    assert isinstance(prim, Cond)
    condition, *operands = node.inputs
    known = splat(condition)
    if known is not None:
        chosen = prim.then if known else prim.other
        ends = [chosen.outputs[k] for k in used]
        new = substitute(ends, dict(zip(chosen.inputs, operands, strict=True)))
        return dict(zip(used, new, strict=True))
    reads = [_reads([g.outputs[k] for k in used], g.inputs) for g in (prim.then, prim.other)]
    keep = [i for i in range(len(operands)) if any(r[i] for r in reads)]
    if len(keep) == len(operands) and len(used) == len(prim.then.outputs):
        return None
    graphs = [
        Graph([g.inputs[i] for i in keep], [g.outputs[k] for k in used], g.name)
        for g in (prim.then, prim.other)
    ]
    op = replace(prim, then=graphs[0], other=graphs[1])
    return _results(op, [condition, *(operands[i] for i in keep)], used)


@slims(Sized)
def _sized(node: Node, used: Sequence[int]) -> Results | None:
    prim = node.prim
    assert isinstance(prim, Sized)
    size, *operands = node.inputs
    outputs = [prim.body.outputs[k] for k in used]
    reads = _reads(outputs, prim.body.inputs)
    keep = [i for i in range(len(operands)) if reads[i]]
    if len(keep) == len(operands) and len(used) == len(prim.body.outputs):
        return None
    body = Graph([prim.body.inputs[i] for i in keep], outputs, prim.body.name)
    return _results(replace(prim, body=body), [size, *(operands[i] for i in keep)], used)
