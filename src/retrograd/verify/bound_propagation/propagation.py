"""Interval bound propagation: a rule for each op, and the walk that applies them.

A rule is `rule(node, *inputs)`: it gives the interval of a node for those of its inputs, a
`Rectangle` of a complex one, of an op of several results a list. It sees the node, as inputs that
are one node have one value: `x - x` is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.errors import BackendError
from retrograd.ir import Graph, Node, TupleType
from retrograd.ir.registry import REGISTRY, entering
from retrograd.verify.bound_propagation.interval import anything, meet

Value = Any  # an Interval, a Rectangle, or a list of these
Rule = Callable[..., Value]
RULES: dict[str, Rule] = {}
rule = entering(RULES)  # a decorator: `@rule(ReduceSum)`, `@rule(el.add, el.sub)`


# Of an op, what finds that a node is a function of an earlier one, and bounds it as that.
PATTERNS: dict[str, Callable[[Node], tuple[Node, Callable[[Value], Value | None]] | None]] = {}


def propagate(graph: Graph, regions: Sequence[Value]) -> dict[Node, Value]:
    """What each node of a graph can be, whose sizes are numbers, for what its inputs can be."""
    values: dict[Node, Value] = dict(zip(graph.inputs, regions, strict=True))
    for node in graph.body:
        values[node] = _refined(node, values, _pattern(node, graph))
    return values


def outputs_of(graph: Graph, regions: Sequence[Value]) -> list[Value]:
    """What the outputs of a graph can be. Others are forgotten after their last use."""
    values: dict[Node, Value] = dict(zip(graph.inputs, regions, strict=True))
    patterns = {node: found for node in graph.body if (found := _pattern(node, graph))}
    last_use = {x: node for node in graph.body for x in node.inputs}
    for node, (x, _) in patterns.items():
        if last_use[x].id < node.id:
            last_use[x] = node
    ended: dict[Node, list[Node]] = {}
    for x, node in last_use.items():
        ended.setdefault(node, []).append(x)
    keep = set(graph.outputs)
    for node in graph.body:
        values[node] = _refined(node, values, patterns.get(node))
        for x in ended.get(node, ()):
            if x not in keep:
                values.pop(x, None)
    return [values[y] for y in graph.outputs]


def _pattern(node: Node, graph: Graph) -> Any:
    """What a node is a function of; not beyond the inputs of the graph, which are cut there."""
    find = PATTERNS.get(node.op)
    found = find(node) if find is not None and node.dtype.is_float else None
    return found if found is None or _reaches(node, found[0], set(graph.inputs)) else None


def _reaches(node: Node, x: Node, inputs: set[Node]) -> bool:
    """Whether a node is computed from x inside of a graph."""
    todo, seen = [node], {node}
    while todo:
        y = todo.pop()
        if y is x:
            return True
        if y not in inputs or y is node:
            new = [z for z in y.inputs if z not in seen and z.id >= x.id]
            seen.update(new)
            todo += new
    return False


def _refined(node: Node, values: Mapping[Node, Value], pattern: Any) -> Value:
    found = interval_of(node, [values[x] for x in node.inputs])
    better = None if pattern is None else pattern[1](values[pattern[0]])
    return found if better is None else meet(found, better)


def interval_of(node: Node, given: Sequence[Value]) -> Value:
    """What a node can be, by the rule of its op."""
    found = RULES.get(node.op)
    if found is None:
        raise BackendError(
            f"there is no rule of intervals for the op {node.op!r} ({node.describe()}); enter one "
            "with `retrograd.verify.bound_propagation.propagation.rule`"
        )
    if not isinstance(node.type, TupleType) and 0 in node.shape:
        return anything(node.type, nan=False)
    return found(node, *given)


def without_rules() -> list[str]:
    """Ops of the registry that have no rule."""
    return sorted(set(REGISTRY) - set(RULES))
