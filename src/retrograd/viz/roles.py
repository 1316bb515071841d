"""The roles of nodes in a picture, and their colours."""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    name: str
    fill: str
    border: str


ROLES = (
    Role("input", "#fef3c7", "#b45309"),
    Role("parameter", "#fde68a", "#b45309"),
    Role("constant", "#f1f5f9", "#94a3b8"),
    Role("forward", "#dbeafe", "#2563eb"),
    Role("gradient", "#fce7f3", "#be185d"),
    Role("update", "#dcfce7", "#15803d"),
)
