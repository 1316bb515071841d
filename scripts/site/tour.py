"""The tour of the house as a page: its text, its code, and under each stage what it prints."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

from scripts.site.entries import ROOT

FILE = ROOT / "docs" / "tour.py"
STAGE = re.compile(r"^=== (\d+)\. ", re.MULTILINE)


CHAPTER = re.compile(r"^# (\d+)\. ", re.MULTILINE)
BEFORE = """
The program is [`tour.py`](../docs/tour.py). Under each stage stands what it printed when this page
was built.
"""


def printed() -> dict[int, str]:
    """What each stage prints, by its number."""
    done = subprocess.run(
        [sys.executable, str(FILE)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    parts = STAGE.split(done.stdout)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def chapter(source: str) -> tuple[str, str]:
    """The comment that a stage begins with as text, and its code."""
    lines = source.splitlines()
    count = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    comment = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:count])
    return comment, "\n".join(lines[count:]).strip()


def text() -> str:
    """The page."""
    source = FILE.read_text(encoding="utf-8")
    first, *rest = CHAPTER.split(source)
    introduction = ast.get_docstring(ast.parse(source)) or ""
    code = first[first.index("import numpy") :].strip()
    parts = [
        "# A tour of the house\n",
        introduction.partition(": ")[2].replace("one", "One", 1),
        BEFORE,
        f"```python\n{code}\n```\n",
    ]
    output = printed()
    for number, body in zip(map(int, rest[::2]), rest[1::2], strict=True):
        comment, code = chapter(f"# {body}")
        heading, _, shown = output[number].partition("\n")
        parts.append(f"## {number}. {heading.rstrip('= ')}\n\n{comment}\n")
        if code:
            parts.append(f"```python\n{code}\n```\n")
        parts.append(f"```text\n{shown.strip()}\n```\n")
    return "\n".join(parts)
