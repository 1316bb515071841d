"""What several commands have: texts for a terminal, and whether an option was named."""

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from retrograd.cli.options import (
    Backend,
    Mesh,
    Processes,
    axes_of,
    board_of,
    command,
    computing,
    is_given,
    printable,
)
from retrograd.cli.signature import command as command_of


def test_what_moves_the_cursor_is_an_escape() -> None:
    assert printable("plain Ä 火") == "plain Ä 火"
    assert printable("a\nb\tc\x1b[2J") == r"a\nb\tc\x1b[2J"
    assert printable("\u2028 \x85 \ud800") == r"\u2028 \x85 \ud800"


def test_an_option_that_is_named_with_its_default_was_given() -> None:
    def show(ctx: click.Context, size: int = 3, backend: Backend = "llvm") -> None:
        click.echo(f"{is_given(ctx, 'size')} {is_given(ctx, 'backend')} {backend}")

    app = command_of(show)
    assert CliRunner().invoke(app, []).output == "False False llvm\n"
    given = CliRunner().invoke(app, ["--size", "3", "--backend", "reference"])
    assert given.output == "True True reference\n"
    wrong = CliRunner().invoke(app, ["--backend", "abacus"])
    assert wrong.exit_code == 2
    assert "there is no backend" in wrong.output


def test_the_program_is_named_by_its_path_where_the_shell_does_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "retrograd"), "info"])
    assert command() == "bin/retrograd"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert command() == "retrograd"


def test_there_is_no_dashboard_that_nobody_asked_for(tmp_path: Path) -> None:
    with board_of(False, tmp_path) as board:
        assert board is None
    assert list(tmp_path.iterdir()) == []


def test_a_mesh_is_a_list_of_axes_for_xla() -> None:
    assert axes_of("data=4, model=2") == {"data": 4, "model": 2}
    for wrong in ("data", "data=", "data=x", "data=2,data=4", "8", "data=-1", "data=2,"):
        with pytest.raises(click.BadParameter, match="such as data=4,model=2"):
            axes_of(wrong)

    def run(backend: Backend = "llvm", mesh: Mesh = None, processes: Processes = None) -> None:
        with computing(backend, mesh, processes):
            click.echo("computed")

    app = command_of(run)
    assert CliRunner().invoke(app, []).output == "computed\n"
    for given in (["--mesh", "data=8"], ["--processes", "auto"]):
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 2
        assert "--backend xla" in done.output
