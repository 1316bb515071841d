"""Weights of edges in files."""

from pathlib import Path

import pytest

from retrograd.errors import FormatError
from retrograd.train.graph.weights import check_weight

PATH = Path("edges.csv")


def test_a_weight_is_a_number_from_0_on() -> None:
    assert [check_weight(text, PATH, 1) for text in ("0", " 2.5", "1e-3")] == [0.0, 2.5, 0.001]
    assert check_weight("3.4e38", PATH, 1) == 3.4e38


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x", "'x'"), ("", "''"), ("-1", "-1"), ("nan", "nan"), ("inf", "inf"), ("3.5e38", "3.5e")],
)
def test_anything_else_is_named_with_its_line(text: str, shown: str) -> None:
    with pytest.raises(FormatError, match=rf"edges\.csv, line 7: the weight is {shown}"):
        check_weight(text, PATH, 7)
