"""Run the blocks of a page of documentation in order, and see that they print what the page shows.

- A `python` block runs in the names of those before it. Errors call it `block_2.py`, if it is the
  second that is run.
- An `sh` block is commands, one a line; `retrograd` and `python` are those at hand.
- A block with `title="NAME"` is a file of that name, which others read; it is not run.
- A `text` block right behind a block that runs is what that prints. Numbers with a fraction are
  compared to three digits or the last one, as other processors round otherwise; `...` stands for
  any text. Below the comment `<!-- numbers vary -->`, for times and the like, numbers are not
  compared, below `<!-- text varies -->`, for what a trained model says, nothing is.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import linecache
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?")
REL, ABS = 1e-3, 1e-6
NUMERAL = re.compile(r"[-+]?\d[\d.,:]*(?:e[-+]?\d+)?")
NUMBERS_VARY, TEXT_VARIES = "<!-- numbers vary -->", "<!-- text varies -->"
CHECK = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SECONDS = 300  # a command may take, on a machine with much else to do


@dataclass(frozen=True)
class Block:
    """A block of code or text, where it stands in the page, and the text since the one before."""

    language: str
    title: str | None
    text: str
    start: int
    end: int
    before: str


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    found: list[Block] = []
    for m in FENCE.finditer(page):
        before = page[found[-1].end if found else 0 : m.start()].strip()
        found.append(Block(m[1], m[2], m[3], m.start(), m.end(), before))
    return found


def is_output(before: Block, block: Block) -> bool:
    """Whether a block is what the one before it prints: nothing stands between them."""
    runs = before.title is None and before.language in ("python", "sh")
    follows = block.before in ("", NUMBERS_VARY, TEXT_VARIES)
    return runs and follows and block.language == "text" and block.title is None


def shown(page: str) -> list[tuple[Block, Block | None]]:
    """Each block that is run or is a file, with the block of what it prints."""
    found: list[tuple[Block, Block | None]] = []
    every = blocks(page)
    for block in every:
        if found and found[-1][1] is None and is_output(found[-1][0], block):
            found[-1] = found[-1][0], block
        else:
            found.append((block, None))
    return found


def run(
    path: Path,
    folder: Path,
    names: dict[str, Any] | None = None,
    languages: Collection[str] = ("python", "sh"),
) -> Iterator[tuple[Block, Block | None, str]]:
    """Run the blocks of a page in a folder; yields each with its output and what it printed. What
    the code defines is put into `names`."""
    page = path.read_text(encoding="utf-8")
    names = {} if names is None else names
    names["__name__"] = "__main__"
    number = itertools.count(1)
    for block, output in shown(page):
        if block.title is None and block.language not in languages:
            continue
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
            printed = ""
        elif block.language == "python":
            with contextlib.chdir(folder):
                printed = python(block.text, names, f"block_{next(number)}.py")
        else:
            printed = "".join(command(line, folder) for line in block.text.splitlines())
        yield block, output, printed


def python(code: str, names: dict[str, Any], where: str) -> str:
    """What code prints; errors name its lines."""
    linecache.cache[where] = (len(code), None, code.splitlines(keepends=True), where)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec", dont_inherit=True), names)
    return out.getvalue()


def command(line: str, folder: Path) -> str:
    """What a command prints, errors among it; a failure is an error here."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    programs = {"retrograd": [sys.executable, "-m", "retrograd"], "python": [sys.executable]}
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{line} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def agree(output: Block | None, printed: str) -> bool:
    """Whether a text is what the page shows."""
    expected = output.text if output is not None else ""
    if same(expected, printed):
        return True
    if output is not None and output.before == TEXT_VARIES:
        return bool(printed.strip()) == bool(expected.strip())
    if output is not None and output.before == NUMBERS_VARY:
        return same(*(NUMERAL.sub("<number>", text) for text in (expected, printed)))
    if not same(*(NUMBER.sub("<number>", text) for text in (expected, printed))):
        return False
    here, there = NUMBER.findall(expected), NUMBER.findall(printed)
    return len(here) == len(there) and all(map(close, here, there))


def close(a: str, b: str) -> bool:
    """Whether two numbers are the same to three digits, or differ in the last digit of several."""
    digits = max(len(x.partition("e")[0].partition(".")[2]) for x in (a, b))
    one = 1.01 * 10.0**-digits if digits > 1 and "e" not in a + b else 0.0
    return math.isclose(float(a), float(b), rel_tol=REL, abs_tol=max(ABS, one))


def same(expected: str, printed: str) -> bool:
    """Whether two texts are the same but for white space; the first may leave out parts."""
    return CHECK.check_output(expected, printed, FLAGS)


def differences(path: Path, folder: Path) -> list[str]:
    """Where a page does not show what its blocks print."""
    found = []
    for block, output, printed in run(path, folder):
        if not agree(output, printed):
            expected = output.text if output is not None else ""
            found.append(
                f"{path.name}: after\n{block.text}the page shows\n{expected}not\n{printed}"
            )
    return found


def renewed(path: Path, folder: Path) -> str:
    """The page with what its blocks print now; what agrees stays as it is."""
    page = path.read_text(encoding="utf-8")
    parts, at = [], 0
    for block, output, printed in run(path, folder):
        end = output.end if output is not None else block.end
        parts.append(page[at : block.end])
        if output is not None and agree(output, printed):
            parts.append(page[block.end : end])
        elif printed.strip():
            mark = f"\n\n{output.before}" if output is not None and output.before else ""
            parts.append(f"{mark}\n\n```text\n{tidy(printed)}```")
        at = end
    return "".join([*parts, page[at:]])


def tidy(text: str) -> str:
    """Without spaces at the ends of lines, or lines without anything at the end."""
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


__all__ = ["Block", "agree", "blocks", "differences", "renewed", "run", "shown"]
