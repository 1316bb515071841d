from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.train.tabular import read_table


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_dates_truth_values_and_text(tmp_path):
    text = (
        "n,x,day,ok,name\n3,0.5,1970-01-02,yes,ann\n4,,2000-01-01T12:00,No,\n5,2,NA,?,bob\n"
        "6,nan,1969-12-31,TRUE,ann\n"
    )
    table = read_table(written(tmp_path / "a.csv", text))
    columns = table.columns
    assert columns["n"].tolist() == [3, 4, 5, 6]
    np.testing.assert_array_equal(columns["x"], [0.5, np.nan, 2, np.nan])
    np.testing.assert_array_equal(columns["day"], [1, 10957.5, np.nan, -1])
    np.testing.assert_array_equal(columns["ok"], [1, 0, np.nan, 1])
    assert columns["name"].tolist() == ["ann", None, "bob", "ann"]
    assert table.whole == {"n", "ok"}
    assert len(table) == 4


def test_a_table_of_tabs(tmp_path):
    table = read_table(written(tmp_path / "a.tsv", "a\tb\n1\tx\n2\ty\n"))
    assert table.columns["b"].tolist() == ["x", "y"]


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra: data)")
    from pyarrow import parquet

    columns = {"n": [1, 2, None], "t": ["a", None, "b"], "ok": [True, False, True]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table.columns["n"], [1, 2, np.nan])
    assert table.columns["t"].tolist() == ["a", None, "b"]
    assert table.columns["ok"].tolist() == [1, 0, 1]


def test_text_among_numbers_is_named(tmp_path):
    rows = [str(i) for i in range(40)]
    rows[6], rows[20] = "twelve", "1,000"
    text = "x\n" + "".join(f'"{r}"\n' for r in rows)
    with pytest.raises(rg.FormatError, match=r"'x' has numbers.*'twelve' in row 7, '1,000' in row"):
        read_table(written(tmp_path / "a.csv", text))


def test_what_is_no_table(tmp_path):
    with pytest.raises(rg.FormatError, match=r"\.csv, \.tsv or \.parquet"):
        read_table(tmp_path / "a.xlsx")
    with pytest.raises(rg.FormatError, match="is empty"):
        read_table(written(tmp_path / "a.csv", ""))
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")
