"""Formulas give the right numbers when they are read as Python, and need no more parentheses."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, Node, TensorType, float64, spec
from retrograd.ops.elementwise import pow
from retrograd.ops.leaf import constant, input_node
from retrograd.verify.rule_checks import run
from retrograd.viz.mathematics.formula import formula, terms

A, B, C = (input_node(TensorType(float64, ()), name) for name in "abc")
NAMES = {A: "a", B: "b", C: "c"}
VALUES = {"a": 2.0, "b": 3.0, "c": 5.0}


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (A + B * C, "a + b * c"), ((A + B) * C, "(a + b) * c"), (A - (B - C), "a - (b - c)"),
        (A - B - C, "a - b - c"), (A / (B * C), "a / (b * c)"), (A * A, "a^2"),
        ((A + B) * (A + B), "(a + b)^2"), (-A * B, "-a * b"), (A * -B, "a * (-b)"),
        (-(A + B), "-(a + b)"), (A - -B, "a - (-b)"), (pow(A, B), "a^b"), (pow(-A, B), "(-a)^b"),
        (pow(pow(A, B), C), "(a^b)^c"),
    ],
)  # fmt: skip
def test_operators(node: Node, text: str) -> None:
    assert formula(node, NAMES) == text
    (value,) = run(Graph([A, B, C], [node]), [np.array(v) for v in VALUES.values()])
    read = eval(text.replace("^", "**"), {"__builtins__": {}}, VALUES)
    assert value == pytest.approx(read)


def test_functions_constants_and_choices():
    y = rg.trace(lambda a: rg.where(a > 0, rg.exp(a) * 2.5, -1.0), spec(())).outputs[0]
    assert formula(y, {y.inputs[0].inputs[0]: "x"}) == "where(x > 0, exp(x) * 2.5, -1)"
    for value, text in (
        (math.log(2), "log(2)"), (2 / math.sqrt(math.pi), "2 / sqrt(pi)"), (math.nan, "NaN"),
        (3.0, "3"), ([1.0, 2.0], "constant"),
    ):  # fmt: skip
        assert formula(constant(value), {}) == text
    assert formula(A * constant(2 / math.sqrt(math.pi)), NAMES) == "a * (2 / sqrt(pi))"
    assert formula(A - constant(-2.0), NAMES) == "a - (-2)"


def test_names_cut_a_formula_short():
    inner = A * B
    assert formula(inner + C, {**NAMES, inner: "h"}) == "h + c"
    assert terms(inner + C, NAMES) == 2
    assert terms(inner + C, {**NAMES, inner: "h"}) == 1


def test_what_is_used_twice_is_counted_twice():
    """Without building the formula, which would be exponentially long."""
    y = A
    for _ in range(100):
        y = y + y
    assert terms(y, NAMES) == 2**100 - 1


def test_plain_names_and_signs():
    def written(f, *types):
        y = rg.trace(f, *types).outputs[0]
        return formula(y, dict(zip(y.inputs, "ab", strict=False)), plain=True)

    matrix, stack, vector = spec((3, 3)), spec((2, 3, 3)), spec((3,))
    assert written(lambda a, b: a @ b, matrix, matrix) == "a · b"
    assert written(lambda a, b: a @ b, stack, matrix) == "a · b"
    assert written(lambda a, b: a @ b, stack, stack) == "a · b"
    assert written(lambda a, b: a @ b, matrix, vector) == "a · b"
    assert written(lambda a: a.sum(), matrix) == "sum(a)"
    assert written(lambda a: a.mT, matrix) == "transpose(a)"
    assert written(lambda a, b: rg.tensordot(a, b, ([0], [0])), matrix, matrix) == "a^T · b"
    assert written(lambda a, b: rg.tensordot(a, b, ([1], [1])), matrix, matrix) == "a · b^T"
    both = written(lambda a, b: rg.tensordot(a, b, ([0, 1], [0, 1])), matrix, matrix)
    assert both.startswith("dot_general(")
    back = rg.trace(lambda a: rg.tanh(a), spec(())).gradient().outputs[0]
    slope = back if back.op == "sech2" else next(x for x in back.inputs if x.op == "sech2")
    assert formula(slope, {slope.inputs[0]: "a"}, plain=True) == "1 / cosh(a)^2"
    assert formula(slope, {slope.inputs[0]: "a"}) == "sech2(a)"
