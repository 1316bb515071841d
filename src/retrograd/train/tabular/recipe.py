"""Train a network to tell a column of a table from the others, and predict it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import retrograd as rg
from retrograd import metrics, optim
from retrograd.api.dashboard import Dashboard
from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.random.generator import Generator
from retrograd.io import load_safetensors, save_safetensors, structured
from retrograd.train.loop.early_stopping import EarlyStopping
from retrograd.train.loop.fit import fit
from retrograd.train.loop.run import TrainingRun
from retrograd.train.progress import Reporter
from retrograd.train.run_log import MODEL, TASK, ConfigurationWriter, same_configuration
from retrograd.train.split import stratified_split
from retrograd.train.tabular.columns import TableEncoder, fit_columns, moments, taken
from retrograd.train.tabular.model import TabularNetwork, loss_of
from retrograd.train.tabular.table import Table

Array = np.ndarray[Any, Any]
FEW = 20  # different whole numbers of a target, up to which they count as classes
CHUNK = 4096  # rows that are looked at together


@dataclass(frozen=True)
class TabularConfig:
    """What is learned, and how: `task` is found out from the target where it is "auto". `patience`
    is for how many epochs the validation may stay worse than its best; then the best is taken
    back. With `steps` so many are done in place of the epochs, with ten looks at what is held out,
    which `patience` counts then."""

    target: str
    task: Literal["auto", "classification", "regression"] = "auto"
    epochs: int = 100
    batch: int = 256
    lr: float = 2e-3
    weight_decay: float = 1e-2
    width: int = 128
    depth: int = 2
    dropout: float = 0.1
    patience: int = 15
    seed: int = 0
    leave_out: tuple[str, ...] = ()
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "width", "depth", "patience"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise OptionError(f"steps is at least 1, not {self.steps}")
        if not (self.lr > 0 and np.isfinite(self.lr)):
            raise OptionError(f"the learning rate is a positive number, not {self.lr}")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout is from 0 to below 1, not {self.dropout}")
        if self.task not in ("auto", "classification", "regression"):
            raise OptionError(f"task is auto, classification or regression, not {self.task!r}")


@dataclass(frozen=True)
class TargetColumn:
    """The column that is learned: `classes` with their names, or numbers with mean and spread.
    `words` are the names of 0 and 1 where these are truth values."""

    name: str
    classes: list[str] | None
    mean: float = 0.0
    spread: float = 1.0
    words: Sequence[str] | None = None

    def label(self, value: Any) -> str:
        """The name of a class: text as it is, whole numbers without a point."""
        if isinstance(value, str):
            return str(value)
        if self.words is not None:
            return self.words[int(value)]
        return f"{value:.15g}" if isinstance(value, float) else str(value)

    def encode(self, values: Array) -> Array:
        """Places of classes, int64, or numbers in standard deviations, float32."""
        if self.classes is None:
            return ((values - self.mean) / self.spread).astype(np.float32)
        places = {name: i for i, name in enumerate(self.classes)}
        return np.array([places[self.label(v)] for v in values], np.int64)

    def decode(self, scores: Array) -> Array:
        """The class of the highest score, or the number, of each row."""
        if self.classes is None:
            return scores[:, 0].astype(np.float64) * self.spread + self.mean
        return np.array(self.classes, object)[scores.argmax(1)]


@dataclass
class TabularOutcome:
    """A trained network, and what it makes of the rows that it was tested on."""

    table: Table
    target: TargetColumn
    encoder: TableEncoder
    run: TrainingRun
    test: Array  # rows of the table
    scores: Array  # of these rows
    unlabelled: int  # rows without a target, which were left out

    @property
    def true(self) -> Array:
        """The target of the rows that it was tested on."""
        values = self.table.columns[self.target.name][self.test]
        if self.target.classes is None:
            return values
        return np.array([self.target.label(v) for v in values])

    @property
    def predicted(self) -> Array:
        """What the network says."""
        return self.target.decode(self.scores)


def train(
    table: Table,
    config: TabularConfig,
    out: StrPath,
    *,
    resume: bool = False,
    reporter: Reporter | bool = False,
    board: Dashboard | None = None,
) -> TabularOutcome:
    """Learn a column of a table from the others, with checkpoints, log and plot in `out`.

    Of the rows, and of each class, 15 % are held out to look at after each epoch, and as many to
    test on. The outcome depends on table and configuration alone; with `resume` the run goes on to
    the same bits as if it had never stopped.
    """
    rows, target, parts = prepared(table, config)
    options = asdict(config) | {"leave_out": ",".join(config.leave_out) or None}
    if resume:
        same_configuration(Path(out), options)
    learn, look, test = (rows[p] for p in parts)
    encoder = fit_columns(table, config.target, learn, config.leave_out)
    numbers, places = encoder.encode(table)
    wanted = np.zeros(len(table), np.int64 if target.classes else np.float32)
    wanted[rows] = target.encode(table.columns[config.target][rows])
    batch = min(config.batch, len(learn))
    each, classes = len(learn) // batch, target.classes is not None
    steps = config.steps or config.epochs * each
    rate = optim.schedules.cosine(config.lr, steps, warmup=min(each, steps // 2))
    run = fit(
        network(encoder, target, config),
        lambda model, batch: loss_of(model, batch, classes),
        (numbers[learn], places[learn], wanted[learn]),
        optimizer=optim.AdamW(lr=rate, weight_decay=config.weight_decay),
        epochs=None if config.steps else config.epochs,
        steps=config.steps,
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        seed=config.seed,
        validation=(numbers[look], places[look], wanted[look]),
        metrics={"accuracy": metrics.Accuracy()} if classes else None,
        predict=lambda model, batch: (model(batch[0], batch[1]), batch[2]),
        early_stopping=EarlyStopping(config.patience),
        folder=out,
        resume=resume,
        callbacks=() if resume else ConfigurationWriter(Path(out), options),
        progress=reporter,
        dashboard=board or False,
    )
    describe(Path(out), encoder, target, config)
    save_safetensors(Path(out) / MODEL, run.model.state_dict())
    scores = scores_of(run.model, numbers[test], places[test])
    return TabularOutcome(table, target, encoder, run, test, scores, len(table) - len(rows))


def prepared(
    table: Table, config: TabularConfig
) -> tuple[Array, TargetColumn, tuple[Array, Array, Array]]:
    """The rows with a target, what it is, and the places among them that are learned from, looked
    at and tested on."""
    values = taken(table, config.target)
    text = values.dtype == object
    there = np.array([v is not None for v in values]) if text else np.isfinite(values)
    rows = np.flatnonzero(there)
    if not len(rows):
        raise FormatError(f"{table.source}: the target {config.target!r} is empty in all rows")
    values, words = values[rows], table.words.get(config.target)
    kinds = np.unique(values.astype(str) if text else values)
    classes = text or (config.target in table.whole and len(kinds) <= FEW)
    if config.task != "auto":
        classes = config.task == "classification"
        if text and not classes:
            raise FormatError(
                f"{table.source}: the target {config.target!r} is text, such as {values[0]!r}, "
                "which is no number to be learned; choose --task classification"
            )
    target = TargetColumn(config.target, None, words=words)
    if len(kinds) < 2:
        raise FormatError(
            f"{table.source}: the target {config.target!r} is {target.label(values[0])} in all "
            "rows; there is nothing to tell apart"
        )
    if classes:
        target = replace(target, classes=[target.label(k) for k in kinds.tolist()])
    groups = target.encode(values) if classes else np.zeros(len(rows))
    parts = stratified_split(groups, config.seed)
    if not len(parts[1]):
        raise FormatError(
            f"{table.source}: no value of {config.target!r} is in three rows, so that none can be "
            "held out to test on; is it the right column?"
        )
    if classes:
        return rows, target, parts
    mean, spread = moments(values[parts[0]], config.target, table.source)
    return rows, replace(target, mean=mean, spread=spread or 1.0), parts


def network(encoder: TableEncoder, target: TargetColumn, config: TabularConfig) -> TabularNetwork:
    """The network for a table, with first weights."""
    return TabularNetwork(
        encoder.numbers, encoder.sizes, len(target.classes or [0]), config.width, config.depth,
        config.dropout, Generator(config.seed),
    )  # fmt: skip


def scores_of(model: TabularNetwork, numbers: Array, places: Array) -> Array:
    """What the network makes of each row."""
    model.eval()
    run = rg.jit(lambda model, x, k: model(x, k))
    parts = [
        run(model, numbers[i : i + CHUNK], places[i : i + CHUNK]).numpy()
        for i in range(0, len(numbers), CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)


def describe(out: Path, encoder: TableEncoder, target: TargetColumn, config: TabularConfig) -> None:
    """Write down what `load_run` needs."""
    text = {"recipe": "tabular", "target": asdict(target), "encoder": encoder.state_dict(),
            "config": asdict(config)}  # fmt: skip
    write_atomically(out / TASK, json.dumps(text, indent=1).encode(), "task")


def load_run(out: StrPath) -> tuple[TabularNetwork, TableEncoder, TargetColumn]:
    """The network of a run, ready to be used, and what goes in and comes
    out."""
    folder = Path(out)
    with structured(folder / TASK, "it does not describe a run on a table"):
        saved = json.loads(read_bytes(folder / TASK, "task"))
        config = saved["config"] | {"leave_out": tuple(saved["config"]["leave_out"])}
        encoder, target = TableEncoder.from_state(saved["encoder"]), TargetColumn(**saved["target"])
        model = network(encoder, target, TabularConfig(**config))
        model.load_state_dict(load_safetensors(folder / MODEL))
    return model.eval(), encoder, target


def predict(out: StrPath, table: Table) -> tuple[TargetColumn, Array, Array]:
    """The target, what the network of a run predicts for each row of a table, and the probabilities
    of classes, `[N, classes]`, or the numbers, `[N, 1]`. `ArgumentError` for a column that is
    missing; values of categories that were not there in training count as unknown."""
    model, encoder, target = load_run(out)
    scores = scores_of(model, *encoder.encode(table))
    if target.classes is None:
        found = target.decode(scores)
        return target, found, found[:, None]
    high = scores - scores.max(1, keepdims=True)
    shares = np.exp(high) / np.exp(high).sum(1, keepdims=True)
    return target, target.decode(scores), shares


def measured(outcome: TabularOutcome) -> dict[str, float]:
    """Metrics of the rows that it was tested on, by name."""
    true: Any = outcome.true
    if outcome.target.classes is None:
        pairs = outcome.predicted, true
        return {
            "R2": float(metrics.r2(*pairs)), "RMSE": float(metrics.rmse(*pairs)),
            "MAE": float(metrics.mae(*pairs)),
        }  # fmt: skip
    places = outcome.target.encode(true)
    found = outcome.scores.argmax(1)
    return {
        "accuracy": float(metrics.accuracy(found, places)),
        "macro F1": float(metrics.f1(found, places, average="macro")),
    }
