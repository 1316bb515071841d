"""A box of a picture."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class DrawnBox:
    """A node, or a group of nodes. Boxes are referred to by their position in the scene."""

    key: str  # its id in the picture
    title: str
    lines: list[str]
    family: str
    role: str
    members: list[int]  # ids of nodes
    column: int = 0  # 0 for forward, 1 for gradient, 2 for gradients of gradients, ...
    origin: int | None = None  # the box it stands beside
    formula: list[str] = field(default_factory=list)
    inputs: list[tuple[int, str]] = field(default_factory=list)  # box, shape; one for each edge
    short: str = ""  # how other boxes refer to it
    scope: str = ""
    tooltip: str = ""
    results: list[str] = field(default_factory=list)  # names of the outputs it is
    computed: bool = True
    number: str = ""
    updates: bool = False  # stands in the column of what is done with the gradients


def cut(text: str, length: int) -> str:
    """A text without its end, where it is longer."""
    return text if len(text) <= length else text[: length - 1] + "…"


def tail(name: str, length: int) -> str:
    """A text without its beginning, where it is longer: of paths the end says more."""
    return name if len(name) <= length else "…" + name[len(name) - length + 1 :]
