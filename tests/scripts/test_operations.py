"""docs/operations.md is what the operations say of themselves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ir import DTYPES, REGISTRY, Node, TensorType, float64
from retrograd.ops.elementwise import Elementwise, exp, keep_if, pow, zdiv, zmul
from retrograd.ops.leaf import input_node
from retrograd.viz.mathematics.formula import formula
from scripts import capabilities, entries, operations


def test_page_is_up_to_date() -> None:
    assert operations.PAGE.read_text(encoding="utf-8") == operations.page(), "run: make docs"


def test_every_operation_is_listed_once() -> None:
    listed = [n for _, modules, _ in operations.ROOMS for n in operations.declared_in(modules)]
    assert sorted(listed) == sorted(REGISTRY)


@pytest.mark.slow
def test_rows_of_tables_have_as_many_cells_as_columns() -> None:
    columns = 0
    for line in operations.page().split("\n"):
        bars = line.replace("\\|", "").count("|")
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert bars == columns, line
        else:
            columns = bars


def test_an_operation_that_lacks_something_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole that nobody has declared is an error, not a cell."""
    assert capabilities.row("add") == ("+",) * len(capabilities.CAPABILITIES)
    assert capabilities.row("argsort")[:2] == ("n", "n")
    monkeypatch.delitem(capabilities.WRITTEN, "gather")
    with pytest.raises(LookupError, match="gather has no ONNX"):
        capabilities.row("gather")
    monkeypatch.delitem(capabilities.complex_math.FUNCTIONS, "exp")
    with pytest.raises(LookupError, match="exp has no complex"):
        capabilities.row("exp")


def test_nothing_is_said_of_operations_that_are_gone() -> None:
    said = {*entries.PUBLIC, *entries.MATHEMATICS, *entries.GRADIENTS, *entries.USES}
    assert said <= set(REGISTRY)


def test_a_gradient_is_read_off_the_rule() -> None:
    planted = Elementwise("planted", np.sin, (lambda g, y, x: zmul(g, exp(x) - y),), ("float",))
    type = TensorType(float64, ())
    assert operations.gradient(planted, {"x": type}) == "`g * (exp(x) - y)`"


def test_dtypes_in_words() -> None:
    assert operations.in_words(DTYPES) == "all"
    assert operations.in_words([d for d in DTYPES if not d.is_complex]) == "bool, number"
    assert operations.in_words([float64]) == "float64"


def test_formulas_keep_the_order_of_operations() -> None:
    a, b = (input_node(TensorType(float64, ()), n) for n in "ab")
    names: dict[Node, str] = {a: "a", b: "b"}
    for node, text in (
        (a - (b - a), "a - (b - a)"),
        (a - b - a, "a - b - a"),
        (a * (a + b), "a * (a + b)"),
        (zdiv(a, a * b), "a / (a * b)"),
        (zmul(a, zdiv(a, b)), "a * a / b"),
        (a * -b, "a * (-b)"),
        (-(a + b), "-(a + b)"),
        (-(a * b), "-a * b"),
        (-2 * a, "-2 * a"),
        (a * -2, "a * (-2)"),
        (exp(-(a * a)), "exp(-a^2)"),
        (exp(-a) * exp(-a), "exp(-a)^2"),
        (pow(a + b, b - 1), "(a + b)^(b - 1)"),
        (pow(pow(a, b), b), "(a^b)^b"),
        (keep_if(a > -2, a), "where(a > -2, a, 0)"),
        (keep_if(a > 0, a), "where(a > 0, a, 0)"),
    ):
        assert formula(node, names) == text
