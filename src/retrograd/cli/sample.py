"""`retrograd sample`: texts from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import retrograd as rg
from retrograd.cli.options import Backend, Temperature, printable
from retrograd.train import gpt


def sample(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            help="A checkpoint, or the directory of a run: its latest.", show_default=False
        ),
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many texts.")] = 20,
    temperature: Temperature = 0.5,
    prompt: Annotated[str, typer.Option(help="What every text begins with.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same texts.")] = 0,
    length: Annotated[
        int | None,
        typer.Option(min=1, help="The most characters of a text.", show_default="the context"),
    ] = None,
    backend: Backend = "llvm",
) -> None:
    """Print texts made by a trained GPT, one a line."""
    with rg.backend(backend):
        model, tokenizer = gpt.load_model(checkpoint)
        texts = gpt.sample(
            model,
            tokenizer,
            count,
            temperature=temperature,
            prompt=prompt,
            seed=seed,
            length=length,
        )
    for text in texts:
        typer.echo(printable(text))
