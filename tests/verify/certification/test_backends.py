"""Backends against the reference, and in ulps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops.elementwise import cos, exp, sin, zmul
from retrograd.verify.certification import backends
from retrograd.verify.certification.subject import of_op
from retrograd.verify.rule_checks import placeholders
from tests.verify.certification.planted import planted

X = np.array([0.3, 1.7])


def test_nothing_is_compared_with_itself() -> None:
    subject = of_op(sin, [X], [0], placeholders([X]))
    assert backends.agreement(subject, 0, ("reference",)).status == "does not apply"


def test_a_backend_that_differs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = of_op(sin, [X], [0], placeholders([X]))

    def wrong(graph: Any, backend: str) -> Any:
        return lambda arrays: [y + 1e-9 for y in subject.run(graph, arrays)]

    monkeypatch.setattr(backends, "compile_graph", wrong)
    found = backends.agreement(subject, 0, ("llvm",))
    assert found.status == "failed"
    assert "on llvm is 1e-09 from the reference's" in found.detail


def test_ulps_of_value_and_slope() -> None:
    mp = pytest.importorskip("mpmath").mp
    columns = backends.whole_range("sin", 1)
    assert np.min(np.abs(columns[0])) < 1e-9 < 1e9 < np.max(np.abs(columns[0]))
    worst = backends.over_range(exp, mp.exp, 0, columns, ("reference",))["reference"]
    assert max(worst) < 2
    coarse = planted("coarse", np.sin, lambda g, y, x: zmul(g, cos(x)) * (1 + 1e-13))
    value, slope = backends.over_range(coarse, mp.sin, 0, columns, ("reference",))["reference"]
    assert value < 2 < 300 < slope < 2000


def test_differences_are_relative_to_the_largest_element() -> None:
    assert backends.apart(np.array([np.inf, np.nan]), np.array([np.inf, np.nan])) == 0
    assert backends.apart(np.array([np.nan]), np.array([1.0])) == np.inf
    assert backends.apart(np.array([100.0, 1.0]), np.array([100.0, 2.0])) == 0.01
    assert backends.apart(np.zeros(2), np.zeros(3)) == np.inf
