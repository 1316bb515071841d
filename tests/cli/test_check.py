"""`retrograd check`: saved graphs and functions."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import retrograd as rg
from retrograd.cli.main import app
from retrograd.verify import Certificate, Certificates, Evidence, checker

MODULE = """
import retrograd as rg

def good():
    return {"y": rg.exp(rg.ones(3)), "n": 3}

def bad():
    x = rg.zeros(3)
    return [1 / x]

def needs(x):
    return x

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
        ("checked_module:needs", "called without arguments, but it takes some"),
        ("math:sin", "called without arguments, but it takes some"),
    ],
)
def test_misuse_is_a_usage_error(here, target, part):
    code, text = run(target)
    assert code == 2
    assert part in " ".join(text.split())


def test_rules(tmp_path, monkeypatch):
    code, text = run("--rules", "cumsum", "--order", 1, "--json", tmp_path / "found.json")
    assert code == 0, text
    assert "cumsum" in text
    assert "1 of 1 certified" in text
    assert json.loads((tmp_path / "found.json").read_text())[0]["passed"]
    code, text = run("--rules", "cumsun")
    assert code == 1
    assert "did you mean cumsum" in text
    assert run()[0] == 2
    wrong = Certificate("f", "x", (Evidence("differences", "failed", 1, 1.0, "2, not 1"),))
    monkeypatch.setattr(rg.verify, "rules", lambda ops, order: Certificates([wrong]))
    code, text = run("--rules")
    assert code == 1
    assert "f by x: differences: 2, not 1" in text


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


def test_a_proof_is_done_again(tmp_path):
    """That 2 x is not above 2 for x between 0 and 1: unsafe is 3 - y <= 0."""
    step = {
        "kind": "affine", "dtype": "float32", "bias": [(0.0).hex()],
        "terms": [{"from": 0, "rows": [[[0], [(2.0).hex()]]]}],
    }  # fmt: skip
    unsafe = {"coefficients": [(-1.0).hex()], "constant": (3.0).hex(), "strict": False}
    claim = [
        {"inputs": 1, "steps": [step]},
        [{"lower": [(0.0).hex()], "upper": [(1.0).hex()]}],
        [{"region": 0, "unsafe": [unsafe]}],
    ]
    leaf = {
        "weights": [(1.0).hex()], "slopes": [], "betas": [], "coefficients": [(-2.0).hex()],
        "bias": (2.5).hex(),
    }  # fmt: skip
    document = {
        "format": "retrograd-certificate", "version": 1, "network": claim[0], "regions": claim[1],
        "cases": claim[2], "claim": checker.digest(claim), "bounds": [[]],
        "trees": [[{"leaf": leaf}]],
    }  # fmt: skip
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    code, text = run(path)
    assert code == 0
    assert "proved: 1 unsafe sets in 1 regions" in text
    leaf["bias"] = (3.5).hex()
    path.write_text(json.dumps(document), encoding="utf-8")
    code, text = run(path)
    assert code == 1
    assert "not a lower bound" in " ".join(text.split())
