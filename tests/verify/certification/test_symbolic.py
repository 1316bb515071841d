"""Expressions of graphs, and derivatives by SymPy."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.ops.elementwise import ELEMENTWISE, exp, mul, sin
from retrograd.verify.certification import symbolic
from retrograd.verify.certification.subject import Subject, of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import RIGHT

X = np.array([0.3, 1.7])


def test_the_table_has_operations_that_there_are() -> None:
    assert set(symbolic.EXPRESSIONS) <= set(ELEMENTWISE)


def test_what_is_no_scalar_function_says_so() -> None:
    unknown = of_op(RIGHT, [X], [0], placeholders([X]))
    found = symbolic.evidence(unknown, 0, 2)
    assert (found.status, found.detail) == ("does not apply", "right has no expression")
    z = X + 1j
    assert "real" in symbolic.evidence(of_op(sin, [z], [0], placeholders([z])), 0, 1).detail


@pytest.mark.slow  # imports SymPy
def test_a_graph_is_one_expression() -> None:
    sp = pytest.importorskip("sympy")
    inputs = placeholders([X, X])
    a, b = inputs
    y = mul(exp(a), sin(b)) + a * 3.0
    subject = Subject("f", inputs, [y], [X, X], [0, 1], ["a", "b"])
    symbols = sp.symbols("a b", real=True)
    found = symbolic.expression(sp, subject, symbols)
    assert sp.simplify(found - (sp.exp(symbols[0]) * sp.sin(symbols[1]) + 3 * symbols[0])) == 0
    for i in (0, 1):
        e = symbolic.evidence(subject, i, 3)
        assert (e.status, e.count) == ("passed", 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gamma", "atan2", "betainc_dx", "i1e", "cbrt"])
def test_expressions_are_those_of_the_operations(name: str) -> None:
    """Their values, too: an expression of another function would accuse a rule that is right."""
    sp, mp = pytest.importorskip("sympy"), pytest.importorskip("mpmath").mp
    op = ELEMENTWISE[name]
    arrays = [np.full(1, 0.4 + 0.1 * k) for k in range(len(op.derivatives))]
    subject = of_op(op, arrays, [0], placeholders(arrays))
    symbols = [sp.Symbol(f"x{k}", real=True) for k in range(len(arrays))]
    y = symbolic.expression(sp, subject, symbols)
    with mp.workdps(30):
        value = symbolic._value(sp, mp, y, symbols, [mp.mpf(float(a[0])) for a in arrays])
    assert value == pytest.approx(float(op.reference(*arrays)[0]), rel=1e-13)
