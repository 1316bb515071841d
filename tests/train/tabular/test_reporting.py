from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from retrograd.train.tabular import Table, TableColumn, TableEncoder, report, write_pictures
from retrograd.train.tabular.recipe import TargetColumn


def outcome(target: TargetColumn, values: list[Any], scores: Any) -> Any:
    """A run on rows of which the last three were tested on."""
    column = np.array(values, object if isinstance(values[0], str) else np.float64)
    table = Table("a.csv", {"y": column, "x": np.zeros(len(values))}, frozenset())
    encoder = TableEncoder([TableColumn("x", "number", missing=True)], {"z": "it is empty"})
    test = np.arange(len(values) - 3, len(values))
    true = column[test]
    scores = np.array(scores, np.float32)
    return SimpleNamespace(
        table=table, target=target, encoder=encoder, test=test, scores=scores, true=true,
        predicted=target.decode(scores), unlabelled=2,
    )  # fmt: skip


def test_classes(tmp_path: Path) -> None:
    target = TargetColumn("y", ["no", "yes"])
    found = outcome(target, ["no", "no", "yes", "yes", "no"], [[0, 1], [1, 0], [1, 0]])
    text = report(found)
    assert "2 rows without 'y' were left out" in text
    assert "accuracy 0.6667" in text
    assert "without any column: accuracy 0.6667" in text
    assert "x: a number, some missing" in text
    assert "z: left out, it is empty" in text
    assert [line.split() for line in text.splitlines()[-2:]] == [
        ["no", "1", "0"],
        ["yes", "1", "1"],
    ]
    picture = write_pictures(found, tmp_path).read_text()
    assert picture.count('fill-opacity="0.500"') == 2


def test_numbers(tmp_path: Path) -> None:
    target = TargetColumn("y", None, 2.0, 4.0)
    found = outcome(target, [0.0, 1.0, 2.0, 6.0, -2.0], [[0.0], [1.0], [-0.5]])
    text = report(found)
    assert "'y' is a number" in text
    assert "RMSE 1.155" in text  # of the errors 0, 0 and 2
    assert f"without any column: RMSE {np.sqrt(32 / 3):.4g}" in text
    assert write_pictures(found, tmp_path).read_text().count("<circle") == 3
