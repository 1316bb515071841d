"""One run of the graph recipe: the network, its optimizer, the task, and the step that changes
them; what is saved of it, and how it goes on from there."""

from __future__ import annotations

import hashlib
import math
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn, optim, pytree
from retrograd.distributed.shardings import dotted
from retrograd.distributed.training import Placement
from retrograd.errors import FormatError, NonFiniteError, OptionError
from retrograd.files import StrPath
from retrograd.io import CheckpointManager, structured
from retrograd.memory_limit import check_new
from retrograd.train.graph.model import Network, features_of
from retrograd.train.graph.sources import Task
from retrograd.train.loop.non_finite import all_finite, diverged, first_bad, spoilt
from retrograd.train.parameter_norms import parameter_norms
from retrograd.xla.agreement import is_several

Array = np.ndarray[Any, Any]

MOST_LAYERS = 1000
KINDS: dict[type, type] = {int: Integral, float: Real, str: str}


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
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        for f in fields(self):  # they may be from a file
            value, kind = getattr(self, f.name), KINDS[type(f.default)]
            if isinstance(value, bool) or not isinstance(value, kind):
                raise OptionError(
                    f"{f.name} is of type {type(f.default).__name__}, not {value!r:.60}"
                )
        for name in ("layers", "hidden", "steps", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.layers > MOST_LAYERS:
            raise OptionError(
                f"layers are at most {MOST_LAYERS}, not {self.layers}: each is a part of the "
                "program of a step"
            )
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise OptionError(f"the learning rate is a positive number, not {self.lr}")
        if self.seed < 0 or self.per_class < 0:
            raise OptionError(
                f"seed and per_class are from 0 on, not {self.seed}, {self.per_class}"
            )
        if self.pick not in ("random", "degree"):
            raise OptionError(f"pick is random or degree, not {self.pick!r}")


# Options that may change when a run goes on: they say how long and how often, not what is learned.
CHANGEABLE = ("steps", "checkpoint_every")


class GraphTrainer:
    """A run in progress: `advance()` does a step, `save` and `restore` stop and go on.

    Training on for k steps after `restore` gives the same bits as never having stopped.
    """

    def __init__(self, task: Task, config: GraphConfig) -> None:
        if len(task.classes) < 2:
            raise OptionError(f"{task.name} has {len(task.classes)} class: nothing to tell apart")
        self.task, self.config = task, config
        self.train, self.test = split(task, config)
        self.graph = gnn.batch([_bare(g) for g in task.graphs])
        x = np.concatenate([features_of(g, not task.of_graphs) for g in task.graphs])
        kind = config.conv or ("gin" if task.of_graphs else "gcn")
        number = (x.shape[1] + (config.layers - 1) * config.hidden) * config.hidden
        check_new((number,), 4, "the weights of the layers")
        self.model = Network(
            kind, x.shape[1], config.hidden, len(task.classes), config.layers, config.dropout,
            task.of_graphs, rg.random.Generator(config.seed),
        )  # fmt: skip
        self.optimizer = optim.AdamW(lr=config.lr, weight_decay=config.weight_decay)
        self.state = self.optimizer.init(self.model)
        self.x, self._mask = rg.tensor(x), rg.tensor(self.train)
        self._labels = rg.tensor(np.maximum(task.labels, 0))
        self.step = 0
        self.checkpoint: Path | None = None  # that was saved last, or is gone on from
        self._before: tuple[Any, Any] | None = None  # model and state before the last step
        self.placement = Placement.here()
        self._is_placed = self.placement is None
        # One program for every step, the first included: so a run may be cut anywhere.
        self._update = rg.jit(self._updated)
        self._looked = rg.jit(self._seen)
        self.names = [name for name, _ in self.model.named_parameters()]
        self.seen: tuple[Any, Any] | None = None  # of a step that was looked at

    def _place(self) -> None:
        """Put all on the mesh: nodes, labels and edges divided as batches are, where their number
        can be divided."""
        self._is_placed = True
        if (placement := self.placement) is None:
            return
        self.x, self._labels, self._mask = placement.batch((self.x, self._labels, self._mask))
        (edges,) = placement.batch((self.graph.edges,), lead=1)
        self.graph = self.graph.replace(edges=edges)
        leaves, structure = pytree.flatten(self.model)
        leaves = placement.model([dotted(path) for path in pytree.paths(self.model)], leaves)
        self.model = pytree.unflatten(structure, leaves)
        self.state = placement.state(self.state, leaves)

    def _loss(self, model: Network) -> Any:
        return gnn.classification_loss(model(self.x, self.graph), self._labels, self._mask)

    def _updated(self, model: Network, state: Any) -> Any:
        return self._step(model, state)[:3]

    def _step(self, model: Network, state: Any) -> Any:
        loss, grads = rg.value_and_grad(self._loss)(model)
        new, state = self.optimizer.update(model, grads, state)
        return new, state, loss, grads

    def _seen(self, model: Network, state: Any) -> Any:
        """A step that is looked at: with norms of parameters, and gradients."""
        new, state, loss, grads = self._step(model, state)
        before, slopes, after = ([p for _, p in m.named_parameters()] for m in (model, grads, new))
        return new, state, loss, (parameter_norms(before, slopes, after), slopes)

    def predicted_peak(self) -> int:
        """Bytes that a call of the largest program allocates."""
        return max(self._update.predicted_peak, self._looked.predicted_peak)

    def advance(self, looked: bool = False) -> float:
        """One step; the loss before it. Of one that is `looked` at, `seen` holds norms of
        parameters (`parameter_norms`) and gradients."""
        if not self._is_placed:
            self._place()
        with rg.no_grad():
            if looked:
                model, state, loss, self.seen = self._looked(self.model, self.state)
            else:
                model, state, loss = self._update(self.model, self.state)
        value: float = loss.item()
        if not math.isfinite(value):
            raise self._diverged(f"the loss is {value} at step {self.step + 1}")
        self._before = (self.model, self.state)
        self.model, self.state = model, state
        self.step += 1
        return value

    def _diverged(self, what: str) -> NonFiniteError:
        remedy = f"lower the learning rate (now {self.config.lr:g})"
        return diverged(what, self._cause(), remedy, checkpoint=self.checkpoint)

    def _cause(self) -> NonFiniteError | None:
        """What gave the first number that is not finite: in the last step, whose gradient may have
        spoilt the parameters, or in this one."""
        for carry in (self._before, (self.model, self.state)):
            with rg.no_grad():
                cause = None if carry is None else first_bad(partial(self._update, *carry))
            if cause is not None:
                return cause
        return None

    def save(self, manager: CheckpointManager, source: Any) -> Path:
        """Write everything that going on needs; `NonFiniteError` for parameters that are not
        finite, for the checkpoints before are worth more."""
        parameters = [] if is_several() else self.model.named_parameters()
        if bad := [name for name, p in parameters if not all_finite([p])]:
            raise self._diverged(spoilt(self.step, bad))
        self.checkpoint = manager.save(
            self.step,
            model=self.model,
            optimizer=self.state,
            graph=asdict(self.config),
            data={"source": source, "checksum": checksum(self.task), "name": self.task.name},
        )
        return self.checkpoint

    def restore(self, manager: CheckpointManager) -> None:
        """Go on from the latest checkpoint. `FormatError` where it is of another run: options other
        than how long and how often must be those it was started with, and so must the data."""
        path = manager.latest
        parts = manager.load(path)
        with described(path):
            saved, data, step = parts["graph"], parts["data"], parts["step"]
            weights, state = parts["model"], parts["optimizer"]
            for name, value in asdict(self.config).items():
                if name not in CHANGEABLE and value != saved[name]:
                    raise FormatError(
                        f"{path} is of a run with {name} = {saved[name]!r}, which cannot go on "
                        f"with {name} = {value!r}; leave the option out, or start a new run "
                        "elsewhere"
                    )
            if data["checksum"] != checksum(self.task):
                raise FormatError(
                    f"{path} is of a run on other graphs or labels, of {data['name']}. Give the "
                    "same data, or start a new run elsewhere"
                )
            if rg.tree.flatten(state)[1] != rg.tree.flatten(self.state)[1]:
                raise FormatError(f"{path}: the state of the optimizer does not fit the network")
            self.model.load_state_dict(weights)
        self.state, self.step, self.checkpoint = state, step, path


def saved_run(out: StrPath) -> tuple[GraphConfig, Any]:
    """The settings of the run whose checkpoints are in a directory, and where its data was from."""
    manager = CheckpointManager(out)
    parts = manager.load()
    with described(manager.latest):
        return GraphConfig(**parts["graph"]), parts["data"]["source"]


def described(path: Path | None) -> AbstractContextManager[None]:
    """A checkpoint that lacks what a run has is of something else."""
    return structured(path, "it is no checkpoint of a graph run")


def checksum(task: Task) -> str:
    """What tells a task from others: its graphs, labels and classes."""
    found = hashlib.sha256(repr((task.classes, task.nodes, len(task.graphs))).encode())
    arrays = [task.labels]
    for graph in task.graphs:
        held = [graph.edges, graph.edge_weight, *rg.tree.flatten(graph.node_features)[0]]
        arrays += [t.numpy() for t in held if t is not None]
    for array in arrays:
        found.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    return found.hexdigest()


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


def _bare(graph: gnn.Graph) -> gnn.Graph:
    return graph.replace(node_features=None, edge_features=None, edge_type=None)
