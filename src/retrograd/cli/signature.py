"""A function as a command of click: its annotated parameters are the options and arguments.

    def sample(count: Annotated[int, Option(min=1, help="How many.")] = 20) -> None: ...

The type says what is read: text, numbers, paths, flags, a `Literal` one of several, a `list` many;
`| None` that it may be left out. A parameter of type `click.Context` is given the context.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}  # settings of a context


@dataclass(frozen=True)
class Parameter:
    """What the type of a parameter does not say of it."""

    flags: tuple[str, ...]
    named: bool  # by a flag, rather than by its place
    help: str | None = None
    min: float | None = None
    max: float | None = None
    metavar: str | None = None
    show_default: bool | str = True
    callback: Callable[[click.Context, click.Parameter, Any], Any] | None = None
    is_eager: bool = False
    panel: str = "Options"  # the headline that help has it under


def Option(*flags: str, **more: Any) -> Parameter:
    """A parameter that is named: by `flags`, or as the parameter of the function is."""
    return Parameter(flags, True, **more)


def Argument(**more: Any) -> Parameter:
    """A parameter that is known by its place."""
    return Parameter((), False, **more)


class PanelOption(click.Option):
    """An option that help lists under the headline `panel`."""

    panel = "Options"


class DescribedArgument(click.Argument):
    """An argument that help describes."""

    description: tuple[str, str] = ("", "")


class Command(click.Command):
    """A command whose help describes arguments, too, and has options under several headlines."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for p in self.get_params(ctx):
            if isinstance(p, DescribedArgument):
                panels["Arguments"].append((p.make_metavar(ctx), p.description[1]))
            elif (record := p.get_help_record(ctx)) is not None:
                panels.setdefault(getattr(p, "panel", "Options"), []).append(record)
        for headline, records in panels.items():
            if records:
                with formatter.section(headline):
                    formatter.write_dl(records)


class Group(click.Group):
    """Commands in the order in which they were given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def command(function: Callable[..., None], name: str | None = None, **more: Any) -> Command:
    """The command that calls a function; its docstring is the help."""
    params, context = parameters(function)

    def run(**values: Any) -> Any:
        if context is not None:
            values[context] = click.get_current_context()
        return function(**{k: [*v] if isinstance(v, tuple) else v for k, v in values.items()})

    name = function.__name__ if name is None else name
    text = inspect.cleandoc(function.__doc__ or "")
    first = " ".join(text.partition("\n\n")[0].split())  # not cut where the line ends
    more["context_settings"] = HELP | more.get("context_settings", {})
    return Command(name, callback=run, params=params, help=text, short_help=first, **more)


def run(function: Callable[..., Any]) -> None:
    """Call a function with the arguments of this program, and end it."""
    command(function)()


def parameters(function: Callable[..., Any]) -> tuple[list[click.Parameter], str | None]:
    """The parameters of a function for click, and the one that is given the context."""
    hints = get_type_hints(function, include_extras=True)
    made: list[click.Parameter] = []
    context = None
    for name, found in inspect.signature(function).parameters.items():
        kind, about = hints[name], None
        if get_origin(kind) is Annotated:
            kind, about = get_args(kind)
        if kind is click.Context:
            context = name
        else:
            made.append(_parameter(name, kind, about or Option(), found.default))
    return made, context


def _parameter(name: str, kind: Any, about: Parameter, default: Any) -> click.Parameter:
    required = default is inspect.Parameter.empty
    many, of = _one_of(kind)
    is_flag = of is bool
    common: dict[str, Any] = {
        "type": None if is_flag else _type(of, about),
        "required": required,
        "metavar": about.metavar,
        "callback": about.callback,
        "is_eager": about.is_eager,
    }
    if not required and default is not None:
        common["default"] = default
    if not about.named:
        argument = DescribedArgument([name], nargs=-1 if many else 1, **common)
        argument.description = name, _described(about, default)
        return argument
    dashed = name.replace("_", "-")
    plain = (f"--{dashed}/--no-{dashed}",) if is_flag else (f"--{dashed}",)
    option = PanelOption(
        [*(about.flags or plain), name],
        help=about.help, show_default=default != "" and about.show_default, multiple=many,
        **common, **({"is_flag": True} if is_flag else {}),
    )  # fmt: skip
    option.panel = about.panel
    return option


def _described(about: Parameter, default: Any) -> str:
    """The help of an argument, with its default."""
    shown = f"({about.show_default})" if isinstance(about.show_default, str) else None
    if shown is None and about.show_default and default is not inspect.Parameter.empty:
        shown = None if default is None else str(default)
    more = "" if shown is None else f"  [default: {shown}]"
    required = "  [required]" if default is inspect.Parameter.empty else ""
    return f"{about.help or ''}{more}{required}"


def _one_of(kind: Any) -> tuple[bool, Any]:
    """Whether a type is of many values, and the type of one."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (k for k in get_args(kind) if k is not types.NoneType)
    return (True, *get_args(kind)) if get_origin(kind) is list else (False, kind)


def _type(kind: Any, about: Parameter) -> click.ParamType[Any]:
    if get_origin(kind) is Literal:
        choices: Sequence[str] = get_args(kind)
        return click.Choice(choices)
    if kind is Path:
        return click.Path(path_type=Path)
    bounded = about.min is not None or about.max is not None
    if kind is int:
        low, high = (None if x is None else int(x) for x in (about.min, about.max))
        return click.IntRange(low, high) if bounded else click.INT
    if kind is float:
        return click.FloatRange(about.min, about.max) if bounded else click.FLOAT
    if kind is str:
        return click.STRING
    raise TypeError(f"no option is of the type {kind!r}")
