"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

import retrograd as rg


def _known_backend(name: str) -> str:
    if name not in rg.backends():
        raise typer.BadParameter(
            f"there is no backend {name!r}; choose from {', '.join(rg.backends())}"
        )
    return name


Backend = Annotated[
    str, typer.Option(help="What computes: llvm, or reference (slow).", callback=_known_backend)
]
Temperature = Annotated[
    float, typer.Option(min=0.0, help="Below 1: more usual texts; above: more surprising ones.")
]
