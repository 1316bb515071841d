"""`Graph`: inputs, outputs, and everything between, in topological order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Self

from retrograd.errors import ShapeError
from retrograd.ir.node import Node


def reachable(outputs: Iterable[Node], stop: Collection[Node] = ()) -> list[Node]:
    """All nodes that the outputs depend on, in topological order, without passing `stop`.

    Iterative and linear. Node ids grow with creation, so sorting by id gives the order.
    """
    seen = set(outputs)
    boundary = stop if isinstance(stop, set | frozenset | dict) else set(stop)
    todo = [n for n in seen if n not in boundary]
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen.add(x)
                if x not in boundary:
                    todo.append(x)
    return sorted(seen, key=lambda n: n.id)


class Graph:
    """A computation as a value. Immutable.

    `inputs` are the nodes whose values the caller gives, in order; `outputs` the nodes whose values
    it gets. `nodes` holds every input and everything the outputs depend on, inputs of a node
    before the node. What an input was computed from, if anything, is not part of the graph: any
    node can be cut at, which is how a part of a larger graph becomes a `Graph`.
    """

    __slots__ = ("__weakref__", "inputs", "name", "nodes", "outputs")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], name: str = "") -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.name = name
        given = set(self.inputs)
        if len(given) < len(self.inputs):
            raise ShapeError("a node is listed twice among the graph's inputs")
        found = reachable([*self.inputs, *self.outputs], stop=given)
        loose = [n for n in found if n.op == "input" and n not in given]
        if loose:
            raise ShapeError(
                f"the outputs depend on {loose[0].describe()}, which is not among the graph's "
                "inputs; list it, or replace it by a constant"
            )
        self.nodes = (*self.inputs, *(n for n in found if n not in given))

    def with_outputs(self, outputs: Sequence[Node]) -> Self:
        """The graph with the same inputs and other outputs."""
        return type(self)(self.inputs, outputs, self.name)

    def rewrite(self, rule: Callable[[Node, tuple[Node, ...]], Node]) -> Self:
        """Rebuild the graph bottom-up: `rule(node, new_inputs)` returns what stands for `node`.

        Graph inputs stay as they are. Provenance of replaced nodes is for the rule to keep.
        """
        new: dict[Node, Node] = {n: n for n in self.inputs}
        for node in self.nodes[len(self.inputs) :]:
            new[node] = rule(node, tuple([new[x] for x in node.inputs]))
        return self.with_outputs([new[n] for n in self.outputs])

    def users(self) -> dict[Node, list[Node]]:
        """For every node, the nodes that read it, once per use."""
        found: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for x in node.inputs:
                found[x].append(node)
        return found

    @property
    def dim_names(self) -> tuple[str, ...]:
        """Names of the symbolic sizes, sorted."""
        return tuple(sorted({d for n in self.nodes for d in n.type.dim_names}))

    def __eq__(self, other: object) -> bool:
        """Structural equality: same inputs, operations, attributes, types, names and outputs."""
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or self.structure() == other.structure()

    def __hash__(self) -> int:
        return hash(self.structure())

    def structure(self) -> tuple[Any, ...]:
        """A hashable value that is equal exactly for structurally equal graphs."""
        position = {n: i for i, n in enumerate(self.nodes)}
        header = tuple((n.type, n.name) for n in self.inputs)
        body = tuple(
            (n.prim, tuple([position[x] for x in n.inputs]), n.type, n.name, n.scope)
            for n in self.nodes[len(self.inputs) :]
        )
        return header, body, tuple(position[n] for n in self.outputs)

    def __len__(self) -> int:
        return len(self.nodes)
