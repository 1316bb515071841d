"""Tables in files: CSV, Parquet, and the arrays of NumPy's `.npz`."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile as _BadZip

import numpy as np

from retrograd.data.dataset import ArrayDataset
from retrograd.errors import ArgumentError, BackendError, FormatError, OptionError, near
from retrograd.files import StrPath, read_bytes
from retrograd.ir import as_dtype, float32

Array = np.ndarray[Any, Any]
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}  # what stands for no number


class TableDataset(ArrayDataset):
    """The rows of a table: dicts by the names of its columns; with `target`, pairs of the vector
    `[F]` of all other columns, or of those in `features`, and the number in this one.

    `columns` has the arrays by name, with numbers or text.

    `ArgumentError` for a column that there is not, with the nearest that there is; `FormatError`
    for text in a column that has to be numeric.

    >>> from retrograd.data import TableDataset
    >>> TableDataset({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]}, target="y")[1]
    (array([2., 4.], dtype=float32), np.int64(1))
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        target: str | None = None,
        features: Sequence[str] | None = None,
        dtype: Any = float32,
        source: str = "the table",
    ) -> None:
        whole = ArrayDataset(dict(columns)) if columns else None
        if whole is None:
            raise FormatError(f"{source} has no columns")
        self.columns: dict[str, Array] = dict(whole.tree)
        wanted = [*([] if target is None else [target]), *(features or [])]
        check_columns(wanted, self.columns, source)
        if target is None:
            kept = self.columns if features is None else {k: self.columns[k] for k in features}
            super().__init__(kept)
            return
        self.features = [k for k in self.columns if k != target] if features is None else features
        if not self.features:
            raise FormatError(f"{source} has no column beside the target {target!r}")
        kind = as_dtype(dtype).dtype
        parts = [numeric(self.columns[k], k, source).astype(kind) for k in self.features]
        super().__init__(np.stack(parts, axis=1), self.columns[target])


def check_columns(wanted: Iterable[str], there: Iterable[str], source: str) -> None:
    """`ArgumentError` for a column that a table does not have."""
    names = list(there)
    for name in wanted:
        if name not in names:
            like = near(name, names, 3)
            raise ArgumentError(
                f"{source} has no column {name!r}; "
                + (f"near to it: {like}" if like else f"it has {names}")
            )


def numeric(column: Array, name: str, source: str) -> Array:
    """A column of numbers. `FormatError` for one of text, which names the first."""
    if column.dtype.kind not in "OUS":
        return column
    row, value = next((i, v) for i, v in enumerate(column) if not _is_number(v))
    raise FormatError(
        f"{source}: the column {name!r} has text, such as {value!r} in row {row}, where numbers "
        "are needed; leave it out of features=[...], or make numbers of it"
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


class CSVDataset(TableDataset):
    """The rows of a CSV file, in UTF-8, as those of `TableDataset`. Columns of integers become
    int64, of numbers `dtype`, in which a missing one is NaN, and others text.

    Without `header` columns are called `"0"`, `"1"`, ... `FormatError` for a row with another
    number of fields than the first, with its line; errors of reading name the file.

    >>> from retrograd.data import CSVDataset
    >>> path = getfixture("tmp_path") / "a.csv"
    >>> _ = path.write_text("x,n,name\\n0.5,1,ann\\n,2,bob\\n")
    >>> CSVDataset(path)[0]
    {'x': np.float32(0.5), 'n': np.int64(1), 'name': 'ann'}
    """

    def __init__(
        self,
        path: StrPath,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        delimiter: str = ",",
        header: bool = True,
        dtype: Any = float32,
    ) -> None:
        source = os.fspath(path)
        names, rows = _fields(path, delimiter, header)
        kind = as_dtype(dtype).dtype
        columns = {name: typed([row[i] for row in rows], kind) for i, name in enumerate(names)}
        super().__init__(columns, target, features, dtype, source)


def _fields(path: StrPath, delimiter: str, header: bool) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the fields of each row, of a CSV file."""
    source = os.fspath(path)
    try:
        text = read_bytes(path, "table").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{source} is not UTF-8: byte {error.start}: {error.reason}") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row:
                continue  # a blank line
            if rows and len(row) != len(rows[0]):
                raise FormatError(
                    f"{source}, line {reader.line_num}: {len(row)} fields, where the first line "
                    f"has {len(rows[0])}; is the delimiter {delimiter!r}?"
                )
            rows.append(row)
    except csv.Error as error:
        raise FormatError(f"{source}, line {reader.line_num}: {error}") from None
    if not rows:
        raise FormatError(f"{source} is empty")
    names = [f.strip() for f in rows[0]] if header else [str(i) for i in range(len(rows[0]))]
    if doubled := [n for n in names if names.count(n) > 1]:
        raise FormatError(f"{source} has two columns {doubled[0]!r}")
    rows = rows[1:] if header else rows
    if not rows:
        raise FormatError(
            f"{source} has names of columns, but no rows; header=False takes the first for one"
        )
    return names, rows


def typed(fields: Sequence[str], kind: Any) -> Array:
    """Fields of text as the narrowest of int64, floats and text that holds all."""
    stripped = [f.strip() for f in fields]
    try:
        return np.array([int(f) for f in stripped], np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        numbers = [float("nan" if f.lower() in MISSING else f) for f in stripped]
    except ValueError:
        return np.array(list(fields), object)
    return np.array(numbers).astype(kind)


class NPZDataset(ArrayDataset):
    """The arrays of a `.npz` file as `ArrayDataset(**arrays)`; or those in `names` alone, in a
    tuple. Objects are refused, as reading them runs code.

    `FormatError` for a damaged file, `ArgumentError` for a name that it does not have.

    >>> import numpy as np
    >>> from retrograd.data import NPZDataset
    >>> path = getfixture("tmp_path") / "a.npz"
    >>> np.savez(path, x=np.eye(2), y=[3, 4])
    >>> NPZDataset(path, ["x", "y"])[1]
    (array([0., 1.]), np.int64(4))
    """

    def __init__(self, path: StrPath, names: Sequence[str] | None = None) -> None:
        source = os.fspath(path)
        try:
            with open(path, "rb") as opened:
                file = np.load(opened, allow_pickle=False)
                if isinstance(file, np.ndarray):
                    raise FormatError(f"{source} holds one array: ArrayDataset(np.load(path))")
                check_columns(names or [], file.files, source)
                arrays = {k: file[k] for k in (file.files if names is None else names)}
        except FormatError:
            raise
        except (ValueError, EOFError, _BadZip) as error:
            raise FormatError(f"{source} is no .npz file of arrays: {error}") from None
        if names is None:
            super().__init__(arrays)
        else:
            super().__init__(*arrays.values())


class ParquetDataset(TableDataset):
    """The rows of a Parquet file, or of a folder of them, as those of `TableDataset`; only the
    columns that are needed are read. Missing numbers are NaN, in integers too, which are then
    `dtype`; dates and nested values are refused.

    `BackendError` without the package `pyarrow`; `FormatError` for a damaged file.

    >>> from retrograd.data import ParquetDataset
    >>> ParquetDataset("houses.parquet", target="price")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: StrPath,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        dtype: Any = float32,
    ) -> None:
        pyarrow, parquet = pyarrow_parquet()
        source = os.fspath(path)
        if not Path(path).exists():
            raise FileNotFoundError(f"there is no Parquet file {source}; check the name")
        wanted = None if features is None else [*features, *([target] if target else [])]
        try:
            there = parquet.ParquetDataset(source).schema.names
            check_columns([*(wanted or []), *([target] if target else [])], there, source)
            table = parquet.read_table(source, columns=wanted)
        except pyarrow.ArrowException as error:
            raise FormatError(f"{source} is no Parquet file: {error}") from None
        kind = as_dtype(dtype).dtype
        columns = parquet_columns(table, source, kind)
        super().__init__(columns, target, features, dtype, source)


def pyarrow_parquet() -> tuple[Any, Any]:
    """The packages that read Parquet files."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BackendError(
            "Parquet files need the package pyarrow: pip install 'retrograd[data]'"
        ) from None
    return pyarrow, parquet


def parquet_columns(table: Any, source: str, kind: Any) -> dict[str, Array]:
    """The columns of a table of Arrow as arrays."""
    return {name: _column(table[name], name, source, kind) for name in table.column_names}


def _column(column: Any, name: str, source: str, kind: Any) -> Array:
    """A column of Arrow as an array."""
    import pyarrow

    types, t = pyarrow.types, column.type
    if types.is_dictionary(t):
        column = column.cast(t.value_type)
        t = column.type
    if types.is_boolean(t) or types.is_integer(t) or types.is_floating(t):
        if column.null_count and not types.is_floating(t):
            return np.asarray(column.cast(pyarrow.float64()).to_numpy()).astype(kind)
        found = np.asarray(column.to_numpy())
        return found if types.is_floating(t) or found.dtype.kind != "O" else found.astype(bool)
    if types.is_string(t) or types.is_large_string(t):
        return np.array(["" if v is None else v for v in column.to_pylist()], object)
    raise OptionError(
        f"{source}: the column {name!r} is of type {t}, of which no array is made; leave it out: "
        "features=[...]"
    )
