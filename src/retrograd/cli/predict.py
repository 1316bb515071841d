"""`retrograd predict`: what the model of a run makes of new data."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated

import click

import retrograd as rg
from retrograd.cli.options import Backend, printable
from retrograd.cli.signature import Argument, Option
from retrograd.errors import FormatError
from retrograd.files import read_bytes, write_atomically
from retrograd.io import structured
from retrograd.train import images, tabular
from retrograd.train.run_log import TASK


def predict(
    run: Annotated[Path, Argument(help="The directory of a run: tabular, digits, images.")],
    files: Annotated[list[Path], Argument(help="A table, or images.")],
    out: Annotated[
        Path | None, Option(help="Write CSV to this file.", show_default="print it")
    ] = None,
    backend: Backend = "llvm",
) -> None:
    """Predict what the model of a run makes of new data, as CSV.

    For each row of a table its number and the prediction, and the probability of each class; for
    each image the file, its class, and the probability of that.
    """
    with rg.backend(backend):
        recipe = recipe_of(run)
        if recipe == "images":
            lines = _of_images(run, files)
        elif recipe == "tabular":
            lines = _of_table(run, files)
        else:
            raise FormatError(f"{run} is a run of {recipe!r}, which predicts nothing")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    if out is None:
        click.echo(text.getvalue(), nl=False)
    else:
        write_atomically(out, text.getvalue().encode(), "predictions")


def _of_images(run: Path, files: list[Path]) -> list[list[str]]:
    found = images.predict(run, files)
    rows = [
        [printable(str(f)), name, f"{share:.6f}"]
        for f, (name, share) in zip(files, found, strict=True)
    ]
    return [["file", "class", "probability"], *rows]


def _of_table(run: Path, files: list[Path]) -> list[list[str]]:
    if len(files) > 1:
        raise click.BadParameter("a run on a table predicts one table at a time")
    target, values, shares = tabular.predict(run, tabular.read_table(files[0]))
    if target.classes is None:
        rows = [[str(i), repr(float(v))] for i, v in enumerate(values, 1)]
        return [["row", target.name], *rows]
    rows = [
        [str(i), str(v), *[f"{s:.6f}" for s in row]]
        for i, (v, row) in enumerate(zip(values, shares, strict=True), 1)
    ]
    return [["row", target.name, *[f"probability of {c}" for c in target.classes]], *rows]


def recipe_of(run: Path) -> str:
    """The recipe that a run is of. `FileNotFoundError` for a directory that is none's."""
    path = run / TASK
    if not path.exists():
        raise FileNotFoundError(
            f"there is no run to predict with in {run}: it has no {TASK}, which `retrograd train "
            "tabular`, `digits` and `images` write"
        )
    with structured(path, "it does not describe a run"):
        return str(json.loads(read_bytes(path, "task"))["recipe"])
