"""Train a network on a task of nodes or graphs, and tell how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn, optim
from retrograd.errors import OptionError
from retrograd.train.graph.model import Network, degrees, features_of
from retrograd.train.graph.sources import Task
from retrograd.train.progress import Reporter, Silent

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class GraphConfig:
    """Settings of the recipe."""

    conv: str = ""  # "gcn" for nodes, "gin" for graphs
    layers: int = 2
    hidden: int = 64
    dropout: float = 0.0
    steps: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    per_class: int = 0  # labelled nodes or graphs of each class to learn from; 0: 60 %
    pick: str = "random"  # or "degree": of each class the nodes with the most edges, by weight
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "steps"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.pick not in ("random", "degree"):
            raise OptionError(f"pick is random or degree, not {self.pick!r}")


@dataclass
class Outcome:
    """A trained network and what it says."""

    task: Task
    model: Network
    train: Array  # which nodes or graphs it learned from
    test: Array
    predicted: Array
    embedding: Array
    baseline: float  # the accuracy of a model of degrees, or of the most frequent class

    def accuracy(self, where: Array) -> float:
        chosen = where & (self.task.labels >= 0)
        right = self.predicted[chosen] == self.task.labels[chosen]
        return float(right.mean()) if chosen.any() else float("nan")


def split(task: Task, config: GraphConfig) -> tuple[Array, Array]:
    """Which labels are learned from, and which are for the test: of each class some."""
    rng = np.random.default_rng(config.seed)
    if config.pick == "degree" and task.of_graphs:
        raise OptionError("pick=degree is for tasks of nodes")
    weight = _degree(task.graphs[0]) if config.pick == "degree" else None
    train = np.zeros(len(task.labels), bool)
    for c in range(len(task.classes)):
        own = rng.permutation(np.flatnonzero(task.labels == c))
        if weight is not None:
            own = np.sort(own)
            own = own[np.argsort(-weight[own], kind="stable")]
        count = config.per_class or max(1, round(0.6 * len(own)))
        if config.per_class > len(own):
            raise OptionError(
                f"class {task.classes[c]!r} has {len(own)} members, not {config.per_class}"
            )
        train[own[:count]] = True
    return train, (task.labels >= 0) & ~train


def _degree(graph: gnn.Graph) -> Array:
    found = np.zeros(graph.num_nodes)
    weight = 1.0 if graph.edge_weight is None else graph.edge_weight.value()
    np.add.at(found, graph.edges.value()[1], weight)
    return found


def train(task: Task, config: GraphConfig, reporter: Reporter | None = None) -> Outcome:
    """Learn the labels of a task; the outcome depends on the task and the configuration alone."""
    if len(task.classes) < 2:
        raise OptionError(f"{task.name} has {len(task.classes)} class: nothing to tell apart")
    reporter = reporter or Silent()
    chosen, test = split(task, config)
    graph = gnn.batch([_bare(g) for g in task.graphs])
    x = np.concatenate([features_of(g, not task.of_graphs) for g in task.graphs])
    kind = config.conv or ("gin" if task.of_graphs else "gcn")
    generator = rg.random.Generator(config.seed)
    model = Network(
        kind, x.shape[1], config.hidden, len(task.classes), config.layers, config.dropout,
        task.of_graphs, generator,
    )  # fmt: skip
    labels = rg.tensor(np.maximum(task.labels, 0))
    optimizer = optim.AdamW(model, lr=config.lr, weight_decay=config.weight_decay)
    inputs, mask = rg.tensor(x), rg.tensor(chosen)

    def loss_of(model: Network, graph: gnn.Graph, x: Any) -> Any:
        return gnn.classification_loss(model(x, graph), labels, mask)

    reporter.start(0, config.steps)
    for step in range(1, config.steps + 1):
        optimizer.zero_grad()
        loss = loss_of(model, graph, inputs)
        loss.backward()
        optimizer.step()
        reporter.update(step, loss.item(), len(task.labels))
    reporter.close()
    model.eval()
    with rg.no_grad():
        logits = model(inputs, graph).numpy()
        embedding = model.embed(inputs, graph)
        if task.of_graphs:
            embedding = gnn.readout(embedding, graph, "mean")
    baseline = _baseline(task, graph, chosen, test, config)
    return Outcome(task, model, chosen, test, logits.argmax(1), embedding.numpy(), baseline)


def _bare(graph: gnn.Graph) -> gnn.Graph:
    return graph.replace(node_features=None, edge_features=None, edge_type=None)


def _baseline(task: Task, graph: Any, chosen: Array, test: Array, config: GraphConfig) -> float:
    """The accuracy on the test of a linear model of degrees: of a node's, or of how many nodes of a
    graph have each."""
    table: Any = rg.tensor(degrees(graph))
    if task.of_graphs:
        table = gnn.readout(table, graph, "sum")
    table = table.numpy()
    weight, bias = rg.zeros((table.shape[1], len(task.classes))), rg.zeros((len(task.classes),))
    optimizer = optim.Adam(lr=0.05)
    params = {"w": weight, "b": bias}
    state = optimizer.init(params)
    labels = np.maximum(task.labels, 0)

    @rg.jit
    def step(params: Any, state: Any) -> Any:
        grads = rg.grad(lambda p: gnn.classification_loss(table @ p["w"] + p["b"], labels, chosen))(
            params
        )
        return optimizer.update(params, grads, state)

    for _ in range(500):
        params, state = step(params, state)
    predicted = (table @ params["w"].numpy() + params["b"].numpy()).argmax(1)
    where = test if test.any() else chosen
    return float((predicted[where] == task.labels[where]).mean())


def report(outcome: Outcome) -> str:
    """What came out, as text: accuracies, and how often each class is taken for which."""
    task = outcome.task
    what = "graphs" if task.of_graphs else "nodes"
    lines = [
        f"{task.name}: {len(task.labels)} {what}, {len(task.classes)} classes",
        *[
            f"{name} {int(where.sum())} {what}: accuracy {outcome.accuracy(where):.1%}"
            for name, where in (("learned from", outcome.train), ("tested on", outcome.test))
        ],
        f"by degrees alone: {outcome.baseline:.1%}",
        "",
        "class (rows) taken for (columns), of those tested:",
    ]
    width = max(len(c) for c in task.classes)
    lines.append(" " * width + "".join([f" {c:>{max(width, 5)}}" for c in task.classes]))
    for i, name in enumerate(task.classes):
        own = outcome.test & (task.labels == i)
        counts = [int((outcome.predicted[own] == j).sum()) for j in range(len(task.classes))]
        lines.append(f"{name:>{width}}" + "".join([f" {n:>{max(width, 5)}}" for n in counts]))
    return "\n".join(lines) + "\n"
