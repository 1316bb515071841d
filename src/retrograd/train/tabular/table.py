"""A table in a file, as columns of numbers and of text."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.data import CSVDataset, ParquetDataset
from retrograd.data.tables import MISSING
from retrograd.errors import FormatError
from retrograd.files import StrPath

Array = np.ndarray[Any, Any]
SHOWN = 3  # of what is wrong
MOSTLY = 0.9  # of the values of a column are numbers: then the others are taken for mistakes
TRUE, FALSE = ("true", "yes"), ("false", "no")


@dataclass(frozen=True)
class Table:
    """Columns by name, float64 with NaN for what is missing, or text with None for it. `whole`
    holds the names of those that were whole numbers or truth values in the file, `words` what the
    file has for 0 and 1 in columns of truth values, such as no and yes."""

    source: str
    columns: dict[str, Array]
    whole: frozenset[str]
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def read_table(path: StrPath) -> Table:
    """The table in a CSV (`.csv`, `.tsv`, `.txt`) or Parquet file.

    Text that says true or false, or a date in the ISO form, becomes numbers: 1 and 0, and days
    since 1970. `FormatError` for a file that is none of this, and for a column of numbers in which
    a few fields are text: it names rows and fields.
    """
    source, kind = os.fspath(path), Path(path).suffix.lower()
    if kind in (".parquet", ".pq"):
        found = ParquetDataset(path, dtype=np.float64).columns
    elif kind in (".csv", ".tsv", ".txt"):
        delimiter = "\t" if kind == ".tsv" else ","
        found = CSVDataset(path, delimiter=delimiter, dtype=np.float64).columns
    else:
        raise FormatError(f"{source}: a table is a .csv, .tsv or .parquet file")
    columns: dict[str, Array] = {}
    whole = set()
    words: dict[str, tuple[str, str]] = {}
    for name, values in found.items():
        if values.dtype.kind in "OUS":
            fields = [str(v).strip() for v in values]
            values, is_whole = _text(source, name, fields)
            if is_whole:
                words[name] = _words(fields)
        else:
            if values.dtype.kind == "b":
                words[name] = ("False", "True")
            is_whole = values.dtype.kind in "iub"
            values = values.astype(np.float64)
            if is_whole or (values[np.isfinite(values)] % 1 == 0).all():
                whole.add(name)
        if is_whole:
            whole.add(name)
        columns[name] = values
    return Table(source, columns, frozenset(whole), words)


def _words(fields: Sequence[str]) -> tuple[str, str]:
    """What a column of truth values has for false and for true, first."""
    no = next((f for f in fields if f.lower() in FALSE), FALSE[0])
    return no, next((f for f in fields if f.lower() in TRUE), TRUE[0])


def _text(source: str, name: str, fields: Sequence[str]) -> tuple[Array, bool]:
    """A column of text: truth values and dates as numbers, and whether these are whole."""
    given = [f for f in fields if f.lower() not in MISSING]
    if given and all(f.lower() in TRUE + FALSE for f in given):
        values = {**dict.fromkeys(TRUE, 1.0), **dict.fromkeys(FALSE, 0.0)}
        return np.array([values.get(f.lower(), np.nan) for f in fields]), True
    if given and all(map(_is_date, given)):
        return np.array([_days(f) if f.lower() not in MISSING else np.nan for f in fields]), False
    numbers = [f for f in given if is_number(f)]
    if len(numbers) < len(given) and len(numbers) >= MOSTLY * len(given):
        wrong = [(i, f) for i, f in enumerate(fields) if f in given and not is_number(f)]
        listed = ", ".join([f"{f!r} in row {i + 1}" for i, f in wrong[:SHOWN]])
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise FormatError(
            f"{source}: the column {name!r} has numbers, but also text: {listed}{more}. Correct "
            "them, leave them empty, or leave the column out: --leave-out " + name
        )
    column = np.empty(len(fields), object)
    column[:] = [None if f.lower() in MISSING else f for f in fields]
    return column, False


def is_number(field: str) -> bool:
    """Whether a field is the text of a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_date(field: str) -> bool:
    try:
        datetime.datetime.fromisoformat(field)
    except ValueError:
        return False
    return "-" in field


def _days(field: str) -> float:
    moment = datetime.datetime.fromisoformat(field)
    return (moment.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)).total_seconds() / 86400
