"""`retrograd sample`: texts from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import click

import retrograd as rg
from retrograd.cli.options import Backend, Config, Temperature, TopK, TopP, printable
from retrograd.cli.signature import Argument, Option
from retrograd.errors import OptionError
from retrograd.train import gpt

PROSE_KEPT = "\n\t"  # characters of a running text that a terminal may have as they are


def sample(
    checkpoint: Annotated[
        Path,
        Argument(help="A checkpoint, or the directory of a run: its latest.", show_default=False),
    ],
    config: Config = None,
    count: Annotated[
        int | None,
        Option(
            "-n", "--count", min=1, help="How many texts.", show_default="20, of running text 1"
        ),
    ] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    prompt: Annotated[str, Option(help="What every text begins with.")] = "",
    seed: Annotated[int, Option(min=0, help="The same seed gives the same texts.")] = 0,
    length: Annotated[
        int | None,
        Option(
            min=1,
            help="The most tokens of a text.",
            show_default="the context, of running text 500",
        ),
    ] = None,
    backend: Backend = "llvm",
) -> None:
    """Print texts made by a trained GPT: documents one a line, running text as it is made."""
    chosen = gpt.Sampling(temperature, top_k, top_p)
    try:
        chosen.check()
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    with rg.backend(backend):
        model, tokenizer = gpt.load_model(checkpoint)
        more: dict[str, Any] = {"prompt": prompt, "seed": seed, "length": length}
        if not model.config.documents:
            show_texts(model, tokenizer, count or 1, chosen, **more)
            return
        texts = gpt.sample(model, tokenizer, count or 20, chosen, **more)
    for text in texts:
        click.echo(printable(text))


def show_texts(
    model: gpt.GPT, tokenizer: Any, count: int, chosen: gpt.Sampling, *, seed: int, **more: Any
) -> None:
    """Print running texts as they are made, the i-th with the seed `seed + i`."""
    for i in range(count):
        for part in gpt.stream(model, tokenizer, chosen, seed=seed + i, **more):
            click.echo(printable(part, PROSE_KEPT), nl=False)
        click.echo("\n" if i + 1 < count else "")
