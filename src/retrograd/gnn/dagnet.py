"""`DagNet`: a network that is a graph, built node by node."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.errors import CycleError, FormatError, GradientError, OptionError, ShapeError
from retrograd.functions import creation
from retrograd.functions import elementwise as el
from retrograd.gnn.checks import check_weights
from retrograd.gnn.dag import dag_scan
from retrograd.gnn.graph import Graph
from retrograd.gnn.labels import LabelEmbedding
from retrograd.gnn.names import Names, named_cycle
from retrograd.io.checkpoint import structured
from retrograd.transforms.grad import vjp
from retrograd.transforms.jit.jit import jit

Array = np.ndarray[Any, Any]
ACTIVATIONS: dict[str, Any] = {
    "linear": lambda z: z,
    "relu": el.relu,
    "sigmoid": el.sigmoid,
    "tanh": el.tanh,
    "softplus": el.softplus,
    "sin": el.sin,
}


@dataclass(eq=False)
class NodeGradients:
    """Gradients of a `DagNet`: of the states and the inputs of nodes `[N, width]`, and of the
    weights of edges `[E]`. `nodes` and `edges` are maps from names; arrays are in the order in
    which nodes and edges were added.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> net = gnn.DagNet()
    >>> _ = net.add_node("a"), net.forward({"a": 2.0})
    >>> net.backward({"a": 1.0}).nodes["a"].tolist()
    [1.0]
    """

    states: Array
    inputs: Array
    weights: Array
    names: list[Hashable] = field(repr=False)
    ends: list[tuple[Hashable, Hashable]] = field(repr=False)

    @property
    def nodes(self) -> dict[Hashable, Array]:
        """Of each node the gradient of its state."""
        return dict(zip(self.names, self.states, strict=True))

    @property
    def edges(self) -> dict[tuple[Hashable, Hashable], float]:
        """Of each edge, by its ends, the gradient of its weight; of parallel edges their sum."""
        found: dict[tuple[Hashable, Hashable], float] = {}
        for pair, g in zip(self.ends, self.weights.tolist(), strict=True):
            found[pair] = found.get(pair, 0.0) + g
        return found

    def _parts(self) -> tuple[Array, ...]:
        return self.states, self.inputs, self.weights

    def accumulate(self, other: NodeGradients) -> None:
        """Add other gradients of the same network."""
        if other.names != self.names or other.ends != self.ends:
            raise ShapeError("gradients of networks with other nodes or edges cannot be added")
        for mine, more in zip(self._parts(), other._parts(), strict=True):
            mine += more

    def zero(self) -> None:
        """Set everything to zero."""
        for part in self._parts():
            part[...] = 0

    def norm(self) -> float:
        """The Euclidean norm of the gradients of weights and inputs as one vector."""
        squares = [(p.astype(np.float64) ** 2).sum() for p in self._parts()[1:]]
        return float(np.sqrt(sum(squares)))

    def clip_norm(self, most: float) -> float:
        """Scale everything so that the norm is at most `most`; the norm before."""
        if not most >= 0:
            raise OptionError(f"a norm is not negative, not {most}")
        norm = self.norm()
        if norm > most:
            for part in self._parts():
                part *= most / norm
        return norm

    def clip_value(self, most: float) -> None:
        """Limit every element to ±`most`."""
        if not most >= 0:
            raise OptionError(f"a bound is not negative, not {most}")
        for part in self._parts():
            np.clip(part, -most, most, out=part)

    def add_l2(self, net: DagNet, factor: float) -> None:
        """Add the gradient of `factor / 2 * sum(w^2)` over the weights of a network."""
        self.weights += factor * net.weights


class DagNet:
    """A network whose nodes are the nodes of a directed acyclic graph:

        h_v = f_v(x_v + sum over edges e = (u, v) of w_e h_u)

    Nodes have names, an activation f_v of their own and an input x_v, a number or a vector of
    `width`; edges have weights. It may change between any two calls: one compiled program serves
    all structures. States and gradients are NumPy arrays.

    Cycles are found when the network runs; the `CycleError` names their nodes.

    States, inputs and their gradients have the shape `[width]`.

    >>> from retrograd import gnn
    >>> net = gnn.DagNet()
    >>> for name in "abc":
    ...     _ = net.add_node(name, "tanh" if name == "c" else "linear")
    >>> _ = net.add_edge("a", "c", 0.5), net.add_edge("b", "c", -1.0)
    >>> net.forward({"a": 2.0, "b": 1.0})["c"].tolist()
    [0.0]
    >>> net.backward({"c": 1.0}).edges
    {('a', 'c'): 2.0, ('b', 'c'): 1.0}
    """

    def __init__(
        self, width: int = 1, *, dtype: Any = "float32", embedding: LabelEmbedding | None = None
    ) -> None:
        if width < 1:
            raise ShapeError(f"DagNet of width {width}: it is at least 1")
        if embedding is not None and embedding.width != width:
            raise ShapeError(f"DagNet of width {width}, embedding of width {embedding.width}")
        self.width, self.dtype, self.embedding = width, np.dtype(dtype), embedding
        self.names = Names()
        self.weights = np.zeros(0, self.dtype)
        self._activations: list[str] = []
        self._labels: dict[int, Hashable] = {}
        self._bias: list[Array] = []
        self._ends: list[tuple[int, int]] = []
        self._last: tuple[Array, ...] | None = None

    # -- structure -------------------------------------------------------------------------------
    def add_node(
        self, name: Hashable, activation: str = "linear", *, value: Any = 0.0,
        label: Hashable | None = None,
    ) -> int:  # fmt: skip
        """Add a node; its number. `value` is its input where `forward` is given no other; with a
        `label` the vector that the network's embedding has for it is added."""
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise OptionError(f"node {name!r}: activation is one of {known}, not {activation!r}")
        if name in self.names:
            raise FormatError(f"the network has a node {name!r} already")
        if label is not None and self.embedding is None:
            raise OptionError(f"node {name!r} has a label, but the network no embedding")
        number = self.names.add(name)
        self._activations.append(activation)
        self._bias.append(self._row(value, name))
        if label is not None:
            self._labels[number] = label
        self._last = None
        return number

    def add_edge(self, source: Hashable, target: Hashable, weight: float = 1.0) -> int:
        """Add an edge between nodes that are there; its number."""
        for name in (source, target):
            if name not in self.names:
                raise FormatError(f"edge {source!r} -> {target!r}: there is no node {name!r}")
        if not np.isfinite(weight):
            raise FormatError(f"edge {source!r} -> {target!r} has the weight {weight}")
        self._ends.append((self.names[source], self.names[target]))
        self.weights = np.append(self.weights, self.dtype.type(weight))
        self._last = None
        return len(self._ends) - 1

    @property
    def graph(self) -> Graph:
        """The structure, with the weights of edges."""
        ends = np.array(self._ends, np.int64).reshape(-1, 2).T
        return Graph(len(self.names), ends, edge_weight=self.weights)

    def _row(self, value: Any, name: Hashable) -> Array:
        row = np.asarray(value, self.dtype)
        if row.shape not in ((), (self.width,)):
            raise ShapeError(f"the input of node {name!r} is {row.shape}, the width {self.width}")
        return np.broadcast_to(row, (self.width,))

    # -- running ---------------------------------------------------------------------------------
    def forward(self, inputs: Mapping[Hashable, Any] | None = None) -> dict[Hashable, Array]:
        """The states of all nodes, by name; `inputs` by name replace the nodes' own."""
        x = np.array(self._bias, self.dtype).reshape(-1, self.width)
        for name, value in (inputs or {}).items():
            if name not in self.names:
                raise FormatError(f"an input is given for node {name!r}, which is not there")
            x[self.names[name]] = self._row(value, name)
        if self._labels:
            assert self.embedding is not None
            x[list(self._labels)] += self.embedding.lookup(self._labels.values())
        kinds = tuple(sorted(set(self._activations))) or ("linear",)
        codes = np.array([kinds.index(a) for a in self._activations], np.int64)
        ends = np.array(self._ends, np.int64).reshape(-1, 2).T.copy()
        check_weights(self.weights, ends, negative=True)
        self._last = x, self.weights, codes, ends
        states = self._run(_forward(kinds), *self._last).numpy()
        return dict(zip(self.names.labels, states, strict=True))

    def _run(self, program: Any, *arrays: Array) -> Any:
        try:
            return pytree.map(lambda t: (t.value(), t)[1], program(*arrays))
        except CycleError as error:
            raise named_cycle(error, self.names.labels) from None

    def backward(self, cotangents: Mapping[Hashable, Any]) -> NodeGradients:
        """Gradients for cotangents of states, dL/dh by the name of a node, of the latest
        `forward`. Those of inputs that come from the embedding are added to its gradients."""
        if self._last is None:
            raise GradientError("backward() needs a forward() of the network as it is")
        g = np.zeros_like(self._last[0])
        for name, value in cotangents.items():
            if name not in self.names:
                raise FormatError(f"a cotangent is given for node {name!r}, which is not there")
            g[self.names[name]] += self._row(value, name)
        kinds = tuple(sorted(set(self._activations))) or ("linear",)
        parts = self._run(_backward(kinds), *self._last, g)
        states, inputs, weights = (np.array(p.numpy()) for p in parts)
        if self._labels:
            assert self.embedding is not None
            self.embedding.accumulate(self._labels.values(), inputs[list(self._labels)])
        labels = self.names.labels
        ends = [(labels[u], labels[v]) for u, v in self._ends]
        return NodeGradients(states, inputs, weights, list(labels), ends)

    def backward_and_update(self, cotangents: Mapping[Hashable, Any], lr: float) -> NodeGradients:
        """`backward`, then a step of gradient descent on the weights of edges."""
        gradients = self.backward(cotangents)
        self.update(gradients, lr)
        return gradients

    def update(self, gradients: NodeGradients, lr: float) -> None:
        """A step of gradient descent on the weights of edges."""
        if not lr >= 0:
            raise OptionError(f"lr is not negative, not {lr}")
        if gradients.weights.shape != self.weights.shape:
            raise ShapeError("these are gradients of a network with other edges")
        self.weights = (self.weights - lr * gradients.weights).astype(self.dtype)

    # -- state -----------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """The whole network: nodes, edges, weights, labels, and the vectors of these."""
        return {
            "width": self.width,
            "names": list(self.names.labels),
            "activations": list(self._activations),
            "inputs": np.array(self._bias, self.dtype).reshape(-1, self.width),
            "labels": dict(self._labels),
            "ends": np.array(self._ends, np.int64).reshape(-1, 2),
            "weights": self.weights.copy(),
            "embedding": None if self.embedding is None else self.embedding.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become the network that `state_dict` was asked of, of the same width, with an embedding
        or without; the dtype stays. `FormatError` for the state of something else, `OptionError`
        for one that does not fit; then nothing has changed."""
        made = DagNet(self.width, dtype=self.dtype)
        with structured(None, "the state of a DagNet is not what one saves"):
            if state["width"] != self.width:
                raise ShapeError(f"DagNet of width {self.width}, its state of {state['width']!r}")
            vectors = state["embedding"]
            if (vectors is None) != (self.embedding is None):
                raise OptionError("a DagNet with an embedding goes on from one that has one, too")
            rows = zip(state["names"], state["activations"], state["inputs"], strict=True)
            for name, activation, value in rows:
                made.add_node(name, activation, value=value)
            for (u, v), w in zip(np.asarray(state["ends"]), state["weights"], strict=True):
                if min(u, v) < 0:
                    raise FormatError(f"an edge of the state is {u} -> {v}; nodes are from 0 on")
                made.add_edge(made.names.labels[u], made.names.labels[v], w)
            made._labels = dict(state["labels"])
            if made._labels and not {*made._labels} <= {*range(len(made.names))}:
                raise FormatError("a DagNet has labels of nodes; the state has some of others")
            hash(tuple(made._labels.values()))
            if self.embedding is not None:
                self.embedding.load_state_dict(vectors)
        self.names, self.weights, self._labels = made.names, made.weights, made._labels
        self._activations, self._bias, self._ends = made._activations, made._bias, made._ends
        self._last = None

    def __repr__(self) -> str:
        return f"DagNet({len(self.names)} nodes, {len(self._ends)} edges, width={self.width})"


def _states(kinds: tuple[str, ...], x: Any, w: Any, codes: Any, edges: Any, shift: Any) -> Any:
    def cell(a: Any, own: Any) -> Any:
        x, code, shift = own
        z, y = a + x, None
        for k, name in enumerate(kinds):
            # Elsewhere the argument is 0, so that nothing overflows that is not used.
            here = (code == k)[:, None]
            made = ACTIVATIONS[name](el.where(here, z, 0.0))
            y = made if y is None else el.where(here, made, y)
        return y + shift

    graph = Graph(x.shape[0], edges)
    state = creation.zeros((x.shape[1],), dtype=x.dtype)._type
    return dag_scan(cell, graph, (x, codes, shift), w, state=state)


_SHAPES = {"x": "N _", "w": "E", "codes": "N", "edges": "2 E"}


@functools.cache
def _forward(kinds: tuple[str, ...]) -> Any:
    def states(x: Any, w: Any, codes: Any, edges: Any) -> Any:
        return _states(kinds, x, w, codes, edges, creation.zeros_like(x))

    return jit(states, shapes=_SHAPES)


@functools.cache
def _backward(kinds: tuple[str, ...]) -> Any:
    def gradients(x: Any, w: Any, codes: Any, edges: Any, g: Any) -> Any:
        # What is added to a state has the gradient that the state has.
        def f(x: Any, w: Any, shift: Any) -> Any:
            return _states(kinds, x, w, codes, edges, shift)

        _, back = vjp(f, x, w, creation.zeros_like(x))
        by_x, by_w, by_state = back(g)
        return by_state, by_x, by_w

    return jit(gradients, shapes={**_SHAPES, "g": "N _"})
