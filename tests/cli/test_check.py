"""`retrograd check`: saved graphs and functions."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import retrograd as rg
from retrograd.cli.main import app

MODULE = """
import retrograd as rg

def good():
    return {"y": rg.exp(rg.ones(3)), "n": 3}

def bad():
    x = rg.zeros(3)
    return [1 / x]

number = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "checked_module.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args):
    result = CliRunner().invoke(app, ["check", *map(str, args)])
    return result.exit_code, result.output


def test_functions(here):
    assert run("checked_module:good") == (0, "checked_module:good: every value is finite\n")
    code, text = run("checked_module:bad")
    assert code == 1
    assert "div gives inf in 3 of 3" in text
    assert "return [1 / x]" in text
    assert "division by zero" in text


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("checked_module:none", "no function 'none'"),
        ("checked_module:number", "no function 'number'"),
        ("no_such_module:f", "No module named"),
    ],
)
def test_misuse_is_a_usage_error(here, target, part):
    code, text = run(target)
    assert code == 2
    assert part in " ".join(text.split())


def test_graphs(here):
    rg.trace(lambda x: rg.softmax(x).sum(), rg.spec((3,))).save(here / "g.graph")
    code, text = run(here / "g.graph")
    assert code == 0
    assert "1 input, 1 output, " in text
    assert "types and structure are right" in text
    assert "its gradient has" in text
    rg.trace(lambda x: x > 0, rg.spec((3,))).save(here / "h.graph")
    assert "no gradient" in run(here / "h.graph")[1]
    Path("damaged.graph").write_text("graph (", encoding="utf-8")
    assert run("damaged.graph")[0] == 1
    code, text = run("missing.graph")
    assert code == 1
    assert "no such file" in text
