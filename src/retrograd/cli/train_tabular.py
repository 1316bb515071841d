"""`retrograd train tabular`."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

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
from retrograd.errors import OptionError
from retrograd.files import write_atomically
from retrograd.train import tabular
from retrograd.train.progress import duration, reporter
from retrograd.train.tabular import TabularConfig


def train_tabular(
    target: Annotated[str, Option(help="The column to learn.")],
    file: Annotated[Path | None, Argument(help="A table: .csv, .tsv or .parquet.")] = None,
    data: Data = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        Option(help="What the target is; auto: found out."),
    ] = "auto",
    leave_out: Annotated[
        str, Option(help="Columns that are not used, with commas.", show_default="none")
    ] = "",
    out: Annotated[Path, Option(help="The directory for the run.")] = Path("runs/tabular"),
    resume: Annotated[
        bool, Option("--resume", help="Go on from the latest checkpoint in --out.")
    ] = False,
    epochs: Annotated[int, Option(min=1, help="Passes through the rows, at most.")] = 100,
    steps: Steps = None,
    batch: Annotated[int, Option(min=1, help="Rows in a step.")] = 256,
    lr: Annotated[float, Option(help="The highest learning rate; it falls to 0.")] = 2e-3,
    width: Annotated[int, Option(min=1, help="Numbers in each layer.")] = 128,
    depth: Annotated[int, Option(min=1, help="Layers.")] = 2,
    dropout: Annotated[float, Option(min=0.0, max=0.99)] = 0.1,
    weight_decay: Annotated[
        float, Option(min=0.0, help="Of weights, decoupled from the gradient.")
    ] = TabularConfig.weight_decay,
    patience: Annotated[
        int, Option(min=1, help="Epochs without a better validation, then stop.")
    ] = 15,
    seed: Annotated[int, Option(min=0, help="Of weights, split and order.")] = 0,
    config: Config = None,
    backend: Backend = "llvm",
    mesh: Mesh = None,
    processes: Processes = None,
    dashboard: Dashboard = False,
) -> None:
    """Learn a column of a table from the others.

    Kinds of columns are found out: numbers, dates, truth values, text with few values; what is
    missing may be. Of the rows 15 % are held out to look at meanwhile, and as many to test on.

    Writes to --out: report.txt, predictions.svg, loss.svg, loss.html, log.jsonl, config.toml and
    checkpoints. `retrograd predict OUT FILE` predicts the column for new rows. Ctrl-C saves a
    checkpoint; --resume goes on from there, to the same bits as if the run had never stopped.
    """
    try:
        settings = TabularConfig(
            target, task, epochs, batch, lr, weight_decay, width, depth, dropout,
            patience, seed, tuple([c.strip() for c in leave_out.split(",") if c.strip()]), steps,
        )  # fmt: skip
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    path = by_place_or_name(file, data, "a table")
    started = time.perf_counter()
    with computing(backend, mesh, processes), board_of(dashboard, out) as board:
        outcome = tabular.train(
            tabular.read_table(path), settings, out,
            resume=resume, reporter=reporter(sys.stdout, "rows"), board=board,
        )  # fmt: skip
    run = outcome.run
    if run.stopped is not None and run.stopped != "early stopping":
        again = [command(), "train", "tabular", str(path), "--out", str(out)]
        again += ["--config", str(out / "config.toml"), "--resume"]
        click.echo(
            f"Stopped at step {run.step} of {run.steps}; all is saved in {run.checkpoint}. To go "
            f"on:\n  {shlex.join(again)}"
        )
        raise click.exceptions.Exit(0 if run.signal is None else 128 + run.signal)
    text = tabular.report(outcome)
    write_atomically(out / "report.txt", text.encode(), "report")
    tabular.write_pictures(outcome, out)
    click.echo(f"Trained for {run.epoch} epochs in {duration(time.perf_counter() - started)}")
    click.echo(text)
    click.echo(f"Report, log and plots: {out}; to use it: {command()} predict {out} FILE")
