"""`retrograd info`: what there is on this machine."""

from __future__ import annotations

from typing import Annotated

import click

import retrograd as rg
from retrograd.cli.signature import Option


def info(
    as_json: Annotated[bool, Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show what a report of an error needs: versions, backends and why one is missing, processor,
    threads, BLAS, cache, extras, environment variables."""
    found = rg.info()
    click.echo(found.to_json() if as_json else found)
