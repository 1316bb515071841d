"""docs/backends.md is what the backends say of themselves."""

from __future__ import annotations

from retrograd.ir import float32
from scripts import backends


def test_page_is_up_to_date() -> None:
    assert backends.PAGE.read_text(encoding="utf-8") == backends.page(), "run: make docs"


def test_a_cell_says_what_a_backend_says() -> None:
    assert backends.cell("exp", lambda op, dtype: "native") == "all"
    assert backends.cell("exp", lambda op, dtype: "") == "-"
    half = backends.cell("exp", lambda op, dtype: "native" if dtype is float32 else "host")
    assert half.startswith("float32; ")
    assert half.endswith("complex\\*")
