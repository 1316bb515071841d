"""`Graph`: nodes, directed edges between them, and what they carry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.modes import is_tracing
from retrograd.errors import CycleError, DTypeError, FormatError, ShapeError
from retrograd.functions import creation, manipulation
from retrograd.functions import elementwise as el
from retrograd.functions.tensor.tensor import Tensor
from retrograd.gnn.checks import check_ends, check_weights
from retrograd.gnn.html import graph_html
from retrograd.gnn.names import Info, named_cycle
from retrograd.ir import Dim
from retrograd.transforms.dag_scan import count_up, dag_order

Array = np.ndarray[Any, Any]
FIELDS = (
    "edges", "node_features", "edge_features", "edge_weight", "edge_type", "graph_features",
    "node_graph", "graph_start",
)  # fmt: skip


def known(x: Any) -> Array | None:
    """The elements of an array that is at hand; None of one that is being traced."""
    if isinstance(x, LazyTensor):
        return x.value() if x.is_computed else None
    return as_array(x)


def as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else creation.tensor(x)


def as_rows(held: Any) -> Any:
    """Arrays, or a tree of arrays, as tensors; nested lists of numbers are an array."""
    if isinstance(held, list) and all(isinstance(x, int | float) for x in pytree.flatten(held)[0]):
        return creation.tensor(held)
    if type(held) in (list, tuple):
        return type(held)(as_rows(part) for part in held)
    if type(held) is dict:
        return {key: as_rows(part) for key, part in held.items()}
    return pytree.map(as_tensor, held)


class Graph:
    """A directed multigraph: any number of edges, also of a node to itself.

    `edges` are integers `[2, E]`, the sources and the targets of edges; numbers of nodes are from 0
    to `num_nodes - 1`. `node_features`, `edge_features` and `graph_features` are arrays or trees of
    arrays (dicts, tuples, ...) with one row for each node, edge and graph; `edge_weight` is `[E]`,
    `edge_type` integers `[E]`.

    A graph is itself a tree of tensors: it can be an argument or a result of functions under `jit`,
    `grad` and `vmap`, and the gradient with respect to a graph is a graph. It is not changed in
    place; `replace` gives a copy. Sizes are those of its arrays, so they may be symbolic.

    Raises `IndexRangeError` for an edge to a node that is not there, `ShapeError` for features of
    another length than there are nodes or edges, and `DTypeError` for edges that are no integers.

    >>> from retrograd import gnn
    >>> g = gnn.Graph(3, [[0, 0, 1], [1, 2, 2]], edge_weight=[1.0, 0.5, 2.0])
    >>> g
    Graph(3 nodes, 3 edges, edge_weight)
    >>> g.in_degree().tolist()
    [0, 1, 2]
    """

    edges: Tensor
    node_features: Any
    edge_features: Any
    edge_weight: Tensor | None
    edge_type: Tensor | None
    graph_features: Any
    node_graph: Tensor  # of each node the number of the graph it belongs to
    graph_start: Tensor  # of each graph its first node
    info: Info | None  # names and attributes, of a graph that came from elsewhere

    def __init__(
        self,
        num_nodes: int | Dim,
        edges: Any,
        node_features: Any = None,
        edge_features: Any = None,
        edge_weight: Any = None,
        *,
        edge_type: Any = None,
        graph_features: Any = None,
    ) -> None:
        if not isinstance(num_nodes, Dim) and (
            isinstance(num_nodes, bool) or not hasattr(num_nodes, "__index__") or num_nodes < 0
        ):
            raise ShapeError(f"the number of nodes is an integer from 0 on, not {num_nodes!r}")
        self.edges = _edges(edges)
        self.node_features = as_rows(node_features)
        self.edge_features = as_rows(edge_features)
        self.graph_features = as_rows(graph_features)
        self.edge_weight = None if edge_weight is None else as_tensor(edge_weight)
        self.edge_type = None if edge_type is None else as_tensor(edge_type)
        self.node_graph = _zeros(num_nodes)
        self.graph_start = _zeros(1)
        self.info = None
        self._cache: dict[str, Any] = {}
        self._check()

    # -- sizes -----------------------------------------------------------------------------------
    @property
    def num_nodes(self) -> int:
        """The number of nodes; a `Dim` where it is symbolic."""
        return self.node_graph.shape[0]

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edges.shape[1]

    @property
    def num_graphs(self) -> int:
        """The number of graphs: one, or as many as were batched."""
        return self.graph_start.shape[0]

    @property
    def source(self) -> Tensor:
        """Of each edge the node it comes from."""
        return self._kept("source", lambda: self.edges[0])

    @property
    def target(self) -> Tensor:
        """Of each edge the node it leads to."""
        return self._kept("target", lambda: self.edges[1])

    # -- structure -------------------------------------------------------------------------------
    @property
    def order(self) -> Tensor:
        """Order, levels, CSR and CSC of an acyclic graph in one array (see `ops.dag`), computed
        once, in linear time. `CycleError` names the nodes of a cycle: at once where the edges are
        known, otherwise when the compiled function runs."""
        return self._kept("order", self._ordered)

    def _ordered(self) -> Any:
        found = dag_order(self.edges, self.num_nodes)
        if self.edges.is_computed and not is_tracing():
            try:
                found.value()
            except CycleError as error:
                if self.info is None:
                    raise
                raise named_cycle(error, self.info.names.labels) from None
        return found

    def in_degree(self) -> Tensor:
        """The number of edges into each node."""
        return self._kept("in_degree", lambda: _count(self.target, self.num_nodes))

    def out_degree(self) -> Tensor:
        """The number of edges out of each node."""
        return self._kept("out_degree", lambda: _count(self.source, self.num_nodes))

    def node_ids(self) -> Tensor:
        """0, 1, ..., N - 1."""
        return self._kept("node_ids", lambda: count_up(self.num_nodes))

    def csr(self) -> tuple[Array, Array]:
        """Edges by source: `(start, edge)`; those of node v are `edge[start[v]:start[v + 1]]`."""
        return self._kept("csr", lambda: _sorted(self._ends()[0], self.num_nodes))

    def csc(self) -> tuple[Array, Array]:
        """The same by target."""
        return self._kept("csc", lambda: _sorted(self._ends()[1], self.num_nodes))

    def _kept(self, name: str, make: Any) -> Any:
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def _ends(self) -> Array:
        return self.edges.value()

    def shapes(self, nodes: str = "N", edges: str = "E", graphs: str = "G") -> dict[str, Any]:
        """What `jit` is told of an argument like this graph, so that one compilation serves graphs
        of all sizes.

        >>> import retrograd as rg
        >>> from retrograd import gnn
        >>> small, large = gnn.Graph(2, [[0], [1]]), gnn.Graph(9, [[0, 1], [1, 2]])
        >>> count = rg.jit(lambda g: g.in_degree().max(), shapes={"g": small.shapes()})
        >>> [count(g).item() for g in (small, large)], count.cache_stats()["compilations"]
        ([1, 1], 1)
        """
        found: dict[str, Any] = {"edges": f"2 {edges}", "node_graph": nodes, "graph_start": graphs}
        carried = {
            "node_features": nodes, "edge_features": edges, "edge_weight": edges,
            "edge_type": edges, "graph_features": graphs,
        }  # fmt: skip
        for name, size in carried.items():
            held = getattr(self, name)
            if held is not None:
                found[name] = _declared(held, size)
        return found

    # -- copies ----------------------------------------------------------------------------------
    def replace(self, **fields: Any) -> Graph:
        """A copy in which some of the fields are others, checked again.

        >>> from retrograd import gnn
        >>> gnn.Graph(2, [[0], [1]]).replace(edge_weight=[3.0]).edge_weight.tolist()
        [3.0]
        """
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            raise TypeError(f"a graph has no field {unknown[0]!r}; it has {', '.join(FIELDS)}")
        new = _joined(None, [fields.get(name, getattr(self, name)) for name in FIELDS])
        new.edges = _edges(new.edges)
        for name in ("node_features", "edge_features", "graph_features"):
            setattr(new, name, as_rows(getattr(new, name)))
        for name in ("edge_weight", "edge_type"):
            if getattr(new, name) is not None:
                setattr(new, name, as_tensor(getattr(new, name)))
        if not fields.keys() & {"edges", "node_graph"}:
            new.info, new._cache = self.info, self._cache
        new._check()
        return new

    def reversed(self) -> Graph:
        """The graph with every edge turned around; what edges carry stays with them."""
        return self.replace(edges=manipulation.flip(self.edges, axis=0))

    # -- checks ----------------------------------------------------------------------------------
    def _check(self) -> None:
        n, e = self.num_nodes, self.num_edges
        checked = [("node_features", n, "nodes"), ("edge_features", e, "edges"),
                   ("graph_features", self.num_graphs, "graphs"), ("edge_weight", e, "edges"),
                   ("edge_type", e, "edges")]  # fmt: skip
        for name, size, what in checked:
            held = getattr(self, name)
            for path, leaf in zip(pytree.paths(held), pytree.flatten(held)[0], strict=True):
                if leaf.ndim == 0 or leaf.shape[0] != size:
                    raise ShapeError(
                        f"{name}{path} has the shape {leaf.shape}, but there are {size} {what}"
                    )
        if self.edge_type is not None and not self.edge_type.dtype.is_integer:
            raise DTypeError(f"edge types are integers, not {self.edge_type.dtype}")
        ends = known(self.edges)
        if ends is not None and isinstance(n, int):
            check_ends(ends, n)

    def validate(
        self,
        *,
        self_loops: bool = True,
        duplicates: bool = True,
        isolated: bool = True,
        negative_weights: bool = True,
        weights_finite: bool = True,
    ) -> Self:
        """This graph, if it has nothing that is not allowed; otherwise a `FormatError` naming the
        first edge or node that is wrong. What may be there by default is everything but weights
        that are infinite or NaN.

        >>> from retrograd import gnn
        >>> gnn.Graph(2, [[0, 1], [1, 1]]).validate(self_loops=False)
        Traceback (most recent call last):
        retrograd.errors.FormatError: edge 1 leads from node 1 to itself
        """
        source, target = self._ends()
        if not self_loops and (source == target).any():
            e = int(np.flatnonzero(source == target)[0])
            raise FormatError(f"edge {e} leads from node {source[e]} to itself")
        if not duplicates:
            _, first, inverse = np.unique(
                source * max(self.num_nodes, 1) + target, return_index=True, return_inverse=True
            )
            again = np.flatnonzero(first[inverse] != np.arange(len(source)))
            if again.size:
                e = int(again[0])
                raise FormatError(
                    f"edge {e} leads from node {source[e]} to node {target[e]}, as edge "
                    f"{first[inverse[e]]} does"
                )
        if not isolated:
            alone = np.setdiff1d(np.arange(self.num_nodes), self._ends())
            if alone.size:
                raise FormatError(f"node {alone[0]} has no edges")
        if self.edge_weight is not None:
            check_weights(self.edge_weight.value(), self._ends(), negative_weights, weights_finite)
        return self

    def __repr__(self) -> str:
        held = [n for n in FIELDS[1:6] if pytree.flatten(getattr(self, n))[0]]
        many = "" if self.num_graphs == 1 else f"{self.num_graphs} graphs, "
        carries = "".join([f", {name}" for name in held])
        return f"Graph({many}{self.num_nodes} nodes, {self.num_edges} edges{carries})"

    def _repr_html_(self) -> str:
        """What notebooks show: what the graph carries, and a picture of its edges."""
        many = {} if self.num_graphs == 1 else {"graphs": self.num_graphs}
        sizes = {**many, "nodes": self.num_nodes, "edges": self.num_edges}
        held = {name: getattr(self, name) for name in FIELDS[:6]}
        edges = None if isinstance(self.num_nodes, Dim) else known(self.edges)
        return graph_html(type(self).__name__, sizes, held, edges)


def _declared(held: Any, size: str) -> Any:
    """Declarations of arrays with so many rows, in the structure of a tree."""
    if isinstance(held, dict):
        return {key: _declared(part, size) for key, part in held.items()}
    if isinstance(held, list | tuple):
        return {key: _declared(part, size) for key, part in enumerate(held)}
    return " ".join([size, *["_"] * (held.ndim - 1)])


def _zeros(size: Any) -> Tensor:
    if isinstance(size, Dim):
        return creation.zeros((size,), dtype="int64")
    return Tensor.of(np.zeros(size, np.int64))


def _edges(edges: Any) -> Tensor:
    """Edges as int64 `[2, E]`."""
    if isinstance(edges, LazyTensor):
        if not edges.dtype.is_integer:
            raise DTypeError(f"edges are integers [2, E], not {edges.dtype}")
        found: Any = edges if edges.dtype.name == "int64" else el.astype(edges, "int64")
    else:
        try:
            array = np.asarray(edges)
        except ValueError:
            raise ShapeError("edges are [2, E], but rows of different lengths were given") from None
        if array.size == 0:
            array = np.zeros((2, 0), np.int64)
        if array.dtype.kind not in "iu":
            raise DTypeError(f"edges are integers [2, E], not {array.dtype}")
        found = creation.tensor(array.astype(np.int64))
    if found.ndim != 2 or found.shape[0] != 2:
        raise ShapeError(
            f"edges are [2, E], the sources and the targets, not of the shape {found.shape}; of "
            "pairs make a graph with gnn.from_edge_list"
        )
    return found


def _count(ends: Tensor, nodes: Any) -> Any:
    ones = creation.ones(ends.shape, dtype="int64")
    zeros: Any = creation.zeros((nodes,), dtype="int64")
    return zeros.at[ends].add(ones)


def _sorted(ends: Array, nodes: int) -> tuple[Array, Array]:
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=nodes))])
    return start, np.argsort(ends, kind="stable")


def _joined(_: Any, children: Iterable[Any]) -> Graph:
    new = object.__new__(Graph)
    for name, child in zip(FIELDS, children, strict=True):
        setattr(new, name, child)
    new.info, new._cache = None, {}
    return new


def _split(graph: Graph) -> tuple[Sequence[Any], Any, Sequence[Any]]:
    return [getattr(graph, name) for name in FIELDS], None, FIELDS


pytree.register(Graph, _split, _joined, holds_state=True)
