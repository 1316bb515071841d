"""The command line: `retrograd train`, `predict`, `sample`, `view`, `dashboard`, `check`,
`bench`, `convert`, `info`, `doctor`.

Exit codes: 0 done, 1 failed (with a message), 2 wrong usage, 130 or 143 stopped by Ctrl-C or
SIGTERM after saving.
"""

from __future__ import annotations

from typing import Annotated

import click

import retrograd
from retrograd.cli import (
    bench,
    check,
    convert,
    dashboard,
    doctor,
    info,
    predict,
    sample,
    train,
    view,
)
from retrograd.cli.errors import ReadableErrors
from retrograd.cli.signature import HELP, Group, Option, command, parameters
from retrograd.cli.train_graph import train_graph
from retrograd.cli.train_images import train_digits, train_images
from retrograd.cli.train_tabular import train_tabular


def _version(ctx: click.Context, param: click.Parameter, show: bool) -> None:
    if show:
        click.echo(f"retrograd {retrograd.__version__}")
        ctx.exit()


def main(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, Option("--debug", help="Show where an error comes from, as a traceback.")
    ] = False,
) -> None:
    """Reverse-mode automatic differentiation: train, sample, look."""


OTHERS = {"allow_extra_args": True, "ignore_unknown_options": True}
TRAIN = Group(
    "train",
    commands=[
        command(train.train_gpt, "gpt"),
        command(train_graph, "graph"),
        command(train_tabular, "tabular"),
        command(train_digits, "digits"),
        command(train_images, "images"),
    ],
    help="Train a model. Each recipe is a command.",
    short_help="Train a model.",
    no_args_is_help=True,
)
app = ReadableErrors(
    "retrograd",
    commands=[
        command(predict.predict),
        command(sample.sample),
        command(check.check),
        command(convert.convert),
        command(info.info),
        command(doctor.doctor),
        command(bench.bench, add_help_option=False, context_settings=OTHERS),
        command(view.view),
        command(dashboard.dashboard),
        TRAIN,
    ],
    callback=main,
    params=parameters(main)[0],
    help=main.__doc__,
    no_args_is_help=True,
    context_settings=HELP,
)
