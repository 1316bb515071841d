"""docs/certificates.md is what certificates say."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.verify.certification.conventions import conventions
from retrograd.verify.certification.ops import differentiable, rules
from retrograd.verify.records import RECORDS
from scripts import certificates

TEXT = certificates.PAGE.read_text(encoding="utf-8")
ROWS = {
    (cells[1].strip("` "), cells[2].strip()): line
    for line in TEXT.partition("## Derivatives at kinks")[0].splitlines()
    if line.startswith("| `") and len(cells := line.split("|")) == len(certificates.COLUMNS) + 4
}


def test_the_page_has_every_differentiable_argument() -> None:
    expected = {
        (name, f"input {i}")
        for name in differentiable()
        for i in set(RECORDS[name].wrt) - set(RECORDS[name].unchecked)
    }
    found = {(name, "input 0" if argument == "input" else argument) for name, argument in ROWS}
    assert found == expected
    assert "✗" not in "".join(ROWS.values())
    assert TEXT.startswith(certificates.INTRODUCTION)


def test_the_page_has_the_table_of_conventions() -> None:
    table = "\n".join(map(certificates.convention, conventions()))
    assert TEXT.endswith(f"{certificates.CONVENTIONS}{table}\n")


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="rows are those of long doubles")
@pytest.mark.parametrize("name", differentiable()[4::15])
def test_rows_are_true(name: str) -> None:
    pytest.importorskip("sympy")
    for c in rules(name):
        assert certificates.row(c) == ROWS[c.name, c.argument]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_page_is_what_would_be_written() -> None:
    assert certificates.page(rules()) == TEXT
