"""What several commands have: options, and the name they are started by."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import click

import retrograd as rg
from retrograd.cli.signature import Option
from retrograd.errors import nearest
from retrograd.files import make_directory, read_bytes, unwritten

CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # what moves a terminal's cursor, or cannot be written


def printable(text: str, kept: str = "") -> str:
    """A text for a terminal: characters that control it, or end a line, as escapes; but for those
    that are `kept`."""
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in CONTROLS and c not in kept
        else c
        for c in text
    )


def _known_backend(ctx: click.Context, param: click.Parameter, name: str) -> str:
    try:
        rg.backend(name)
    except rg.BackendError as error:
        raise click.BadParameter(str(error)) from None
    return name


Backend = Annotated[
    str,
    Option(
        help="What computes: llvm, reference (slow), xla or wgpu; wgpu+llvm: what the GPU cannot "
        "do is left to the CPU.",
        callback=_known_backend,
    ),
]
Mesh = Annotated[
    str | None,
    Option(
        help="A mesh of devices, such as data=8 or data=4,model=2, for --backend xla.",
        show_default="one device",
    ),
]
Processes = Annotated[
    str | None,
    Option(
        help="Join the processes of this run: auto, as SLURM, MPI or torchrun started them, or "
        "ADDRESS:PORT,COUNT,NUMBER, the address being that of number 0.",
        show_default="this one alone",
    ),
]
Temperature = Annotated[
    float | None,
    Option(
        min=0.0,
        help="Below 1: more usual texts; above: more surprising ones.",
        show_default="0.5, of running text 0.8",
    ),
]
TopK = Annotated[
    int | None,
    Option(min=1, help="Draw from so many of the likeliest tokens.", show_default="all"),
]
TopP = Annotated[
    float | None,
    Option(help="Draw from the fewest tokens whose probabilities reach this.", show_default="all"),
]
Dashboard = Annotated[
    bool,
    Option(
        "--dashboard",
        help="Show the run on a page in the browser; `retrograd dashboard OUT` shows it later.",
    ),
]
Steps = Annotated[
    int | None,
    Option(min=1, help="Steps in all, in place of --epochs.", show_default=False),
]
Data = Annotated[Path | None, Option(help="The same, by name.", show_default=False)]
LogNorms = Annotated[
    bool,
    Option(
        "--log-norms",
        help="Log norms of parameters, gradients and updates about once a second, as a dashboard "
        "does.",
    ),
]


def _read_configuration(
    ctx: click.Context, param: click.Parameter, path: Path | None
) -> Path | None:
    """Values of options from a TOML file, as the defaults of those that are not given."""
    if path is None or ctx.resilient_parsing:
        return path
    try:
        values = tomllib.loads(read_bytes(path, "configuration").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is no TOML: {error}") from None
    known = {str(p.name): p for p in ctx.command.params if p.name not in ("config", "help")}
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            raise click.BadParameter(
                f"{path}: there is no option {key!r} of {ctx.info_name}{nearest(name, known)}"
            )
        is_flag = getattr(known[name], "is_flag", False)
        if isinstance(value, bool) != is_flag or not isinstance(value, str | int | float):
            wanted = "true or false" if is_flag else "a number or a text"
            raise click.BadParameter(f"{path}: {key} is {wanted}, not {value!r}")
        found[name] = value if is_flag else str(value)  # and is read as on the command line
    ctx.default_map = found
    return path


Config = Annotated[
    Path | None,
    Option(
        "--config",
        help="A TOML file with options by name; those given here count before it.",
        show_default=False,
        is_eager=True,
        callback=_read_configuration,
    ),
]


def by_place_or_name(given: Path | None, data: Path | None, what: str) -> Path:
    """What was given as an argument or as --data."""
    path = data if given is None else given
    if path is None or (given is not None and data is not None):
        raise click.UsageError(f"give {what} once: by its place, or with --data")
    return path


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether an option was named, here or in a --config, rather than left at its default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def command() -> str:
    """How this program is started from here: by name where the shell finds it, else by path."""
    if shutil.which("retrograd") or not sys.argv[0].endswith("retrograd"):
        return "retrograd"
    return os.path.relpath(sys.argv[0])


@contextmanager
def computing(
    backend: str, mesh: str | None = None, processes: str | None = None
) -> Iterator[None]:
    """A block on a backend, on a mesh of devices if one is given, and in several processes; of
    these, one writes and reports."""
    if (mesh or processes) and backend != "xla":
        raise click.BadParameter(f"--mesh and --processes are for --backend xla, not {backend}")
    with ExitStack() as stack:
        if processes is not None:
            _join(processes, mesh)
            if not rg.distributed.is_main_process():
                until_end = click.get_current_context().with_resource
                until_end(unwritten())
                until_end(redirect_stdout(StringIO()))
        stack.enter_context(rg.backend(backend))
        if mesh is not None:
            stack.enter_context(rg.Mesh(axes_of(mesh)))
        yield


def axes_of(mesh: str) -> dict[str, int]:
    """The axes of a mesh as they are written.

    >>> axes_of("data=4,model=2")
    {'data': 4, 'model': 2}
    """
    found: dict[str, int] = {}
    for part in mesh.split(","):
        name, equals, size = part.strip().partition("=")
        if not (name and equals and size.strip().isdigit()) or name.strip() in found:
            raise click.BadParameter(
                f"--mesh is a list of axes with sizes, such as data=4,model=2, not {mesh!r}"
            )
        found[name.strip()] = int(size)
    return found


def _join(processes: str, mesh: str | None) -> None:
    """Join the other processes, which have the same command."""
    must_match = {"the mesh": mesh, "the command": _command_line(processes)}
    if processes == "auto":
        rg.distributed.initialize(must_match=must_match)
        return
    address, *numbers = processes.split(",")
    if len(numbers) != 2 or not all(x.strip().isdigit() for x in numbers):
        raise click.BadParameter(
            f"--processes is auto, or ADDRESS:PORT,COUNT,NUMBER, not {processes!r}"
        )
    rg.distributed.initialize(address, int(numbers[0]), int(numbers[1]), must_match=must_match)


def _command_line(processes: str) -> list[str]:
    """What was typed, but for what differs from process to process."""
    return [x for x in sys.argv[1:] if processes not in x]


@contextmanager
def board_of(wanted: bool, out: Path) -> Iterator[Any]:
    """A dashboard, if one is wanted; when the run has ended, it is left as a file beside it."""
    if not wanted:
        yield None
        return
    others = out.absolute().parent
    made = rg.dashboard(f"training in {out}", controls=("stop", "checkpoint"), runs=others)
    with made as board:
        click.echo(f"Dashboard: {board.url}")
        yield board
        try:
            board.save(make_directory(out) / "dashboard.html")
        except OSError as error:  # the run is sound
            click.echo(f"The page of the dashboard is not kept: {error}", err=True)
