"""`retrograd train`: the recipes."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

import retrograd as rg
from retrograd.cli.options import (
    Backend,
    Dashboard,
    Temperature,
    board_of,
    command,
    is_given,
    printable,
)
from retrograd.data import bundled_names, read_documents
from retrograd.data.text import NAMES_ORIGIN
from retrograd.errors import OptionError
from retrograd.files import make_directory
from retrograd.train import gpt
from retrograd.train.gpt import GPTConfig, TrainConfig
from retrograd.train.progress import duration, reporter

app = typer.Typer(no_args_is_help=True, help="Train a model.")


@app.callback()
def _recipes() -> None:
    """Train a model. Each recipe is a command."""


def _size(text: str) -> Any:
    return typer.Option(min=1, help=text)


@app.command("gpt")
def train_gpt(
    ctx: typer.Context,
    data: Annotated[
        Path | None,
        typer.Option(help="A UTF-8 text, one document a line.", show_default="a list of names"),
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory for checkpoints.")] = Path("runs/gpt"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the latest checkpoint in --out.")
    ] = False,
    steps: Annotated[int, _size("Steps to train, in all.")] = TrainConfig.steps,
    batch: Annotated[int, _size("Documents in a step.")] = TrainConfig.batch,
    depth: Annotated[int, _size("Layers.")] = GPTConfig.depth,
    width: Annotated[int, _size("Numbers for each token, in each layer.")] = GPTConfig.width,
    heads: Annotated[int, _size("Heads of the attention.")] = GPTConfig.heads,
    context: Annotated[int, _size("Tokens the model looks at.")] = GPTConfig.context,
    lr: Annotated[
        float, typer.Option(help="The learning rate at the start; it falls to 0.")
    ] = TrainConfig.lr,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the weights and the order of documents.")
    ] = TrainConfig.seed,
    dtype: Annotated[
        Literal["float32", "float64"], typer.Option(help="The type of numbers.")
    ] = "float32",
    backend: Backend = "llvm",
    checkpoint_every: Annotated[
        int, _size("Steps between checkpoints.")
    ] = TrainConfig.checkpoint_every,
    val_every: Annotated[int, _size("Steps between validations.")] = TrainConfig.val_every,
    samples: Annotated[int, typer.Option(min=0, help="Texts to print at the end.")] = 20,
    temperature: Temperature = 0.5,
    dashboard: Dashboard = False,
    drawing: Annotated[
        Path | None,
        typer.Option(help="Draw the gradient graph to this .html or .svg.", show_default="none"),
    ] = None,
) -> None:
    """Train a GPT on a text, one document a line; without --data on a list of names.

    Ctrl-C saves a checkpoint; --resume goes on from there, to the same bits as if the run had never
    stopped. A run without --resume starts afresh; checkpoints that are in --out already are kept in
    OUT/previous. Numbers too small to be normal count as zero while training (flush_subnormals).
    """
    options = {
        "steps": steps, "batch": batch, "depth": depth, "width": width, "heads": heads,
        "context": context, "lr": lr, "seed": seed, "dtype": dtype,
        "checkpoint_every": checkpoint_every, "val_every": val_every,
    }  # fmt: skip
    _check(options, drawing)
    if resume:  # what is not given stays as it was
        options = {name: value for name, value in options.items() if is_given(ctx, name)}
    console = Console(markup=False, highlight=False, soft_wrap=True)
    started = time.perf_counter()
    with rg.backend(backend):
        if resume and data is None:
            source = gpt.source_of(out)
            data = None if source is None else Path(source)
        with board_of(dashboard, out, console) as board:
            outcome = gpt.train(
                _documents(data, console),
                out,
                resume=resume,
                reporter=reporter(console),
                source=None if data is None else str(data.absolute()),
                board=board,
                **options,
            )
        _tell_end(outcome, out, time.perf_counter() - started, console)
        if outcome.signal is not None:
            raise typer.Exit(128 + outcome.signal)
        _show_samples(outcome, samples, temperature, console)
        if drawing is not None:
            make_directory(drawing.parent)
            gpt.draw_gradient(outcome.trainer, drawing)
            console.print(f"The graph of the gradient is drawn in {drawing}")


def _check(options: dict[str, Any], drawing: Path | None) -> None:
    """Options that contradict each other are wrong usage."""
    try:
        gpt.configurations(options)
    except OptionError as error:
        raise typer.BadParameter(str(error)) from None
    if drawing is not None and drawing.suffix not in (".html", ".svg"):
        raise typer.BadParameter(f"--drawing takes a file ending in .html or .svg, not {drawing}")


def _documents(data: Path | None, console: Console) -> list[str]:
    if data is None:
        console.print(f"Text: {NAMES_ORIGIN}")
        return bundled_names()
    console.print(f"Text: {data}")
    return read_documents(data)


def _tell_end(outcome: gpt.GPTOutcome, out: Path, seconds: float, console: Console) -> None:
    trainer = outcome.trainer
    if trainer.step < trainer.config.steps:
        again = [command(), "train", "gpt", "--out", str(out), "--resume"]
        console.print(
            f"Stopped at step {trainer.step} of {trainer.config.steps}; all is saved in "
            f"{outcome.checkpoint}. To go on:\n  {shlex.join(again)}"
        )
        return
    loss = outcome.validation_loss
    result = "" if loss is None else f"; validation loss {loss:.4f} per token"
    console.print(f"Trained to step {trainer.step} in {duration(seconds)}{result}")
    console.print(f"Checkpoint: {outcome.checkpoint} (more texts: {command()} sample {out})")


def _show_samples(
    outcome: gpt.GPTOutcome, count: int, temperature: float, console: Console
) -> None:
    if count == 0:
        return
    trainer = outcome.trainer
    tokenizer = trainer.corpus.tokenizer
    console.print(f"\n{count} samples at temperature {temperature}:")
    texts = gpt.sample(
        outcome.model, tokenizer, count, temperature=temperature, seed=trainer.config.seed
    )
    for i, text in enumerate(texts, 1):
        console.print(f"{i:>{len(str(count))}}  {printable(text)}")
    console.print()
