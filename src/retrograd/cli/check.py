"""`retrograd check`: is a graph in order, and where does a function's first NaN come from?"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import click

import retrograd as rg
from retrograd import pytree
from retrograd.cli.signature import Argument, Option


def check(
    target: Annotated[
        str,
        Argument(
            metavar="FILE|MODULE:FUNCTION",
            help="A saved graph, an ONNX model, or a function that takes no arguments.",
            show_default=False,
        ),
    ],
    page: Annotated[
        Path | None,
        Option(
            help="Where the first value that is not finite is shown, if there is one: a page of "
            "the explorer that opens at it.",
            show_default="no",
        ),
    ] = None,
) -> None:
    """Check a saved graph, or run a function and find its first NaN or infinity.

    Of a graph, types and structure are verified, and its gradient is built and verified, too. A
    function runs under rg.debug(): the first operation that gives a value that is not finite,
    forward or backward, is named with its operands, source line, likely cause and remedy; what the
    function returns is computed and counts.
    """
    module, colon, name = target.rpartition(":")
    if colon and name.isidentifier() and not Path(target).exists():
        _check_function(module, name, page)
    else:
        _check_file(Path(target))


def _check_file(path: Path) -> None:
    load = rg.load_onnx if path.suffix.lower() == ".onnx" else rg.load_graph
    graph = load(path)
    graph.check()
    counts = (("input", graph.inputs), ("output", graph.outputs), ("node", graph.nodes))
    said = ", ".join(f"{len(x)} {what}{'s' * (len(x) != 1)}" for what, x in counts)
    click.echo(f"{path}: {said}; types and structure are right")
    if not any(y.dtype.is_inexact for y in graph.outputs):
        click.echo("it has no floating output, so no gradient")
        return
    gradient = graph.gradient()
    gradient.check()
    click.echo(f"its gradient has {len(gradient)} nodes; they are right, too")


def _check_function(module: str, name: str, page: Path | None) -> None:
    function = _function(module, name)
    with rg.debug(page=page):
        leaves = pytree.flatten(function())[0]
        for x in leaves:
            if isinstance(x, rg.Tensor):
                x.numpy()
    click.echo(f"{module}:{name}: every value is finite")


def _function(module: str, name: str) -> Any:
    """The function that `module:name` means; modules are looked for here first."""
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise click.BadParameter(f"{error}; it is looked for here and where Python looks") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise click.BadParameter(f"{module} has no function {name!r}")
    return found
