"""Pages of docs/ whose blocks are run by the tests: `python -m scripts.site.examples [PAGE ...]`
brings what they print up to date."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts import pages
from scripts.site.navigation import DOCS

# Each part of these pages, from one heading of the second level to the next, runs by itself.
ALONE = "cookbook"
WHOLE = ("index", "first-steps", "compiler-in-pictures", "numerical-conventions",
         "performance-guide", "gallery", "proving")  # fmt: skip


def executed() -> list[str]:
    """The names of the pages, `cookbook/gradients`."""
    return [*WHOLE, *sorted(f"{ALONE}/{p.stem}" for p in (DOCS / ALONE).glob("*.md"))]


def parts(name: str) -> list[str]:
    """What of a page runs in names of its own, in order; together they are the page."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    if not name.startswith(ALONE):
        return [text]
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def recipes() -> Iterator[tuple[str, str, str]]:
    """The tasks of the cookbook: page, heading, text."""
    for name in executed():
        if name.startswith(ALONE):
            for part in parts(name):
                if part.startswith("## "):
                    yield name, part[3:].partition("\n")[0], part


def written(text: str, folder: Path) -> Path:
    """A part as a page of its own."""
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def main(names: list[str]) -> None:
    for name in names or executed():
        made = []
        for part in parts(name):
            with tempfile.TemporaryDirectory() as folder:
                made.append(pages.renewed(written(part, Path(folder)), Path(folder)))
        (DOCS / f"{name}.md").write_text("".join(made), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
