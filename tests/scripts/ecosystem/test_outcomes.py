"""Counts of other packages' tests: the same cases for both, and a cause of each failure."""

from __future__ import annotations

import re

import pytest

from scripts.ecosystem import outcomes, page

PEERS = ("retrograd", "torch")


def found(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    return {
        "retrograd": {"outcomes": {f"t.py::f[retrograd-{k}]": v for k, v in ours.items()}},
        "torch": {"outcomes": {f"t.py::f[torch-{k}]": v for k, v in theirs.items()}},
    }


def test_a_case_is_common_where_both_ran() -> None:
    ours = {"a": "passed", "b": "failed", "c": "passed", "d": "skipped", "e": "lost", "x": "failed"}
    theirs = {
        "a": "passed", "b": "passed", "c": "skipped", "d": "passed", "e": "passed", "x": "skipped",
    }  # fmt: skip
    one = outcomes.compared("scipy.special", found(ours, theirs), PEERS)
    assert one.common == 3
    assert one.passed == {"retrograd": 1, "torch": 3}
    assert one.failed["retrograd"] == ["t.py::f[xp-b]", "t.py::f[xp-e]"]
    assert one.passed_beyond == {"retrograd": 1, "torch": 1}
    assert one.failed_beyond == {"retrograd": ["t.py::f[xp-x]"], "torch": []}


def test_names_of_a_case_with_both_namespaces_are_one() -> None:
    for ours, theirs in (
        ("t.py::f[retrograd-float64]", "t.py::f[torch-float64]"),
        ("t.py::f[a-retrograd-None-float32]", "t.py::f[a-torch-cpu-float32]"),
    ):
        assert outcomes.case_of(ours) == outcomes.case_of(theirs)
        assert outcomes.is_sampled(ours, 7) == outcomes.is_sampled(theirs, 7)
    share = sum(outcomes.is_sampled(f"t.py::f[{i}]", 5) for i in range(2000))
    assert 300 < share < 500


def test_a_failure_that_nobody_looked_at_has_no_cause() -> None:
    with pytest.raises(LookupError, match="no cause"):
        outcomes.cause_of("scipy.special", "test_basic.py::test_that_is_not_there[xp]")


def test_patterns_of_causes_are_needed_and_told() -> None:
    """Each names a test that the page shows as failing."""
    text = page.PAGE.read_text(encoding="utf-8")
    for key, cause in outcomes.causes().items():
        assert cause["title"]
        assert cause["text"].strip(), key
        for suite, pattern in cause["cases"].items():
            lines = [x for x in text.splitlines() if x.startswith(f"- `{suite}`: ")]
            names = [n for line in lines for n in re.findall(r"`([^`]+::[^`]+)`", line)]
            assert any(re.search(pattern.partition(r"\[")[0], n) for n in names), (key, suite)


def test_the_page_adds_up() -> None:
    """Failures by cause are as many as the table says, beyond common cases included."""
    text = page.PAGE.read_text(encoding="utf-8")
    failed = 0
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [c.strip().replace(",", "") for c in line.strip("|").split("|")]
            beyond, of = cells[4].split(" of ")
            failed += int(cells[1 + 0]) - int(cells[2]) + int(of) - int(beyond)
    listed = sum(int(n.replace(",", "")) for n in re.findall(r"^### .*: ([\d,]+)$", text, re.M))
    assert failed == listed > 0
    each = sum(int(n) for n in re.findall(r"`[^`]+::[^`]+` (\d+)", text))
    assert each == listed
