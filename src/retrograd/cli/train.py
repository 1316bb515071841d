"""`retrograd train`: the recipes."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from retrograd.cli.options import (
    Backend,
    Config,
    Dashboard,
    LogNorms,
    Mesh,
    Processes,
    Temperature,
    TopK,
    TopP,
    board_of,
    command,
    computing,
    is_given,
    printable,
)
from retrograd.cli.sample import show_texts
from retrograd.cli.signature import Option
from retrograd.data import bundled_names, read_documents
from retrograd.data.text import NAMES_ORIGIN
from retrograd.errors import OptionError
from retrograd.files import make_directory
from retrograd.train import gpt
from retrograd.train.gpt import PROSE, GPTConfig, TrainConfig
from retrograd.train.progress import duration, reporter


def _option(name: str, text: str, *flags: str, panel: str = "Training", **more: Any) -> Any:
    """An option for a field of a configuration, which has the default where it is not given."""
    known = vars(GPTConfig) | vars(TrainConfig)
    shown = str(known[name])
    if name in PROSE:
        shown += f", with --text {PROSE[name]}"
    return Option(*flags, help=text, panel=panel, show_default=shown, **more)


def _model(name: str, text: str, *flags: str, **more: Any) -> Any:
    return _option(name, text, *flags, panel="Model", **more)


def _interval(text: str, default: str) -> Any:
    return Option(min=1, help=text, show_default=default, panel="Training")


def train_gpt(
    ctx: click.Context,
    data: Annotated[
        Path | None,
        Option(help="A UTF-8 text, one document a line.", show_default="a list of names"),
    ] = None,
    text: Annotated[
        Path | None,
        Option(help="A UTF-8 text that goes on over its lines.", show_default=False),
    ] = None,
    out: Annotated[Path, Option(help="The directory for checkpoints.")] = Path("runs/gpt"),
    config: Config = None,
    resume: Annotated[
        bool, Option("--resume", help="Go on from the latest checkpoint in --out.")
    ] = False,
    tokens: Annotated[
        Literal["chars", "bpe"] | None, _option("tokens", "Characters, or byte pairs.")
    ] = None,
    vocab: Annotated[int | None, _option("vocab", "Tokens of byte pairs.", min=257)] = None,
    steps: Annotated[int | None, _option("steps", "Steps to train, in all.", min=1)] = None,
    batch: Annotated[int | None, _option("batch", "Samples in a step.", min=1)] = None,
    lr: Annotated[float | None, _option("lr", "The highest learning rate.")] = None,
    schedule: Annotated[
        Literal["linear", "cosine", "constant"] | None, _option("schedule", "How it falls.")
    ] = None,
    warmup: Annotated[
        int | None, _option("warmup", "Steps in which it rises before.", min=0)
    ] = None,
    min_lr: Annotated[float | None, _option("min_lr", "Where it falls to.", min=0)] = None,
    weight_decay: Annotated[
        float | None, _option("weight_decay", "Of AdamW; Adam without.", min=0)
    ] = None,
    clip: Annotated[float | None, _option("clip", "The most that gradients' norm is.")] = None,
    beta1: Annotated[float | None, _option("beta1", "Of Adam.", min=0, max=1)] = None,
    beta2: Annotated[float | None, _option("beta2", "Of Adam.", min=0, max=1)] = None,
    eps: Annotated[float | None, _option("eps", "Of Adam.", min=0)] = None,
    held_out: Annotated[
        float | None, _option("held_out", "The part kept for validation.", min=0)
    ] = None,
    seed: Annotated[
        int | None, _option("seed", "Of the weights and the order of samples.", min=0)
    ] = None,
    val_every: Annotated[
        int | None, _interval("Steps between validations.", "a tenth, at least 200")
    ] = None,
    checkpoint_every: Annotated[
        int | None, _interval("Steps between checkpoints.", "a fifth, at least 500")
    ] = None,
    depth: Annotated[int | None, _model("depth", "Layers.", "--depth", "--layers", min=1)] = None,
    width: Annotated[
        int | None, _model("width", "Numbers for each token, in each layer.", min=1)
    ] = None,
    heads: Annotated[int | None, _model("heads", "Heads of the attention.", min=1)] = None,
    context: Annotated[int | None, _model("context", "Tokens the model looks at.", min=1)] = None,
    mlp_ratio: Annotated[
        int | None, _model("mlp_ratio", "Width of the MLP, by that of a layer.", min=1)
    ] = None,
    positions: Annotated[
        Literal["learned", "sinusoidal", "rotary", "alibi", "none"] | None,
        _model("positions", "How the model is told them."),
    ] = None,
    activation: Annotated[
        Literal["relu", "gelu", "silu"] | None, _model("activation", "Of the MLP.")
    ] = None,
    final_norm: Annotated[
        bool | None,
        _model("final_norm", "Normalise before the head.", "--final-norm/--no-final-norm"),
    ] = None,
    norm_eps: Annotated[float | None, _model("norm_eps", "Of the norms.", min=0)] = None,
    dropout: Annotated[float | None, _model("dropout", "Its probability.", min=0)] = None,
    init_std: Annotated[
        float | None,
        Option(
            help="Standard deviation of the first weights.",
            show_default="0.32 / sqrt(width)",
            panel="Model",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float64"] | None, _model("dtype", "The type of numbers.")
    ] = None,
    backend: Backend = "llvm",
    mesh: Mesh = None,
    processes: Processes = None,
    samples: Annotated[
        int | None,
        Option(min=0, help="Texts to print at the end.", show_default="20, with --text 1"),
    ] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    dashboard: Dashboard = False,
    log_norms: LogNorms = False,
    sample_every: Annotated[
        int | None,
        Option(
            min=1,
            help="Steps between texts that are sampled into the log.",
            show_default="none; with --dashboard at validations",
        ),
    ] = None,
    drawing: Annotated[
        Path | None,
        Option(help="Draw the gradient graph to this .html or .svg.", show_default="none"),
    ] = None,
) -> None:
    """Train a GPT on a text: --data has one document a line, --text goes on over its lines; without
    both on a list of names.

    Ctrl-C saves a checkpoint; --resume goes on from there, to the same bits as if the run had never
    stopped. A run without --resume starts afresh; checkpoints that are in --out already are kept in
    OUT/previous. Numbers too small to be normal count as zero while training (flush_subnormals).

    OUT/config.toml has the options of the run, as --config reads them; OUT/log.jsonl its losses,
    OUT/loss.svg a plot of them.
    """
    options = {k: v for k, v in ctx.params.items() if k in OPTIONS and v is not None}
    options = {k: v for k, v in options.items() if is_given(ctx, k)}
    chosen = gpt.Sampling(temperature, top_k, top_p)
    _check(options, text is not None, chosen, drawing)
    if data is not None and text is not None:
        raise click.BadParameter("--data and --text are two kinds of text; give one of them")
    started = time.perf_counter()
    with computing(backend, mesh, processes):
        if resume and data is None and text is None:
            data, text = _source(out)
        with board_of(dashboard, out) as board:
            path = text or data
            outcome = gpt.train(
                _text(text) if text is not None else _documents(data),
                out,
                resume=resume,
                reporter=reporter(sys.stdout),
                name=None if path is None else str(path.absolute()),
                board=board,
                log_norms=log_norms or None,
                sample_every=sample_every,
                **options,
            )
        _tell_end(outcome, out, time.perf_counter() - started)
        if outcome.signal is not None:
            raise click.exceptions.Exit(128 + outcome.signal)
        _show_samples(outcome, samples, chosen)
        if drawing is not None:
            make_directory(drawing.parent)
            gpt.draw_gradient(outcome.trainer, drawing)
            click.echo(f"The graph of the gradient is drawn in {drawing}")


OPTIONS = {f.name for c in (GPTConfig, TrainConfig) for f in fields(c)}


def _check(
    options: dict[str, Any], prose: bool, chosen: gpt.Sampling, drawing: Path | None
) -> None:
    """Options that contradict each other are wrong usage."""
    try:
        gpt.configurations(options, prose)
        chosen.check()
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    if drawing is not None and drawing.suffix not in (".html", ".svg"):
        raise click.BadParameter(f"--drawing takes a file ending in .html or .svg, not {drawing}")


def _source(out: Path) -> tuple[Path | None, Path | None]:
    """The files with documents, or with a running text, of the run in a directory."""
    name, documents = gpt.source_of(out)
    path = None if name is None else Path(name)
    return (path, None) if documents else (None, path)


def _text(path: Path) -> gpt.TextFile:
    click.echo(f"Text: {path}")
    return gpt.TextFile.read(path)


def _documents(data: Path | None) -> list[str]:
    if data is None:
        click.echo(f"Text: {NAMES_ORIGIN}")
        return bundled_names()
    click.echo(f"Text: {data}")
    return read_documents(data)


def _tell_end(outcome: gpt.GPTOutcome, out: Path, seconds: float) -> None:
    trainer = outcome.trainer
    if trainer.step < trainer.config.steps:
        again = [command(), "train", "gpt", "--out", str(out), "--resume"]
        click.echo(
            f"Stopped at step {trainer.step} of {trainer.config.steps}; all is saved in "
            f"{outcome.checkpoint}. To go on:\n  {shlex.join(again)}"
        )
        return
    loss = outcome.validation_loss
    result = "" if loss is None else f"; validation loss {loss:.4f} per token"
    bits = None if loss is None else trainer.bits_per_byte(loss)
    result += "" if bits is None else f", {bits:.4f} bits per byte"
    click.echo(f"Trained to step {trainer.step} in {duration(seconds)}{result}")
    click.echo(f"Checkpoint: {outcome.checkpoint} (more texts: {command()} sample {out})")


def _show_samples(outcome: gpt.GPTOutcome, count: int | None, chosen: gpt.Sampling) -> None:
    model, trainer = outcome.model, outcome.trainer
    tokenizer, seed = trainer.corpus.tokenizer, trainer.config.seed
    documents = model.config.documents
    number = (20 if documents else 1) if count is None else count
    if number == 0:
        return
    what = "1 sample" if number == 1 else f"{number} samples"
    click.echo(f"\n{what} at temperature {chosen.of(model).temperature}:")
    if not documents:
        show_texts(model, tokenizer, number, chosen, seed=seed)
        return
    texts = gpt.sample(model, tokenizer, number, chosen, seed=seed)
    for i, text in enumerate(texts, 1):
        click.echo(f"{i:>{len(str(number))}}  {printable(text)}")
    click.echo()
