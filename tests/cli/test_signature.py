"""A function as a command: what its annotated parameters read, their help, and what is refused."""

from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

from retrograd.cli.signature import Argument, Group, Option, command

SEEN: dict[str, Any] = {}


def measure(
    ctx: click.Context,
    files: Annotated[list[Path], Argument(help="What to read.")],
    count: Annotated[int | None, Option("-n", "--count", min=1, show_default="all")] = None,
    share: Annotated[float, Option(max=1.0, help="Of it.", panel="More")] = 0.5,
    how: Annotated[Literal["fast", "well"], Option(help="How.")] = "well",
    tag: Annotated[list[str] | None, Option(help="Names.")] = None,
    text: str = "",
    loud: Annotated[bool, Option("--loud", help="Say so.")] = False,
    bar_shown: bool = True,
) -> None:
    """Measure files, which are many and whose
    names are given.

    At length.
    """
    SEEN.clear()
    SEEN.update(locals())


def run(*args: str) -> Any:
    return CliRunner().invoke(command(measure), args)


def test_values_are_read_as_their_types_say() -> None:
    assert run("a", "b").exit_code == 0
    assert SEEN.pop("ctx").info_name == "measure"
    expected = {
        "files": [Path("a"), Path("b")], "count": None, "share": 0.5, "how": "well", "tag": [],
        "text": "", "loud": False, "bar_shown": True,
    }  # fmt: skip
    assert expected == SEEN
    given = run("a", "-n", "3", "--share=-1", "--how", "fast", "--tag", "x", "--tag", "y",
                "--text", "z", "--loud", "--no-bar-shown")  # fmt: skip
    assert given.exit_code == 0
    assert [SEEN[k] for k in ("count", "share", "how", "tag", "text", "loud", "bar_shown")] == [
        3, -1.0, "fast", ["x", "y"], "z", True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "args", ["", "a -n 0", "a -n x", "a --share 2", "a --how slow", "a --other"]
)
def test_what_no_parameter_takes_is_wrong_usage(args: str) -> None:
    found = run(*args.split())
    assert (found.exit_code, "Usage: measure" in found.stderr) == (2, True)
    assert "Error: " in found.stderr


def test_help_describes_arguments_options_and_defaults() -> None:
    found = run("-h").output
    assert "FILES...  What to read.  [required]" in found
    assert "-n, --count INTEGER RANGE" in found
    assert "[default: (all); x>=1]" in found
    assert "--bar-shown / --no-bar-shown" in found
    assert found.index("Arguments:") < found.index("Options:") < found.index("\nMore:\n")
    assert found.index("\nMore:\n") < found.index("--share")
    assert "TEXT  [default" not in found


def test_a_group_lists_commands_in_order_with_their_first_paragraphs() -> None:
    group = Group(commands=[command(measure, "z"), command(measure, "a")])
    lines = CliRunner().invoke(group, ["--help"]).output.splitlines()
    start = lines.index("Commands:")
    assert lines[start + 1] == "  z  Measure files, which are many and whose names are given."
    assert lines[start + 2].startswith("  a  ")


def test_a_type_that_no_option_has_is_refused_when_the_command_is_made() -> None:
    def wrong(x: complex = 0j) -> None: ...

    with pytest.raises(TypeError, match="no option is of the type"):
        command(wrong)
