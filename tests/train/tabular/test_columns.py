import json

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.tabular import Table, TableEncoder, fit_columns


def table(**columns: list) -> Table:
    made = {
        k: np.array(v, object) if any(isinstance(x, str) for x in v) else np.array(v, np.float64)
        for k, v in columns.items()
    }
    return Table("a.csv", made, frozenset())


NAN = float("nan")
SOME = table(
    x=[1, 3, 1, 3, 100], y=[2, NAN, 4, 6, 8], c=["b", "a", "b", None, "z"], same=[1, 1, 1, 1, 1],
    empty=[NAN] * 5, names=["p", "q", "r", "s", "t"], target=[0, 1, 0, 1, 0],
)  # fmt: skip
ROWS = np.arange(4)  # are learned from


def test_kinds_of_columns_are_found_out():
    found = fit_columns(SOME, "target", ROWS, ["same"])
    assert [(c.name, c.kind, c.missing) for c in found.columns] == [
        ("x", "number", False), ("y", "number", True),
    ]  # fmt: skip
    assert found.left_out["same"] == "as it was told"
    assert found.left_out["empty"] == "it is empty"
    assert "different values" in found.left_out["names"]
    assert "2 different values" in found.left_out["c"]
    more = table(c=["b", "a", "b", "a"], target=[0, 1, 0, 1])
    assert fit_columns(more, "target", ROWS, []).columns[0].values == ["a", "b"]


def test_numbers_are_standardized_by_the_rows_that_are_learned_from():
    found = fit_columns(SOME, "target", ROWS, [])
    numbers, places = found.encode(SOME)
    assert places.shape == (5, 0)
    np.testing.assert_allclose(numbers[:, 0], [-1, 1, -1, 1, 98])
    mean, spread = 4, float(np.std([2, 4, 6]))
    np.testing.assert_allclose(numbers[:, 1], [-2 / spread, 0, 0, 2 / spread, (8 - mean) / spread])
    assert numbers[:, 2].tolist() == [0, 1, 0, 0, 0]


def test_values_that_are_not_known_are_one_value():
    found = fit_columns(table(c=["b", "a", "b", "a"], target=[0, 1, 0, 1]), "target", ROWS, [])
    _, places = found.encode(table(c=["a", "b", "new", None]))
    assert places[:, 0].tolist() == [1, 2, 0, 0]
    assert found.sizes == [3]
    again = TableEncoder.from_state(json.loads(json.dumps(found.state_dict())))
    assert again == found


def test_missing_columns_and_text_in_place_of_numbers():
    found = fit_columns(SOME, "target", ROWS, [])
    with pytest.raises(rg.ArgumentError, match="no column 'x'; near to it: xx"):
        found.encode(table(xx=[1.0], y=[1.0]))
    with pytest.raises(rg.FormatError, match="'x' held numbers in training"):
        found.encode(table(x=["many"], y=[1.0]))
    with pytest.raises(rg.ArgumentError, match="no column 'targte'; near to it: target"):
        fit_columns(SOME, "targte", ROWS, [])
    with pytest.raises(rg.FormatError, match="no column to predict"):
        fit_columns(table(same=[1, 1], target=[0, 1]), "target", np.arange(2), [])
