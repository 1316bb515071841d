"""`retrograd check`: is a graph in order, where does a function's first NaN come from, and are the
rules of operations right?"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import click

import retrograd as rg
from retrograd import pytree
from retrograd.cli.signature import Argument, Option
from retrograd.verify import checker


def check(
    targets: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILE|MODULE:FUNCTION|OP ...]",
            help="A saved graph, an ONNX model, a certificate of a proof (.json), or a function "
            "that takes no arguments; with --rules the operations, by default all.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        Option(
            help="Where the first value that is not finite is shown, if there is one: a page of "
            "the explorer that opens at it.",
            show_default="no",
        ),
    ] = None,
    rules: Annotated[
        bool,
        Option("--rules", help="Certify the derivatives of operations.", show_default=False),
    ] = False,
    order: Annotated[
        int, Option(min=1, help="With --rules: the highest order of derivatives.")
    ] = 3,
    json: Annotated[
        Path | None, Option(help="With --rules: where all numbers go.", show_default="no")
    ] = None,
) -> None:
    """Check a saved graph or a proof, find the first NaN or infinity of a function, or certify
    rules.

    Of a graph, types and structure are verified, and its gradient is built and verified, too. The
    proof in a certificate is done again in exact arithmetic. A function runs under rg.debug(): the
    first operation that gives a value that is not finite, forward or backward, is named with its
    operands, source line, likely cause and remedy; what the function returns is computed and
    counts.

    With --rules each derivative of an operation is compared with what does not know its rule:
    differences in extended precision, forward mode, SymPy's derivative, the complex step, second
    and third order, edge points, batches, backends. The table is printed; exit code 1 if one fails.
    """
    if rules:
        _check_rules(targets or None, order, json)
        return
    if targets is None or len(targets) != 1:
        raise click.UsageError("give one file or module:function, or --rules")
    (target,) = targets
    module, colon, name = target.rpartition(":")
    if colon and name.isidentifier() and not Path(target).exists():
        _check_function(module, name, page)
    else:
        _check_file(Path(target))


def _check_rules(ops: list[str] | None, order: int, json: Path | None) -> None:
    found = rg.verify.rules(ops, order=order)
    click.echo(str(found))
    if json is not None:
        json.write_text(found.to_json(), encoding="utf-8")
    if not found.passed:
        click.get_current_context().exit(1)


def _check_file(path: Path) -> None:
    if path.suffix.lower() == ".json":
        try:
            click.echo(f"{path}: {checker.check(checker.load(str(path)))}")
        except checker.Rejected as error:
            raise rg.FormatError(f"{path} is rejected: {error}") from None
        return
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
    try:
        inspect.signature(function).bind()
    except ValueError:  # of some functions in C nobody knows the arguments
        pass
    except TypeError as error:
        raise click.BadParameter(
            f"{module}:{name} is called without arguments, but it takes some: {error}; name a "
            "function that calls it on inputs of your choice"
        ) from None
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
