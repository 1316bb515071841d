"""The README is true: its programs run in order and give what they say, its links lead on."""

from __future__ import annotations

import ast
import re
import webbrowser
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


def run(program: str, names: dict[str, Any]) -> int:
    """Run a program; what a line says its value is, in a comment that begins like one, holds.
    How many said so."""
    lines = program.splitlines()
    checked = 0
    for statement in ast.parse(program).body:
        text = ast.get_source_segment(program, statement) or ""
        if not isinstance(statement, ast.Expr):
            exec(text, names)
            continue
        value = eval(text, names)
        _, _, said = lines[statement.end_lineno - 1].partition("  # ")  # type: ignore[operator]
        if re.match(r"[\d(\[-]|Tensor\(", said):
            assert str(value).startswith(said.removesuffix("...")), text
            checked += 1
    return checked


def test_the_programs_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url))
    names: dict[str, Any] = {}
    with rg.backend("reference"):  # the same numbers, without compiling
        assert sum(run(program, names) for program in PROGRAMS[:2]) >= 5
    assert len(opened) == 2
    for url in opened:
        page = Path(url.removeprefix("file://"))
        assert page.stat().st_size > 10_000
    assert isinstance(names["d"], rg.Graph)
    assert rg.Graph.parse(str(names["d"])) == names["d"]


@pytest.mark.slow
def test_all_programs_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: None)
    names: dict[str, Any] = {}
    for program in PROGRAMS:
        run(program, names)
    model, x, y = names["run"].model, names["x"], names["y"]
    right = model(rg.tensor(x.astype("float32") / 16)).argmax(axis=1) == rg.tensor(y)
    assert right.mean() > 0.95


def test_a_wrong_value_is_found() -> None:
    with pytest.raises(AssertionError):
        run("x = 2\nx  # 3", {})
    assert run("x = 2\nx  # two\nx * 2  # 4", {}) == 1


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_order_and_the_commands() -> None:
    headings = re.findall(r"^## (.*)$", TEXT, re.M)
    assert headings == [
        "Two commands", "A gradient in four styles", "Looking at the backward pass",
        "Performance", "Training", "Where to go next",
    ]  # fmt: skip
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\w+)", TEXT, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
    assert max(map(len, TEXT.splitlines())) < 400
