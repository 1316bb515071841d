"""Train a network on images with classes, and tell how good it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import metrics, optim
from retrograd.api.dashboard import Dashboard
from retrograd.data import read_image
from retrograd.distributed.training import Placement
from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.random.generator import Generator
from retrograd.io import load_safetensors, save_safetensors, structured
from retrograd.nn import functional as F
from retrograd.train.images.model import ImageNetwork
from retrograd.train.images.sources import ImageTask
from retrograd.train.loop.batches import ArrayRows
from retrograd.train.loop.early_stopping import EarlyStopping
from retrograd.train.loop.fit import fit
from retrograd.train.loop.rows import RowReader
from retrograd.train.loop.run import TrainingRun
from retrograd.train.progress import Reporter
from retrograd.train.run_log import MODEL, TASK, ConfigurationWriter, same_configuration
from retrograd.train.split import stratified_split

Array = np.ndarray[Any, Any]
CHUNK = 256  # images that are looked at together


@dataclass(frozen=True)
class ImageConfig:
    """How a network is trained. `patience` is for how many epochs the accuracy on images that are
    held out may stay below its best; 0: all epochs are done. With `steps` so many are done in
    place of the epochs, with ten looks at what is held out, which `patience` counts then."""

    epochs: int = 60
    batch: int = 64
    lr: float = 3e-3
    weight_decay: float = 1e-2
    width: int = 16
    dropout: float = 0.2
    smoothing: float = 0.05
    patience: int = 0
    seed: int = 0
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "width"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise OptionError(f"steps is at least 1, not {self.steps}")
        if not (self.lr > 0 and np.isfinite(self.lr)):
            raise OptionError(f"the learning rate is a positive number, not {self.lr}")
        if not 0 <= self.dropout < 1 or not 0 <= self.smoothing < 1:
            raise OptionError(
                f"dropout and smoothing are from 0 to below 1, not {self.dropout}, {self.smoothing}"
            )


@dataclass
class ImageOutcome:
    """A trained network, and what it makes of the images that it was tested on."""

    task: ImageTask
    run: TrainingRun
    model: ImageNetwork
    test: Array
    predicted: Array

    @property
    def accuracy(self) -> float:
        """The share of test images whose class was told; NaN where there are none."""
        right = self.predicted == self.task.labels[self.test]
        return float(right.mean()) if len(right) else float("nan")


def train(
    task: ImageTask,
    config: ImageConfig,
    out: StrPath,
    *,
    resume: bool = False,
    reporter: Reporter | bool = False,
    board: Dashboard | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ImageOutcome:
    """Learn to tell the classes of a task, with checkpoints, log and plot in the folder `out`.

    Images move by an eighth of their size while training. The learning rate rises for an epoch and
    falls along a cosine. `options` are written down with the configuration. The outcome depends on
    task and configuration alone; with `resume` the run goes on from its latest checkpoint to the
    same bits as if it had never stopped.
    """
    learn, look, test = stratified_split(task.labels, config.seed)
    if not len(look):
        raise FormatError(
            f"{task.name}: no class has three images, so that none can be held out to test on"
        )
    every = {**options, **asdict(config)}
    if resume:
        same_configuration(Path(out), every)
    batch = min(config.batch, len(learn))
    each = len(learn) // batch
    steps = config.steps or config.epochs * each
    rate = optim.schedules.cosine(config.lr, steps, warmup=min(each, steps // 2))
    outcome = fit(
        network(task, config),
        lambda model, batch: F.cross_entropy(
            model(batch[0]), batch[1], label_smoothing=config.smoothing
        ),
        (task.pixels(learn), task.labels[learn]),
        optimizer=optim.AdamW(lr=rate, weight_decay=config.weight_decay),
        epochs=None if config.steps else config.epochs,
        steps=config.steps,
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        seed=config.seed,
        validation=(task.pixels(look), task.labels[look]),
        metrics={"accuracy": metrics.Accuracy()},
        early_stopping=EarlyStopping(config.patience, monitor="val_accuracy", mode="max")
        if config.patience
        else None,
        folder=out,
        resume=resume,
        callbacks=() if resume else ConfigurationWriter(Path(out), every),
        progress=reporter,
        dashboard=board or False,
    )
    model = outcome.model
    described(task, config, Path(out))
    save_safetensors(Path(out) / MODEL, model.state_dict())
    return ImageOutcome(task, outcome, model, test, classes_of(model, task.pixels(test)))


def network(task: ImageTask, config: ImageConfig) -> ImageNetwork:
    """The network for a task, with first weights."""
    _, channels, size, _ = task.images.shape
    return ImageNetwork(
        size, channels, len(task.classes), config.width, config.dropout, task.mirrored,
        Generator(config.seed),
    )  # fmt: skip


def described(task: ImageTask, config: ImageConfig, out: Path) -> None:
    """Write down what `load_model` needs."""
    _, channels, size, _ = task.images.shape
    text = {"recipe": "images", "name": task.name, "classes": list(task.classes), "size": size,
            "channels": channels, "white": task.white, "mirrored": task.mirrored,
            "config": asdict(config)}  # fmt: skip
    write_atomically(out / TASK, json.dumps(text, indent=1).encode(), "task")


def load_model(out: StrPath) -> tuple[ImageNetwork, ImageTask]:
    """The network of a run, ready to be used, and a task without images."""
    folder = Path(out)
    with structured(folder / TASK, "it does not describe a run on images"):
        saved = json.loads(read_bytes(folder / TASK, "task"))
        none = np.zeros((0, saved["channels"], saved["size"], saved["size"]), np.uint8)
        task = ImageTask(
            saved["name"], saved["classes"], none, np.zeros(0, np.int64), saved["white"],
            saved["mirrored"],
        )  # fmt: skip
        model = network(task, ImageConfig(**saved["config"]))
        model.load_state_dict(load_safetensors(folder / MODEL))
    return model.eval(), task


def classes_of(model: ImageNetwork, pixels: Array | RowReader) -> Array:
    """The number of the class that the model takes each image for."""
    model.eval()
    if not len(pixels):
        return np.zeros(0, np.int64)
    scores = rg.jit(lambda model, x: model(x).argmax(axis=1))
    batches = ArrayRows((pixels,), CHUNK, shuffle=False, placement=Placement.here())
    parts = []
    while groups := batches.take(1):
        parts += [scores(model, *group.batch(0)).numpy() for group in groups]
    return np.concatenate(parts)


def predict(out: StrPath, files: Sequence[StrPath]) -> list[tuple[str, float]]:
    """For each image file the class that the network of a run takes it for, and the probability
    that the network gives it. `FormatError` for a file that is no image."""
    model, task = load_model(out)
    _, channels, size, _ = task.images.shape
    mode = "L" if channels == 1 else "RGB"
    pixels = np.stack([read_image(f, mode, size) for f in files]).astype(np.float32) / 255
    shares = rg.jit(lambda model, x: rg.softmax(model(x), axis=1))(model, pixels).numpy()
    return [(task.classes[row.argmax()], float(row.max())) for row in shares]


def report(outcome: ImageOutcome) -> str:
    """What came out, as text: the accuracy, and how often each class is taken for which."""
    task, test = outcome.task, outcome.test
    true = task.labels[test]
    lines = [
        f"{task.name}: {len(task.labels)} images, {len(task.classes)} classes",
        f"tested on {len(test)} that were not learned from: accuracy {outcome.accuracy:.1%}",
        "",
        "class (rows) taken for (columns):",
    ]
    width = max(*[len(c) for c in task.classes], 5)
    lines.append(" " * width + "".join([f" {c:>{width}}" for c in task.classes]))
    table: Any = np.zeros((len(task.classes), len(task.classes)), np.int64)
    if len(test):
        labels = list(range(len(task.classes)))
        table = metrics.confusion_matrix(outcome.predicted, true, labels=labels)
    for name, row in zip(task.classes, table, strict=True):
        lines.append(f"{name:>{width}}" + "".join([f" {n:>{width}}" for n in row]))
    return "\n".join(lines) + "\n"
