"""The page of the command line, read off the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from retrograd.cli.main import app
from retrograd.cli.signature import HELP
from scripts.site import markdown

PATH = "reference/cli.md"
INTRODUCTION = """\
`retrograd COMMAND --help` says the same. Exit codes: 0 done, 1 failed (with a message), 2 wrong
usage, 130 or 143 stopped by Ctrl-C or SIGTERM after saving.
"""


def walk(
    command: click.Command, path: tuple[str, ...] = ("retrograd",)
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups before what is in them."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from walk(inner, (*path, name))


def text() -> str:
    parts = [
        "# Command line\n",
        INTRODUCTION,
    ]
    for name, command in walk(app):
        parts += [f"## `{name}`\n", markdown.of_docstring(command.help or "")]
        context = click.Context(command, info_name=name, **HELP)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        parts.append(f"```sh\n{usage}\n```\n")
        rows = [r for p in command.get_params(context) if (r := p.get_help_record(context))]
        if rows:
            parts += ["| option | |", "|---|---|"]
            cells = [(markdown.plain(f"`{a}`"), markdown.plain(b)) for a, b in rows]
            parts += [f"| {a} | {b} |" for a, b in cells]
            parts.append("")
    return "\n".join(parts)
