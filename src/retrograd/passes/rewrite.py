"""The driver of rewriting: one walk over the nodes of a graph, by a named set of rules.

A *rule* is a function of a node and its new inputs that gives what stands for the node. A `RuleSet`
names rules and makes them for a graph. `rewrite` offers every node to them, inputs first: all
simplification and lowering goes through this walk (`pipeline.py` lists the stages in order).

    FOLD = RuleSet.simplifying("fold", folding)           # by what a node computes
    LOWER = RuleSet.lowering("lower", RULES)              # by its op, see `lowering/rules.py`

Tests look at what every walk gives: `checked_by(verify)`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from retrograd.ir import Graph, Node, Provenance, Trait, made_by
from retrograd.ops.leaf import input_node

G = TypeVar("G", bound=Graph)
Rule = Callable[[Node, tuple[Node, ...]], Node]
NodeRule = Callable[[Node], Node]  # of a node that has its new inputs
Memo = dict[Any, Node]  # what the rules of one walk have made, to be used again
OpRule = Callable[[Node, Sequence[Node], Memo], Node]
OpRules = Mapping[str, OpRule]  # by the name of the op, as `entering` fills them
Check = Callable[[str, Graph], object]

_CHECKS: list[Check] = []


@dataclass(frozen=True)
class RuleSet:
    """Rules under a name. `begin` makes the rule for the nodes of one graph, of which it may
    remember what it saw; None says that there is nothing to do in this graph."""

    name: str
    begin: Callable[[Graph], Rule | None]

    @staticmethod
    def simplifying(name: str, make: Callable[[Graph], NodeRule]) -> RuleSet:
        """Rules that look at a node as it is with its new inputs."""

        def begin(graph: Graph) -> Rule:
            rule = make(graph)
            return lambda node, inputs: rule(with_new_inputs(node, inputs))

        return RuleSet(name, begin)

    @staticmethod
    def lowering(
        name: str, *tables: OpRules, chosen: Callable[[Node], bool] = lambda node: True
    ) -> RuleSet:
        """Rules by a node's op. What a rule makes has its place in the program from
        the node, which is its origin; all rules of a walk share one memo."""
        # Not copied: an op may be declared, with its rule, after this.
        rules = ChainMap(*[cast("dict[str, OpRule]", table) for table in reversed(tables)])

        def begin(graph: Graph) -> Rule | None:
            if not any(node.op in rules for node in graph.body):
                return None
            memo: Memo = {}

            def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
                found = rules.get(node.op)
                if found is None or not chosen(node):
                    return with_new_inputs(node, inputs)
                with made_by(Provenance(node.scope, node.source, node)):
                    return found(node, inputs, memo)

            return rule

        return RuleSet(name, begin)


def with_new_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node on other inputs; itself where these are its own."""
    return node if inputs == node.inputs else node.with_inputs(inputs)


def rewrite(graph: G, rules: RuleSet) -> G:
    """The graph with every node replaced by what the rules give; itself where nothing changed."""
    rule = rules.begin(graph)
    if rule is None:
        return graph
    result = graph.rewrite(rule)
    if result.outputs == graph.outputs:
        return graph
    for check in _CHECKS:
        check(rules.name, result)
    return result


@contextmanager
def checked_by(check: Check) -> Iterator[None]:
    """Inside the block, have `check` look at the graph after every walk that changed something,
    with the name of the rules: in all threads, and for tests."""
    _CHECKS.append(check)
    try:
        yield
    finally:
        _CHECKS.remove(check)


def sealed(graph: G, run: Callable[[Graph], Graph]) -> G:
    """`run(graph)`, with graph inputs that cannot be looked into.

    Any node may be a graph input, where a graph was cut out of a larger one. What such a node was
    computed by is no business of a pass: while it runs, a fresh input stands in its place.
    """
    if all(Trait.INPUT in x.prim.traits for x in graph.inputs):
        return cast(G, run(graph))
    hidden = _replace_inputs(graph, [input_node(x.type, x.name) for x in graph.inputs])
    result = cast(G, run(hidden))
    return graph if result is hidden else _replace_inputs(result, graph.inputs)


def _replace_inputs(graph: G, inputs: Sequence[Node]) -> G:
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.body:
        new[node] = node.with_inputs([new[x] for x in node.inputs])
    return type(graph)(inputs, [new[y] for y in graph.outputs], graph.name)
