"""Tables from files; columns and rows are what pandas and pyarrow read."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import CSVDataset, DataLoader, NPZDataset, ParquetDataset, TableDataset

CSV = 'x,n,name,y\n0.5,1,"a, b",0\n,2,c,1\n1e3,-3,"line\nbreak",1\n'


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbf" + CSV.encode())
    return file


def test_types_of_columns_are_found(path):
    data = CSVDataset(path)
    x, n, name = (data.columns[k] for k in ("x", "n", "name"))
    assert np.array_equal(x, np.array([0.5, np.nan, 1000], np.float32), equal_nan=True)
    assert n.tolist() == [1, 2, -3]
    assert n.dtype == np.int64
    assert name.tolist() == ["a, b", "c", "line\nbreak"]
    (batch,) = DataLoader(data, 3)
    assert batch["name"] == name.tolist()
    assert batch["n"].dtype is rg.int64


def test_features_and_target(path):
    data = CSVDataset(path, target="y", features=["n", "x"], dtype="float64")
    assert data[0][0].tolist() == [1.0, 0.5]
    ((x, y),) = DataLoader(data, 3)
    assert (x.shape, x.dtype, y.tolist()) == ((3, 2), rg.float64, [0, 1, 1])
    assert data.features == ["n", "x"]
    assert set(CSVDataset(path, features=["n"])[0]) == {"n"}


def test_no_header_and_other_delimiters(tmp_path):
    (tmp_path / "a.tsv").write_text("1\t2\n3\t4\n\n")
    data = CSVDataset(tmp_path / "a.tsv", delimiter="\t", header=False, target="1")
    assert [(x.tolist(), int(y)) for x, y in data] == [([1.0], 2), ([3.0], 4)]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (CSV, {"target": "z"}, "has no column 'z'; it has"),
        (CSV, {"target": "nam"}, r"no column 'nam'; near to it: \['name'\]"),
        (CSV, {"target": "y"}, "the column 'name' has text, such as 'a, b' in row 0"),
        ("a,b\n1,2\n3\n", {}, "line 3: 1 fields, where the first line has 2"),
        ("", {}, "is empty"),
        ("a,b\n", {}, "names of columns, but no rows"),
        ("a,a\n1,2\n", {}, "two columns 'a'"),
        ("a\n1\n", {"target": "a"}, "no column beside the target"),
        ('a\n"1\n', {}, "line 2: unexpected end"),
        (b"a\n\xff\n", {}, "is not UTF-8: byte 2"),
    ],
)
def test_tables_that_are_wrong(tmp_path, content, options, message):
    file = tmp_path / "a.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(rg.RetrogradError, match=message):
        CSVDataset(file, **options)


def test_files_that_are_not_there(tmp_path):
    for kind in (CSVDataset, NPZDataset):
        with pytest.raises(FileNotFoundError):
            kind(tmp_path / "none")
    with pytest.raises(rg.FormatError, match="has no columns"):
        TableDataset({})


def test_the_same_as_pandas(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(path)
    data = CSVDataset(path, dtype="float64")
    for name in frame:
        assert data.columns[name].tolist() == pytest.approx(frame[name].tolist(), nan_ok=True)


def test_npz(tmp_path):
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3, dtype=np.int8)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    assert NPZDataset(tmp_path / "a.npz")[2]["x"].tolist() == [4.0, 5.0]
    ((a, b),) = DataLoader(NPZDataset(tmp_path / "a.npz", ["y", "x"]), 3)
    assert (a.dtype, b.tolist()) == (rg.int8, x.tolist())
    with pytest.raises(rg.ArgumentError, match="has no column 'z'"):
        NPZDataset(tmp_path / "a.npz", ["z"])
    np.save(tmp_path / "b.npy", x)
    with pytest.raises(rg.FormatError, match="holds one array"):
        NPZDataset(tmp_path / "b.npy")
    (tmp_path / "c.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    np.savez(tmp_path / "d.npz", x=np.array([{}], object))
    for name in ("c.npz", "d.npz"):
        with pytest.raises(rg.FormatError, match=r"is no .npz file of arrays"):
            NPZDataset(tmp_path / name)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "x": [0.5, None, 2.0],
        "n": [1, 2, 3],
        "m": [1, None, 3],
        "b": [True, False, True],
        "t": ["a", None, "c"],
        "f": pyarrow.array([1, 2, 3], pyarrow.float32()),
        "c": pyarrow.array(["u", "v", "u"]).dictionary_encode(),
    }
    file = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), file)
    data = ParquetDataset(file)
    kinds = {k: v.dtype.name for k, v in data.columns.items()}
    assert kinds == {"x": "float64", "n": "int64", "m": "float32", "b": "bool", "t": "object",
                     "f": "float32", "c": "object"}  # fmt: skip
    assert np.isnan(data.columns["x"][1])
    assert np.isnan(data.columns["m"][1])
    assert data.columns["t"].tolist() == ["a", "", "c"]
    assert data.columns["c"].tolist() == ["u", "v", "u"]
    ((x, y),) = DataLoader(ParquetDataset(file, target="n", features=["f", "b"]), 3)
    assert (x.tolist(), y.tolist()) == ([[1, 1], [2, 0], [3, 1]], [1, 2, 3])
    with pytest.raises(rg.ArgumentError, match="no column 'nn'"):
        ParquetDataset(file, target="nn")
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        ParquetDataset(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"abcdefghijklmn")
    with pytest.raises(rg.FormatError, match="is no Parquet file"):
        ParquetDataset(tmp_path / "c.parquet")
    nested = pyarrow.table({"l": [[1], [2]]})
    parquet.write_table(nested, tmp_path / "d.parquet")
    with pytest.raises(rg.OptionError, match="column 'l' is of type list"):
        ParquetDataset(tmp_path / "d.parquet")


def test_without_pyarrow(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[data\]'"):
        ParquetDataset(tmp_path)
