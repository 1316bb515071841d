"""The mathematics of nodes: templates that give the right numbers when numbers are put in."""

import math
import re

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import spec
from retrograd.viz import document
from retrograd.viz.mathematics.rules import rule_of

FUNCTIONS = {
    "mul": lambda a, b: a * b,
    "sub": lambda a, b: a - b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "exp": lambda a, b: rg.exp(a),
    "log": lambda a, b: rg.log(a),
    "tanh": lambda a, b: rg.tanh(a),
    "sqrt": lambda a, b: rg.sqrt(a),
    "sigmoid": lambda a, b: rg.sigmoid(a),
    "relu": lambda a, b: rg.relu(a),
    "sin": lambda a, b: rg.sin(a),
}
WORDS = {
    "where": lambda c, x, y: x if c else y, "exp": math.exp, "log": math.log, "tanh": math.tanh,
    "sqrt": math.sqrt, "sin": math.sin, "cosh": math.cosh, "cos": math.cos,
    "relu": lambda x: max(x, 0.0), "sech2": lambda x: 1 / math.cosh(x) ** 2,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "sign": np.sign, "abs": abs,
}  # fmt: skip


def evaluated(template, values):
    text = re.sub(r"‹(\w+)›", lambda m: f"({values[m[1]]!r})", template).replace("^", "**")
    return eval(text.replace(" = ", " == "), {"__builtins__": {}}, WORDS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_templates_compute_the_gradient(name):
    graph = rg.trace(FUNCTIONS[name], spec((), rg.float64), spec((), rg.float64))
    (node,) = graph.outputs
    forward, back = rule_of(node)
    a, b = 1.3, 0.7
    values = dict(zip("01", (a, b), strict=False)) | {"g": 2.5}
    values["y"] = y = evaluated(forward, values)
    assert y == pytest.approx(graph(a, b).item())
    h = 1e-6
    for k, template in enumerate(back):
        nudged = [evaluated(forward, values | {str(k): values[str(k)] + d}) for d in (h, -h)]
        expected = 2.5 * (nudged[0] - nudged[1]) / (2 * h)
        assert evaluated(template, values) == pytest.approx(expected, rel=1e-7)


def test_long_rules_are_told_in_short():
    graph = rg.trace(lambda x: rg.linalg.svd(x)[1], spec((3, 3), rg.float64))
    doc = document(graph)
    assert all(len(t or "") < 2000 for r in doc["rules"] for t in (r["forward"], *r["back"]))


def test_nodes_that_compute_the_same_share_a_rule():
    graph = rg.trace(lambda a, b: (a * b) * (b * a), spec(()), spec(()))
    doc = document(graph)
    assert doc["rules"] == [{"forward": "‹0› * ‹1›", "back": ["‹g› * ‹1›", "‹g› * ‹0›"]}]
    assert [r["rule"] for r in doc["nodes"]] == [None, None, 0, 0, 0]


def test_what_has_no_gradient_gets_none():
    graph = rg.trace(lambda a: rg.stop_gradient(a) > 1, spec(()))
    doc = document(graph)
    assert all(t is None for r in doc["rules"] for t in r["back"])
