"""Train a network on a task of nodes or graphs, and tell how good it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import gnn, optim
from retrograd.api.run_logs import LOG, EventReader, read_log
from retrograd.errors import OptionError
from retrograd.files import StrPath
from retrograd.io import CheckpointManager
from retrograd.train.graph.model import Network, degrees
from retrograd.train.graph.sources import Task
from retrograd.train.graph.trainer import GraphConfig, GraphTrainer
from retrograd.train.interrupt import StopRequest, stop_requests
from retrograd.train.loop.log import JsonLines
from retrograd.train.progress import Reporter, Silent
from retrograd.train.run_log import LINES, write_configuration
from retrograd.train.subnormals import flushing
from retrograd.train.watcher import Dashboard, Watcher

Array = np.ndarray[Any, Any]


@dataclass
class GraphOutcome:
    """A trained network and what it says."""

    task: Task
    model: Network
    train: Array  # which nodes or graphs it learned from
    test: Array
    predicted: Array
    embedding: Array
    baseline: float  # the accuracy of a model of degrees
    step: int  # steps that were done
    checkpoint: Path | None = None
    signal: int | None = None  # the number of the signal that stopped the run

    def accuracy(self, where: Array) -> float:
        chosen = where & (self.task.labels >= 0)
        right = self.predicted[chosen] == self.task.labels[chosen]
        return float(right.mean()) if chosen.any() else float("nan")


def train(
    task: Task,
    config: GraphConfig,
    reporter: Reporter | None = None,
    *,
    out: StrPath | None = None,
    resume: bool = False,
    source: Any = None,
    board: Dashboard | None = None,
    log_norms: bool | int | None = None,
) -> GraphOutcome:
    """Learn the labels of a task; the outcome depends on the task and the configuration alone.

    With `out`, checkpoints are left in that directory, the options as `config.toml`, and losses in
    `log.jsonl`, with norms of parameters as `log_norms` says (see `fit`); `source` says there where
    the task is from. With `resume`, the latest one is gone on from, to the same
    bits as if the run had never stopped. Ctrl-C (SIGINT) and SIGTERM end a run that has an `out`
    after the current step, with a checkpoint; so does the stop button of a `board`, which is shown
    the run.

    Numbers too small to be normal count as zero meanwhile, as after `rg.flush_subnormals()`.
    """
    trainer = GraphTrainer(task, config)
    manager = None if out is None else CheckpointManager(out, fresh=not resume)
    if manager is None and resume:
        raise OptionError("resume needs out, the directory with the checkpoints")
    if manager is not None:
        if resume:
            trainer.restore(manager)
        manager.prepare()
        write_configuration(manager.directory, {**asdict(config), **(source or {})})
    tell = reporter or Silent()
    tell.start(trainer.step, config.steps)
    try:
        own = nullcontext() if manager is None else manager.lock()
        signals = nullcontext(StopRequest()) if manager is None else stop_requests()
        with own, signals as stop, flushing(), _watched(trainer, manager, board, log_norms) as w:
            path = _loop(trainer, manager, tell, stop, source, *w)
    finally:
        tell.close()
    return _outcome(trainer, path, stop.signal)


@contextmanager
def _watched(
    trainer: GraphTrainer,
    manager: CheckpointManager | None,
    board: Dashboard | None,
    looks: bool | int | None,
) -> Iterator[tuple[Watcher, JsonLines | None]]:
    """Who looks on, and the log; both have what the log has of a run that goes on."""
    step, log = trainer.step, None
    kept: list[Any] = []
    if manager is not None:
        log = JsonLines(manager.directory / LOG, step or None)
        kept = read_log(log.path)
        log.configured(step, asdict(trainer.config))
    if board is not None:
        name = "" if manager is None else manager.directory.absolute().name
        board.begin(step, EventReader().read(kept), name)
    sinks = [] if log is None else [log]
    try:
        unit, peak = _unit(trainer.task), trainer.predicted_peak
        yield Watcher(board, unit, looks, sinks, peak), log
    finally:
        if log is not None:
            log.close()


def _unit(task: Task) -> str:
    return "graphs" if task.of_graphs else "nodes"


def _loop(
    trainer: GraphTrainer,
    manager: CheckpointManager | None,
    tell: Reporter,
    stop: StopRequest,
    source: Any,
    watcher: Watcher,
    log: JsonLines | None,
) -> Path | None:
    """Steps until the last or a request to stop; the last checkpoint."""
    config, count = trainer.config, len(trainer.task.labels)
    ended, unit = False, _unit(trainer.task)
    while trainer.step < config.steps and not ended:
        loss = trainer.advance(watcher.undisturbed(trainer.step) == 0)
        tell.update(trainer.step, loss, count)
        watcher.update(trainer.step, loss, count, config.lr)
        if trainer.seen is not None:
            (norms, grads), trainer.seen = trainer.seen, None
            watcher.looked(trainer.step, trainer.names, norms, grads, lambda: trainer.model)
        if log is not None and trainer.step % max(config.steps // LINES, 1) == 0:
            log.write(trainer.step, {"loss": loss, unit: count, "lr": config.lr})
            log.flush()
        ended = bool(stop) or watcher.stopping
        due = trainer.step % config.checkpoint_every == 0 or watcher.wants_checkpoint()
        if manager is not None and due and trainer.step < config.steps and not ended:
            watcher.saved(trainer.save(manager, source))
    return None if manager is None else trainer.save(manager, source)


def _outcome(trainer: GraphTrainer, checkpoint: Path | None, signal: int | None) -> GraphOutcome:
    task, model, graph = trainer.task, trainer.model, trainer.graph
    model.eval()
    with rg.no_grad():
        logits = model(trainer.x, graph).numpy()
        embedding = model.embed(trainer.x, graph)
        if task.of_graphs:
            embedding = gnn.readout(embedding, graph, "mean")
    done = trainer.step >= trainer.config.steps
    baseline = _baseline(trainer) if done else float("nan")
    return GraphOutcome(
        task, model, trainer.train, trainer.test, logits.argmax(1), embedding.numpy(), baseline,
        trainer.step, checkpoint, signal,
    )  # fmt: skip


def _baseline(trainer: GraphTrainer) -> float:
    """The accuracy on the test of a linear model of degrees: of a node's, or of how many nodes of a
    graph have each."""
    task, graph, chosen, test = trainer.task, trainer.graph, trainer.train, trainer.test
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


def report(outcome: GraphOutcome) -> str:
    """What came out, as text: accuracies, and how often each class is taken for which."""
    task = outcome.task
    what = _unit(task)
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
