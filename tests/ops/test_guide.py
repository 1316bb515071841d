"""The code of docs/adding-an-op.md: it runs, and the ops it adds pass every generic test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrograd.ir import REGISTRY
from retrograd.ops.elementwise import ELEMENTWISE
from tests import sampling
from tests.ops import test_records
from tests.samples import RECORDS

GUIDE = Path(__file__).parents[2] / "docs" / "adding-an-op.md"


@pytest.fixture
def guide() -> Iterator[dict[str, Any]]:
    """What the page defines; its ops are forgotten afterwards."""
    tables: list[dict[str, Any]] = [REGISTRY, ELEMENTWISE, RECORDS]
    before = [dict(table) for table in tables]
    names: dict[str, Any] = {"__name__": "guide"}
    try:
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
            exec(compile(block, str(GUIDE), "exec", dont_inherit=True), names)
        yield names
    finally:
        for table, old in zip(tables, before, strict=True):
            table.clear()
            table.update(old)


def test_the_guide(guide: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "is_sampling", False)
    for name, record in (("square", guide["SQUARE"]), ("roll", guide["ROLL"])):
        RECORDS[name] = record
        test_records.test_every_op_is_complete(name)
        test_records.test_value_and_type(name)
        test_records.check_reverse_rule(name, 1)
        test_records.check_reverse_rule(name, 2)
        test_records.test_forward_rule(name)
        test_records.test_batching_rule(name)
        test_records.test_symbolic_sizes(name)
        test_records.test_refuses(name)
        test_records.test_rules_keep_the_dtype(name)
    test_records.test_every_op_has_a_record()


def test_the_guide_leaves_nothing_behind() -> None:
    assert "roll" not in REGISTRY
    assert "square" not in ELEMENTWISE
