"""Mutants that no test can kill, with the reason: `equivalents.toml`.

An entry names the file, the function or the entry of a table, the kind, what was there and what
takes its place. It holds for all mutants that read so in that function, or with `number` for one
of them, counted from 1.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.mutation.mutants import Mutant

PATH = Path(__file__).parent / "equivalents.toml"
FIELDS = ("file", "function", "kind", "before", "after")


class Equivalents:
    """The entries of a list, each of which has to fit a mutant."""

    def __init__(self, path: Path = PATH) -> None:
        self.entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get(
            "equivalent", []
        )
        self._reasons: dict[tuple[Any, ...], str] = {}
        for entry in self.entries:
            missing = {*FIELDS, "reason"} - entry.keys()
            if missing:
                raise ValueError(f"{path}: an entry lacks {sorted(missing)}: {entry}")
            self._reasons[_key(entry)] = entry["reason"]

    def reason(self, mutant: Mutant) -> str | None:
        """Why a mutant is equivalent, None if it is not known to be."""
        return self._reasons.get((*mutant.key, mutant.number)) or self._reasons.get(
            (*mutant.key, None)
        )

    def gone(self, mutants: Iterable[Mutant]) -> list[dict[str, Any]]:
        """Entries that fit none of these mutants."""
        there = {key for m in mutants for key in ((*m.key, m.number), (*m.key, None))}
        return [entry for entry in self.entries if _key(entry) not in there]


def _key(entry: dict[str, Any]) -> tuple[Any, ...]:
    return (*(entry[name] for name in FIELDS), entry.get("number"))
