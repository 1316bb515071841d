"""Text as this house writes it, made into what Python-Markdown reads: lists that follow a line at
once, lists in lists, doctests, signs that would be HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"^\s*(```|~~~)")
DIRECTIVE = re.compile(r" *# doctest: .*$", re.MULTILINE)
ITEM = re.compile(r"^( *)([-*+]|\d+\.) +\S")


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a page, and whether each is in a block of code."""
    inside = False
    for line in text.splitlines():
        if FENCE.match(line):
            yield line, True
            inside = not inside
        else:
            yield line, inside


def with_lists(text: str) -> str:
    """An empty line before each list, and four spaces for each level of it: elsewhere two do, and a
    list may follow a paragraph at once."""
    made: list[str] = []
    was_text = in_list = False
    for line, is_code in lines_with_code(text):
        item = None if is_code else ITEM.match(line)
        if item and was_text and not in_list:
            made.append("")
        if item:
            in_list = True
        elif line.strip() and not line.startswith(" ") and not is_code:
            in_list = in_list and was_text  # a lazy line of the item
        was_text = bool(line.strip())
        if in_list and line.startswith("  ") and not line.startswith("    "):
            line = "  " + line.replace("  ", "    ", 1)[2:] if item else "  " + line
        made.append(line)
    return "\n".join(made) + "\n"


def of_docstring(text: str) -> str:
    """A docstring as Markdown: doctests become blocks of code, other signs stay what they are."""
    made: list[str] = []
    in_example = False
    for line in DIRECTIVE.sub("", text).splitlines():
        if line.lstrip().startswith(">>> ") and not in_example:
            in_example = True
            made += ["", "```pycon"]
        elif in_example and not line.strip():
            in_example = False
            made.append("```")
        made.append(line.strip() if in_example and line.startswith("    >>>") else line)
    if in_example:
        made.append("```")
    return with_lists("\n".join(_escaped(line, code) for line, code in _marked(made)))


def _marked(lines: list[str]) -> Iterator[tuple[str, bool]]:
    for line, is_code in lines_with_code("\n".join(lines)):
        yield line, is_code or line.startswith("    ")


def _escaped(line: str, is_code: bool) -> str:
    if is_code:
        return line
    parts = re.split(r"(`[^`]*`)", line)
    parts[::2] = [p.replace("<", "&lt;").replace("$", "\\$") for p in parts[::2]]
    # A sum or a product, not emphasis; a subscript, not a link.
    parts[::2] = [re.sub(r"(?<=\w)\*(?=\w)|(?<= )\*(?= )", r"\\*", p) for p in parts[::2]]
    return "".join(parts)


def plain(text: str) -> str:
    """A line for a cell of a table."""
    return _escaped(" ".join(text.split()), False).replace("|", "\\|")
