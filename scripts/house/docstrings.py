"""What the docstrings of the public names say."""

from __future__ import annotations

import re

from scripts.house.row import Row, percent

# What a docstring is to have: its goal, and how it is recognized.
PARTS = {
    "error": ("all that can fail", re.compile(r"\b[A-Z]\w*(Error|Warning)\b")),
    # The word, or sizes of an array in brackets: `[N, C]`, `[..., n, n]`.
    "shape": ("all that take arrays", re.compile(r"\bshapes?\b|`\[[\w.,* +\-/]+\]`", re.I)),
    "example": ("100", re.compile(r"^\s*>>> ", re.M)),
}


def rows(docstrings: dict[str, dict[str, str]]) -> list[Row]:
    """For each room, how many percent of its public names say what, and those that do not."""
    made = []
    for room, texts in docstrings.items():
        for part, (goal, pattern) in PARTS.items():
            missing = sorted(name for name, text in texts.items() if not pattern.search(text))
            share = percent(len(texts) - len(missing), len(texts))
            title = (
                f"percent of the {len(texts)} public names of {room} with {part} in the docstring"
            )
            made.append(Row(f"docs_{room}_{part}", title, share, goal, missing))
    return made
