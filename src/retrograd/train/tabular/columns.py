"""What kind the columns of a table are, and the numbers that a network takes for them.

A column of numbers is one number, less its mean and over its standard deviation where it is known,
0 where it is missing, and where some are missing in training another number that says so. A column
of text with few values is the place of its value in a list, 0 for what is missing or was not there
in training. Means and lists are those of the rows that are learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from retrograd.errors import ArgumentError, FormatError, near
from retrograd.train.tabular.table import Table, is_number

Array = np.ndarray[Any, Any]
CATEGORIES = 1000  # values of a column of text, at most
LARGEST = float(np.finfo(np.float32).max)  # of what a network is given
REPEATED = 2  # times that a value of it occurs on average, at least, or it tells rows apart


@dataclass(frozen=True)
class TableColumn:
    """A column that is used: of numbers, with `mean` and `spread`, or of `values`."""

    name: str
    kind: Literal["number", "category"]
    mean: float = 0.0
    spread: float = 1.0
    missing: bool = False  # whether some were, in training
    values: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TableEncoder:
    """The columns that are used, and those that are left out, with the reason of each."""

    columns: list[TableColumn]
    left_out: dict[str, str]

    @property
    def numbers(self) -> int:
        """How many numbers a row becomes."""
        return sum(1 + c.missing for c in self.columns if c.kind == "number")

    @property
    def sizes(self) -> list[int]:
        """How many values each category has, with that of what is not known."""
        return [1 + len(c.values) for c in self.columns if c.kind == "category"]

    def encode(self, table: Table) -> tuple[Array, Array]:
        """Numbers, float32 `[N, numbers]`, and places of values, int64 `[N, categories]`.
        `ArgumentError` where a column is missing, `FormatError` where it holds text instead of
        numbers."""
        numbers: list[Array] = []
        places: list[Array] = []
        for c in self.columns:
            values = taken(table, c.name)
            if c.kind == "category":
                known = {v: i for i, v in enumerate(c.values, 1)}
                places.append(np.array([known.get(v, 0) for v in map(_label, values)], np.int64))
                continue
            if values.dtype == object:
                given = [(i, v) for i, v in enumerate(values, 1) if v is not None]
                text = [(i, v) for i, v in given if not is_number(v)] or given
                if text:
                    row, field = text[0]
                    raise FormatError(
                        f"{table.source}: the column {c.name!r} held numbers in training, and "
                        f"has text here: {field!r} in row {row}. Correct it, or leave it empty"
                    )
                values = np.full(len(values), np.nan)
            there = np.isfinite(values)
            numbers.append(np.where(there, (values - c.mean) / c.spread, 0.0))
            if (large := np.abs(numbers[-1]) > LARGEST).any():
                row = int(large.argmax())
                raise FormatError(
                    f"{table.source}: the column {c.name!r} has a number that is too large to be "
                    f"computed with, {values[row]:g} in row {row + 1}"
                )
            if c.missing:
                numbers.append((~there).astype(np.float64))
        n = len(table)
        return (
            np.stack(numbers, 1).astype(np.float32) if numbers else np.zeros((n, 0), np.float32),
            np.stack(places, 1) if places else np.zeros((n, 0), np.int64),
        )

    def state_dict(self) -> dict[str, Any]:
        return {"columns": [asdict(c) for c in self.columns], "left_out": self.left_out}

    @classmethod
    def from_state(cls, state: Any) -> TableEncoder:
        return cls([TableColumn(**c) for c in state["columns"]], dict(state["left_out"]))


def fit_columns(table: Table, target: str, rows: Array, leave_out: Sequence[str]) -> TableEncoder:
    """Find out what kind the columns are, from the rows that are learned from. `ArgumentError` for
    a name that is no column's; `FormatError` where no column can be used."""
    for name in (target, *leave_out):
        taken(table, name)
    columns = []
    left_out = dict.fromkeys(leave_out, "as it was told")
    for name, values in table.columns.items():
        if name == target or name in left_out:
            continue
        found = _column(name, values[rows], table.source)
        if isinstance(found, str):
            left_out[name] = found
        else:
            columns.append(found)
    if not columns:
        reasons = "; ".join(f"{k}: {v}" for k, v in left_out.items()) or "there is no other"
        raise FormatError(f"{table.source}: no column to predict {target!r} from ({reasons})")
    return TableEncoder(columns, left_out)


def _column(name: str, values: Array, source: str) -> TableColumn | str:
    """A column, or why it is left out."""
    if values.dtype == object:
        labels = [v for v in values if v is not None]
        known = sorted(set(labels))
        if len(known) < 2:
            return "it is the same in all rows" if known else "it is empty"
        if len(known) > CATEGORIES or len(labels) < REPEATED * len(known):
            return f"it is text with {len(known):,} different values"
        return TableColumn(name, "category", values=known)
    there = values[np.isfinite(values)]
    if not len(there):
        return "it is empty"
    missing = len(there) < len(values)
    mean, spread = moments(there, name, source)
    if spread == 0 and not missing:
        return "it is the same in all rows"
    return TableColumn(name, "number", mean, spread or 1.0, missing)


def moments(values: Array, name: str, source: str) -> tuple[float, float]:
    """Mean and standard deviation of numbers; `FormatError` where they are too large for it."""
    with np.errstate(over="ignore"):
        mean, spread = float(values.mean()), float(values.std())
    if not np.isfinite(mean + spread):
        worst = float(values[np.abs(values).argmax()])
        raise FormatError(
            f"{source}: the column {name!r} has numbers that are too large to be computed with, "
            f"such as {worst:g}. Correct them, leave them empty, or leave the column out"
        )
    return mean, spread


def taken(table: Table, name: str) -> Array:
    """A column by its name; `ArgumentError`, with the nearest there is, where it is missing."""
    if name not in table.columns:
        like = near(name, table.columns, 3)
        hint = f"; near to it: {', '.join(like)}" if like else ""
        raise ArgumentError(
            f"{table.source} has no column {name!r}{hint}. It has {', '.join(table.columns)}"
        )
    return table.columns[name]


def _label(value: Any) -> Any:
    """A value of a category as text: numbers that were text in training, too."""
    if isinstance(value, float):
        return None if np.isnan(value) else f"{value:g}"
    return value
