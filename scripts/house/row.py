"""One line of the table of measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """A number, its name in JSON and in words, what it is to become, and what was counted."""

    key: str
    title: str
    value: int
    goal: str = ""
    detail: list[str] = field(default_factory=list)


def counted(key: str, title: str, things: Iterable[str], goal: str = "") -> Row:
    """A row whose number is how many things there are."""
    detail = sorted(things)
    return Row(key, title, len(detail), goal, detail)


def percent(part: int, whole: int) -> int:
    """A share in whole percent, rounded down: 100 only where nothing is missing.

    >>> percent(199, 200)
    99
    """
    return 100 * part // whole if whole else 100
