"""`retrograd convert`: weights from one format to another, and models to ONNX."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import click

import retrograd as rg
from retrograd import io
from retrograd.cli.convert_model import write_model
from retrograd.cli.options import printable
from retrograd.cli.signature import Argument, Option
from retrograd.errors import FormatError, OptionError
from retrograd.io.checkpoint import CHECKPOINT
from retrograd.io.weights import cast, check_ending, renamed
from retrograd.memory_limit import scaled


def convert(
    source: Annotated[
        Path,
        Argument(
            help="Safetensors, a PyTorch file, NPZ, or an ONNX model (initializers and constants); "
            "for .onnx a run, a folder with config.json, a graph.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path | None,
        Argument(
            help="What to write: .safetensors, .pt, .pth, .bin, .npz or .onnx.", show_default=False
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        Option(
            metavar="PATTERN=REPLACEMENT",
            help="Replace what a regular expression matches in names; in the order given.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        Option(
            metavar="PATTERN",
            help="Take only tensors in whose (old) name this regular expression matches.",
            show_default=False,
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        Option(
            help="Cast floats: float16, bfloat16, float32 or float64.", show_default="as they are"
        ),
    ] = None,
    show: Annotated[
        bool, Option("--list", help="List names, dtypes and shapes, as they are written.")
    ] = False,
) -> None:
    """Convert weights between safetensors, PyTorch files and NPZ; list them; rename and cast them.

    Nothing in a file is run: a PyTorch file may hold tensors, not pickled programs.

    An ONNX file is a graph with its weights, so it is written of what describes a whole model: a
    folder with config.json and weights, as Hugging Face has them; a run of `train gpt`, `tabular`,
    `digits` or `images`; a graph that `Graph.save` wrote.
    """
    if target is not None and target.suffix.lower() == ".onnx":
        if rename or only is not None or show:
            raise click.BadParameter(
                "--rename, --only and --list are about weights; ONNX is written of a whole model"
            )
        what = write_model(source, target, dtype)
        click.echo(f"{target}: {what}; {scaled(target.stat().st_size)}")
        return
    try:
        if target is None and not show:
            raise OptionError("give the file to write, or --list to see what there is")
        if target is not None:
            check_ending(target)
        chosen = re.compile(only) if only is not None else None
    except (OptionError, re.error) as error:
        raise click.BadParameter(str(error)) from None
    tensors = io.load_weights(source)
    if chosen is not None:
        names = [k for k in tensors if chosen.search(k)]
        if not names:
            raise OptionError(f"{source} has no tensor in whose name {only!r} matches")
        tensors = {k: tensors[k] for k in names}
    if not tensors:
        raise FormatError(f"{source} holds no tensors")
    tensors = renamed(tensors, rename or [])
    if dtype is not None:
        tensors = cast(tensors, dtype)
    if show:
        _list(tensors)
    if target is not None:
        _write(source, target, tensors)
        click.echo(f"{target}: {_amount(tensors)}")


def _write(source: Path, target: Path, tensors: dict[str, rg.Tensor]) -> None:
    """Write tensors; the texts of a safetensors file go with them, but for what makes it a
    checkpoint of a run."""
    if {source.suffix.lower(), target.suffix.lower()} != {".safetensors"}:
        io.save_weights(target, tensors)
        return
    texts = io.read_metadata(source)
    io.save_safetensors(target, tensors, {k: v for k, v in texts.items() if k != CHECKPOINT})


def _list(tensors: dict[str, rg.Tensor]) -> None:
    names = [printable(k) for k in tensors]
    width = max(map(len, names))
    for name, x in zip(names, tensors.values(), strict=True):
        shape = ", ".join(map(str, x.shape))
        click.echo(f"{name:{width}}  {x.dtype!s:9} [{shape}]")
    click.echo(_amount(tensors))


def _amount(tensors: dict[str, rg.Tensor]) -> str:
    sizes = [math.prod(map(int, x.shape)) for x in tensors.values()]
    total = sum(int(n) * x.dtype.itemsize for n, x in zip(sizes, tensors.values(), strict=True))
    several = "tensor" if len(tensors) == 1 else "tensors"
    return f"{len(tensors)} {several}, {sum(sizes):,} elements, {scaled(total)}"
