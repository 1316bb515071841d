"""Rewritten expressions have the same value in exact arithmetic, and fewer errors in float32."""

import mpmath
import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.verify.rounding_error import exact
from retrograd.verify.rounding_error.rewrites import REWRITES, number, same, terms
from retrograd.verify.rounding_error.straight_line import straight_line
from retrograd.verify.rounding_error.suggestions import replaced
from tests.sampling import sampled

F = np.float32
# The formula of a rule, a program that it is for, and inputs where this loses digits.
EXAMPLES = [
    ("log(1 + x) -> log1p(x)", lambda x: rg.log(1 + x), (1e-6,)),
    ("exp(x) - 1 -> expm1(x)", lambda x: rg.exp(x) - 1, (1e-6,)),
    ("log(sum(exp(x))) -> logsumexp(x)", lambda x: rg.log(rg.exp(x).sum()), ([100.0, 99.0],)),
    (
        "log(exp(a) + exp(b)) -> logaddexp(a, b)",
        lambda a, b: rg.log(rg.exp(a) + rg.exp(b)),
        (100.0, 98.0),
    ),
    ("log(exp(a) + exp(b)) -> logaddexp(a, b)", lambda a: rg.log(1 + rg.exp(a)), (100.0,)),
    (
        "log(exp(x) / sum(exp(x))) -> x - logsumexp(x)",
        lambda x: rg.log(rg.softmax(x)),
        ([0.0, 200.0],),
    ),
    ("exp(x) / sum(exp(x)) -> softmax(x)", lambda x: rg.exp(x) / rg.exp(x).sum(), ([90.0, 91.0],)),
    ("log(sigmoid(x)) -> -softplus(-x)", lambda x: rg.log(rg.sigmoid(x)), (12.0,)),
    ("1 / (1 + exp(-x)) -> sigmoid(x)", lambda x: rg.exp(x) / (1 + rg.exp(x)), (95.0,)),
    ("1 / (1 + exp(-x)) -> sigmoid(x)", lambda x: 1 / (1 + rg.exp(-x)), (-89.0,)),
    ("1 - sigmoid(x) -> sigmoid(-x)", lambda x: 1 - rg.sigmoid(x), (14.0,)),
    ("1 - erf(x) -> erfc(x)", lambda x: 1 - rg.erf(x), (3.5,)),
    ("1 - tanh(x)^2 -> 1 / cosh(x)^2", lambda x: 1 - rg.tanh(x) ** 2, (7.0,)),
    (
        "log(a) - log(b) -> log1p((a - b) / b)",
        lambda a, b: rg.log(a) - rg.log(b),
        (1000.0, 1000.01),
    ),
    ("(1 + x)^n -> exp(n log1p(x))", lambda x: (1 + x) ** 1e6, (1e-7,)),
    ("log(prod(x)) -> sum(log(x))", lambda x: rg.log(rg.prod(x)), ([1e-20, 1e-30, 2.0],)),
    (
        "log(det(x)) -> log(abs(det(x))) by its factors",
        lambda a: rg.log(rg.linalg.det(a)),
        ([[1e-30, 0.0], [1e-31, 1e-20]],),
    ),
    ("(exp(x) - exp(-x)) / 2 -> sinh(x)", lambda x: (rg.exp(x) - rg.exp(-x)) / 2, (1e-5,)),
    ("sqrt(x^2 + y^2) -> hypot(x, y)", lambda x, y: rg.sqrt(x * x + y * y), (1e30, 1e25)),
    ("sqrt(x^2 + y^2) -> hypot(x, y)", lambda x: rg.sqrt(1 + x * x), (1e30,)),
    ("x^2 - y^2 -> (x - y) (x + y)", lambda x, y: x * x - y * y, (1000.1, 1000.2)),
    ("x^2 - y^2 -> (x - y) (x + y)", lambda x: 1 - x * x, (0.9999991,)),
    (
        "sqrt(a) - sqrt(b) -> (a - b) / (sqrt(a) + sqrt(b))",
        lambda x: rg.sqrt(x + 1) - rg.sqrt(x),
        (1e6,),
    ),
    (
        "sqrt(a^2 - c) - a -> -c / (sqrt(a^2 - c) + a)",
        lambda b, c: rg.sqrt(b * b - c) - b,
        (1e4, 1.0),
    ),
    (
        "-b + sqrt(b^2 - c) -> -c / (b + sqrt(b^2 - c)), by the sign of b",
        lambda a, b, c: (-b + rg.sqrt(b * b - 4 * a * c)) / (2 * a),
        (1.0, 1e3, 1.0),
    ),
    ("a / b - a / d -> a (d - b) / (b d)", lambda x: 1 / x - 1 / (x + 1), (1e5,)),
    ("1 - cos(x) -> 2 sin(x / 2)^2", lambda x: 1 - rg.cos(x), (1e-3,)),
    ("1 - cos(x) -> 2 sin(x / 2)^2", lambda x: rg.cos(x) - 1, (1e-3,)),
    ("cosh(x) - 1 -> 2 sinh(x / 2)^2", lambda x: rg.cosh(x) - 1, (1e-3,)),
    (
        "sin(a) - sin(b) -> 2 cos((a + b) / 2) sin((a - b) / 2)",
        lambda x, h: rg.sin(x + h) - rg.sin(x),
        (1.0, 1e-5),
    ),
    (
        "cos(a) - cos(b) -> -2 sin((a + b) / 2) sin((a - b) / 2)",
        lambda x, h: rg.cos(x + h) - rg.cos(x),
        (1.0, 1e-5),
    ),
    (
        "atan(a) - atan(b) -> atan2(a - b, 1 + a b)",
        lambda a, b: rg.atan(a) - rg.atan(b),
        (100.0, 100.1),
    ),
    ("sin(x) / x -> sinc(x / pi)", lambda x: rg.sin(x) / x, (0.0,)),
    (
        "mean(x^2) - mean(x)^2 -> mean((x - mean(x))^2)",
        lambda x: (x * x).mean() - x.mean() ** 2,
        ([1000.1, 1000.2, 1000.4],),
    ),
    ("x^2 - 2 x y + y^2 -> (x - y)^2", lambda x, y: x * x - 2 * x * y + y * y, (1000.1, 1000.2)),
    (
        "inv(a) @ b -> solve(a, b)",
        lambda a, b: rg.linalg.inv(a) @ b,
        ([[1.0, 1.0], [1.0, 1.0001]], [1.0, 2.0]),
    ),
]
PROVED_BY_LIMIT = "sin(x) / x -> sinc(x / pi)"  # at 0, where the program is not defined


def rewritten(graph, formula):
    """The graph with the first node replaced that a rule is for."""
    for rule in REWRITES:
        if rule.formula != formula:
            continue
        for node in reversed(graph.body):
            new = rule.apply(node)
            if new is not None:
                return replaced(graph, {node: new})
    raise AssertionError(f"no node for {formula}")


def test_every_rule_has_an_example():
    assert {r.formula for r in REWRITES} == {formula for formula, _, _ in EXAMPLES}
    assert len({r.formula for r in REWRITES}) >= 28


@pytest.mark.parametrize("k", sampled(range(len(EXAMPLES)), 3), ids=lambda k: EXAMPLES[k][0][:24])
def test_the_value_is_the_same_and_the_error_smaller(k):
    formula, f, inputs = EXAMPLES[k]
    arrays = [np.array(x, F) for x in inputs]
    graph = rg.trace(f, *arrays)
    other = rewritten(graph, formula)
    other.check()
    before, after = (straight_line(Graph(g.inputs, g.outputs), arrays) for g in (graph, other))
    with mpmath.workdps(60):
        (truth,) = exact.in_mpmath(before, 60)
        (again,) = exact.in_mpmath(after, 60)
        if formula == PROVED_BY_LIMIT:
            assert after.values[after.graph.outputs[0]] == 1
            return
        # Constants such as pi / 2 or a tenth are what they are in float32: the same in both.
        size = float(np.max(abs(truth)))
        assert float(np.max(abs(again - truth))) <= 1e-30 * size
    errors = [
        float(np.max(exact.difference(run.values[run.graph.outputs[0]], truth)))
        for run in (before, after)
    ]
    assert errors[1] < errors[0] or formula.startswith(("inv", "log(det")), errors
    assert errors[1] <= 2e-6 * size or formula.startswith("inv")


def test_other_programs_are_left_alone():
    def f(x, y):
        return (
            rg.log(2 + x) * (rg.exp(x) - 2) + (x * x + y * y) - rg.cos(x) * rg.sqrt(x + y) + x / y
        )

    graph = rg.trace(f, F(1), F(2))
    assert [r.name for r in REWRITES for n in graph.body if r.apply(n) is not None] == []


def test_what_rules_see():
    graph = rg.trace(
        lambda x: (x - (2 - x) + 1.5, rg.sin(x) * 2, rg.sin(x) * 2, x * 2), np.array([1, 2], F)
    )
    first, a, b, c = graph.outputs
    assert [(s, number(t)) for s, t in terms(first)] == [(1, None), (-1, 2.0), (1, None), (1, 1.5)]
    assert same(a, b)
    assert not same(a, c)
