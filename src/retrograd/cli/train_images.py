"""`retrograd train digits` and `retrograd train images`."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import click

from retrograd.cli.options import (
    Backend,
    Config,
    Dashboard,
    Data,
    Mesh,
    Processes,
    Steps,
    board_of,
    by_place_or_name,
    command,
    computing,
)
from retrograd.cli.signature import Argument, Option
from retrograd.data.digits import DIGITS_ORIGIN
from retrograd.errors import OptionError
from retrograd.files import write_atomically
from retrograd.train import images
from retrograd.train.images import ImageConfig
from retrograd.train.progress import duration, reporter

Resume = Annotated[bool, Option("--resume", help="Go on from the latest checkpoint in --out.")]
Epochs = Annotated[int, Option(min=1, help="Passes through the images.")]
Batch = Annotated[int, Option(min=1, help="Images in a step.")]
Rate = Annotated[float, Option(help="The highest learning rate; it falls to 0.")]
Width = Annotated[int, Option(min=1, help="Channels of the first layers.")]
Dropout = Annotated[float, Option(min=0.0, max=0.99)]
Decay = Annotated[float, Option(min=0.0, help="Of weights, decoupled from the gradient.")]
Smoothing = Annotated[float, Option(min=0.0, max=0.99, help="Of the labels.")]
Patience = Annotated[
    int,
    Option(min=0, help="Epochs without a better validation, then stop; 0: never."),
]
Seed = Annotated[int, Option(min=0, help="Of weights, split and order.")]


def train_digits(
    out: Annotated[Path, Option(help="The directory for the run.")] = Path("runs/digits"),
    resume: Resume = False,
    epochs: Epochs = ImageConfig.epochs,
    steps: Steps = None,
    batch: Batch = ImageConfig.batch,
    lr: Rate = ImageConfig.lr,
    width: Width = ImageConfig.width,
    dropout: Dropout = ImageConfig.dropout,
    weight_decay: Decay = ImageConfig.weight_decay,
    smoothing: Smoothing = ImageConfig.smoothing,
    patience: Patience = ImageConfig.patience,
    seed: Seed = ImageConfig.seed,
    config: Config = None,
    backend: Backend = "llvm",
    mesh: Mesh = None,
    processes: Processes = None,
    dashboard: Dashboard = False,
) -> None:
    """Learn to read the handwritten digits that come with retrograd.

    Writes to --out: report.txt, loss.svg, loss.html, log.jsonl, config.toml and checkpoints. Ctrl-C
    saves a checkpoint; --resume goes on from there, to the same bits as if the run had never
    stopped. Numbers too small to be normal count as zero while training (flush_subnormals).
    """
    settings = _config(
        epochs, batch, lr, weight_decay, width, dropout, smoothing, patience, seed, steps
    )
    click.echo(f"Images: {DIGITS_ORIGIN}")
    _run("digits", images.digits, settings, out, resume, (backend, mesh, processes), dashboard)


def train_images(
    folder: Annotated[Path | None, Argument(help="A folder with a folder for each class.")] = None,
    data: Data = None,
    out: Annotated[Path, Option(help="The directory for the run.")] = Path("runs/images"),
    size: Annotated[int, Option(min=4, help="Pixels that images are resized to.")] = 64,
    gray: Annotated[bool, Option("--gray", help="Leave colours out.")] = False,
    resume: Resume = False,
    epochs: Epochs = ImageConfig.epochs,
    steps: Steps = None,
    batch: Batch = 32,
    lr: Rate = ImageConfig.lr,
    width: Width = ImageConfig.width,
    dropout: Dropout = ImageConfig.dropout,
    weight_decay: Decay = ImageConfig.weight_decay,
    smoothing: Smoothing = ImageConfig.smoothing,
    patience: Patience = 10,
    seed: Seed = ImageConfig.seed,
    config: Config = None,
    backend: Backend = "llvm",
    mesh: Mesh = None,
    processes: Processes = None,
    dashboard: Dashboard = False,
) -> None:
    """Learn to tell the classes of images, whose folder is their class: FOLDER/cat/1.png.

    Needs the package pillow: pip install 'retrograd[data]'. Of each class 15 % are held out to look
    at meanwhile, and as many to test on. Images are moved and mirrored while training. What is
    written, and --resume, are as of `train digits`.
    """
    settings = _config(
        epochs, batch, lr, weight_decay, width, dropout, smoothing, patience, seed, steps
    )

    path = by_place_or_name(folder, data, "a folder of images")

    def task() -> Any:
        return images.read_folder(path, size, "L" if gray else "RGB")

    options, where = {"size": size, "gray": gray}, (backend, mesh, processes)
    _run("images", task, settings, out, resume, where, dashboard, path, options)


def _config(*values: Any) -> ImageConfig:
    """Of the options in the order of the fields."""
    try:
        return ImageConfig(*values)
    except OptionError as error:
        raise click.BadParameter(str(error)) from None


def _run(
    recipe: str, task: Any, config: ImageConfig, out: Path, resume: bool,
    where: tuple[str, str | None, str | None], dashboard: bool, folder: Path | None = None,
    options: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    started = time.perf_counter()
    with computing(*where), board_of(dashboard, out) as board:
        outcome = images.train(
            task(), config, out,
            resume=resume, reporter=reporter(sys.stdout, "images"), board=board,
            options=options or {},
        )  # fmt: skip
        run = outcome.run
        if run.stopped is not None and run.stopped != "early stopping":
            given = [] if folder is None else [str(folder)]
            settings = ["--out", str(out), "--config", str(out / "config.toml"), "--resume"]
            again = [command(), "train", recipe, *given, *settings]
            click.echo(
                f"Stopped at step {run.step} of {run.steps}; all is saved in {run.checkpoint}. "
                f"To go on:\n  {shlex.join(again)}"
            )
            raise click.exceptions.Exit(0 if run.signal is None else 128 + run.signal)
        text = images.report(outcome)
    write_atomically(out / "report.txt", text.encode(), "report")
    click.echo(f"Trained for {run.epoch} epochs in {duration(time.perf_counter() - started)}")
    click.echo(text)
    click.echo(f"Report, log and plot: {out}; to use it: {command()} predict {out} FILE")
