"""`Graph`: inputs, outputs, and everything between, in topological order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any, Self

from retrograd.errors import ShapeError
from retrograd.ir.graph_stats import Stats, stats
from retrograd.ir.node import Nested, Node, graphs_of
from retrograd.ir.registry import lookup
from retrograd.ir.text import parse_graph, print_graph
from retrograd.ir.trait import Trait
from retrograd.ir.verifier import verify


def reachable(outputs: Iterable[Node], stop: Collection[Node] = ()) -> list[Node]:
    """All nodes that the outputs depend on, in topological order, without passing `stop`.

    Iterative and linear. Node ids grow with creation, so sorting by id gives the order.
    """
    seen = dict.fromkeys(outputs)  # ordered, so that what is sorted below is nearly sorted already
    boundary = stop if isinstance(stop, Set | dict) else set(stop)
    todo = [n for n in seen if n not in boundary]
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen[x] = None
                if x not in boundary:
                    todo.append(x)
    return sorted(seen, key=attrgetter("id"))


def substitute(outputs: Sequence[Node], new: Mapping[Node, Node]) -> list[Node]:
    """The outputs computed from other nodes: each key of `new` replaced by its value."""
    found = dict(new)
    for node in reachable(outputs, stop=new.keys()):
        if node not in found:
            inputs = tuple([found[x] for x in node.inputs])
            found[node] = node if inputs == node.inputs else node.with_inputs(inputs)
    return [found[y] for y in outputs]


class Graph(Nested):
    """A computation as a value. Immutable.

    `inputs` are the nodes whose values the caller gives, in order; `outputs` the nodes whose values
    it gets. `nodes` holds every input and everything the outputs depend on, inputs of a node
    before the node. What an input was computed from, if anything, is not part of the graph: any
    node can be cut at, which is how a part of a larger graph becomes a `Graph`.
    """

    __slots__ = ("__weakref__", "_hash", "inputs", "name", "nodes", "outputs")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], name: str = "") -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.name = name
        self._hash: int | None = None
        given = set(self.inputs)
        if len(given) < len(self.inputs):
            raise ShapeError("a node is listed twice among the graph's inputs")
        found = reachable([*self.inputs, *self.outputs], stop=given)
        loose = [n for n in found if Trait.PLACEHOLDER in n.prim.traits and n not in given]
        if loose:
            raise ShapeError(
                f"the outputs depend on {loose[0].describe()}, which is not among the graph's "
                "inputs; list it, or replace it by a constant"
            )
        self.nodes = (*self.inputs, *(n for n in found if n not in given))

    @property
    def body(self) -> tuple[Node, ...]:
        """The nodes that are computed: all but the inputs. What an input was made by is its own
        affair, so a walk that looks at operations is a walk over these."""
        return self.nodes[len(self.inputs) :]

    def with_outputs(self, outputs: Sequence[Node]) -> Self:
        """The graph with the same inputs and other outputs."""
        return type(self)(self.inputs, outputs, self.name)

    def rewrite(self, rule: Callable[[Node, tuple[Node, ...]], Node]) -> Self:
        """Rebuild the graph bottom-up: `rule(node, new_inputs)` returns what stands for `node`.

        Graph inputs stay as they are. Provenance of replaced nodes is for the rule to keep.
        """
        new: dict[Node, Node] = {n: n for n in self.inputs}
        for node in self.body:
            new[node] = rule(node, tuple([new[x] for x in node.inputs]))
        return self.with_outputs([new[n] for n in self.outputs])

    def users(self) -> dict[Node, list[Node]]:
        """For every node, the nodes that read it, once per use."""
        found: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.body:
            for x in node.inputs:
                found[x].append(node)
        return found

    @property
    def dim_names(self) -> tuple[str, ...]:
        """Names of the symbolic sizes, sorted."""
        found = {name for type in {n.type for n in self.nodes} for name in type.dim_names}
        for prim in {id(n.prim): n.prim for n in self.body}.values():
            if graphs_of(prim):
                found.update(prim.dim_names)
        return tuple(sorted(found))

    def bind(self, sizes: Mapping[str, int]) -> Self:
        """The graph with every symbolic size replaced by its value, on inputs of its own."""
        new: dict[Node, Node] = {}
        given = set(self.inputs)
        for node in self.nodes:
            type = node.type.bind(sizes)
            if node in given:
                prim = lookup("input")(type.dtype, type.shape)
                inputs: tuple[Node, ...] = ()
            else:
                prim, inputs = node.prim.bind(sizes), tuple([new[x] for x in node.inputs])
            origin = new.get(node.origin) if node.origin is not None else None
            new[node] = Node(prim, inputs, type, node.scope, node.source, origin, node.name)
        outputs = [new[y] for y in self.outputs]
        return self.__class__([new[x] for x in self.inputs], outputs, self.name)

    def __eq__(self, other: object) -> bool:
        """Structural equality: same inputs, operations, attributes, types, names and outputs."""
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or self.structure() == other.structure()

    def __hash__(self) -> int:
        if self._hash is None:  # of graphs in graphs it is asked again and again
            self._hash = hash(self.structure())
        return self._hash

    def structure(self) -> tuple[Any, ...]:
        """A hashable value that is equal exactly for structurally equal graphs."""
        position = {n: i for i, n in enumerate(self.nodes)}
        header = tuple((n.type, n.name) for n in self.inputs)
        body = tuple(
            (n.prim, tuple([position[x] for x in n.inputs]), n.type, n.name, n.scope)
            for n in self.body
        )
        return header, body, tuple(position[n] for n in self.outputs)

    def __str__(self) -> str:
        return print_graph(self)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        sizes = f"{len(self.inputs)} inputs, {len(self)} nodes, {len(self.outputs)} outputs"
        return f"<{type(self).__name__}{name}: {sizes}>"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The graph that `str(graph)` describes; `FormatError` says where a text is damaged."""
        return parse_graph(text, cls)

    def check(self) -> None:
        """Verify structure and types; `FormatError` names the first node that is wrong."""
        verify(self)

    def stats(self, sizes: Mapping[str, int] | None = None) -> Stats:
        """Operations, bytes and peak memory; in numbers where `sizes` names the symbolic sizes."""
        return stats(self, sizes)

    def __len__(self) -> int:
        return len(self.nodes)
