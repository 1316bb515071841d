"""`retrograd info`: what there is on this machine."""

from __future__ import annotations

import click

import retrograd as rg


def info() -> None:
    """Show versions, backends, what records in compiled code, the processor, threads."""
    click.echo(rg.info())
