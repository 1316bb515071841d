"""The command line: `retrograd train`, `predict`, `sample`, `view`, `check`,
`bench`, `convert`, `info`.

Exit codes: 0 done, 1 failed (with a message), 2 wrong usage, 130 or 143 stopped by Ctrl-C or
SIGTERM after saving.
"""

from __future__ import annotations

from typing import Annotated

import typer

import retrograd
from retrograd.cli import bench, check, convert, info, predict, sample, train, view
from retrograd.cli.errors import ReadableErrors
from retrograd.cli.train_graph import train_graph
from retrograd.cli.train_images import train_digits, train_images
from retrograd.cli.train_tabular import train_tabular

app = typer.Typer(
    name="retrograd",
    cls=ReadableErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train.app.command("graph")(train_graph)
train.app.command("tabular")(train_tabular)
train.app.command("digits")(train_digits)
train.app.command("images")(train_images)
app.add_typer(train.app, name="train")
app.command("predict")(predict.predict)
app.command("sample")(sample.sample)
app.command("check")(check.check)
app.command("convert")(convert.convert)
app.command("info")(info.info)
OTHERS = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("bench", add_help_option=False, context_settings=OTHERS)(bench.bench)
app.command("view")(view.view)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"retrograd {retrograd.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from, as a traceback.")
    ] = False,
) -> None:
    """Reverse-mode automatic differentiation: train, sample, look."""
