"""Draw the pictures of the pages of `PAGES` in docs/: `python -m scripts.gallery`.

The pages are run, and each picture that one shows, `images/FOLDER/NAME.svg`, is of the graph that
is called NAME in it: each node, by the name of its operation, which is what these pages are about.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import retrograd as rg
from scripts import kernel_pictures, pages

DOCS = pages.ROOT / "docs"
PAGES = ("gallery", "compiler-in-pictures")
SHOWN = re.compile(r"^!\[[^\]]+\]\((images/\w+/(\w+)\.svg)\)$", re.MULTILINE)
# Pictures of something else than a graph, from the names on the page. What they show depends on the
# processor at hand.
OTHERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "kernels": lambda names: kernel_pictures.kernels(
        rg.Graph.parse(names["gradient"].explain(stage="lowered"))
    ),
    "instructions": lambda names: kernel_pictures.instructions(names["llvm"]),
}


def drawn(page: str) -> dict[str, str]:
    """The pictures of a page as SVG, by their files, in order."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in pages.blocks(text):
            if block.language == "python":
                pages.python(block.text, names, f"{page}.md")
    found = {}
    for file, name in SHOWN.findall(text):
        draw = OTHERS.get(name)
        found[file] = draw(names) if draw else names[name].to_svg(closed=False, words=False)
    return found


def main(folder: Path = DOCS) -> None:
    for page in PAGES:
        for file, text in drawn(page).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
            sys.stdout.write(f"{file}: {len(text) // 1000} kB\n")


if __name__ == "__main__":
    main()
