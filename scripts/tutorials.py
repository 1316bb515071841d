"""Bring the tutorials up to date: `python -m scripts.tutorials [NAME ...]`.

Runs the blocks of the pages in docs/tutorials, writes what they print behind them, and copies the
pictures they draw, which the pages show, to docs/images/tutorials.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from scripts import pages

FOLDER = pages.ROOT / "docs" / "tutorials"
PICTURES = pages.ROOT / "docs" / "images" / "tutorials"
SHOWN = re.compile(r"\]\(\.\./images/tutorials/([\w-]+\.svg)\)")


def tutorials() -> list[str]:
    """The names of the tutorials, in the order of the index."""
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    return re.findall(r"^\d+\. \[[^\]]+\]\(([\w-]+)\.md\)", index, re.MULTILINE)


def path_of(name: str) -> Path:
    """Where the tutorial of a name is."""
    return FOLDER / f"{name}.md"


def pictures(name: str) -> list[str]:
    """The pictures that a tutorial draws and shows."""
    return SHOWN.findall(path_of(name).read_text(encoding="utf-8"))


def seconds() -> float:
    """Processor time so far, of commands as well."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main(names: list[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in names or tutorials():
        start = seconds()
        with tempfile.TemporaryDirectory() as folder:
            text = pages.renewed(path_of(name), Path(folder))
            path_of(name).write_text(text, encoding="utf-8")
            for picture in pictures(name):
                shutil.copyfile(Path(folder) / picture, PICTURES / picture)
        sys.stdout.write(f"{name}: {seconds() - start:.1f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])
