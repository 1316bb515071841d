"""GML files, looked at for what NetworkX tells without a line: nodes that are listed twice, edges
to nodes that are not listed, edges listed twice, weights that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from retrograd.errors import FormatError
from retrograd.train.graph.weights import check_weight

TOKEN = re.compile(r'"[^"]*"|[\[\]]|[^\s\[\]"]+|"')


DEEPEST = 100  # lists within lists: NetworkX reads them by calls within calls


class GmlEntry(NamedTuple):
    """A node or an edge: the line where it begins, and what it says, as it is written."""

    kind: str
    line: int
    says: dict[str, str]


def check_gml(path: Path, content: bytes) -> bool:
    """`FormatError` with the line of what is wrong; whether nodes have labels. What is no GML at
    all is for others to tell."""
    header, entries = _entries(path, content)
    nodes = [e for e in entries if e.kind == "node"]
    for name in ("id", "label"):
        seen: dict[str, int] = {}
        for node in nodes:
            own = node.says.get(name)
            if own is None:
                continue
            if own in seen:
                raise FormatError(
                    f"{path}, line {node.line}: there is a node with the {name} {own} already, in "
                    f"line {seen[own]}"
                )
            seen[own] = node.line
    known = {n.says["id"] for n in nodes if "id" in n.says}
    first: dict[tuple[str, ...], int] = {}
    for edge in (e for e in entries if e.kind == "edge"):
        ends = tuple(edge.says.get(end, "nothing") for end in ("source", "target"))
        for end in ends:
            if end not in known:
                raise FormatError(f"{path}, line {edge.line}: there is no node {end}")
        if header.get("directed") != "1":
            ends = tuple(sorted(ends))
        if ends in first and header.get("multigraph") != "1":
            raise FormatError(
                f"{path}, line {edge.line}: the edge from {ends[0]} to {ends[1]} was in line "
                f"{first[ends]}; files with several say multigraph 1"
            )
        first.setdefault(ends, edge.line)
        if "weight" in edge.says:
            check_weight(edge.says["weight"], path, edge.line)
    return any("label" in n.says for n in nodes)


def _entries(path: Path, content: bytes) -> tuple[dict[str, str], list[GmlEntry]]:
    """What the graph says of itself, its nodes and its edges."""
    header: dict[str, str] = {}
    found: list[GmlEntry] = []
    inside: list[GmlEntry] = []  # lists that are not closed yet
    key = ""
    for line, token in _tokens(content):
        if token == "[":
            inside.append(GmlEntry(key, line, {}))
            if len(inside) > DEEPEST:
                raise FormatError(f"{path}, line {line}: more than {DEEPEST} lists within lists")
            if len(inside) == 2 and inside[0].kind == "graph" and key in ("node", "edge"):
                found.append(inside[-1])
            key = ""
        elif token == "]":
            if not inside:
                raise FormatError(f"{path}, line {line}: ']' without a '['")
            inside.pop()
            key = ""
        elif token == '"':
            raise FormatError(f"{path}, line {line}: a string that does not end")
        elif not key:
            key = token
        else:
            if inside:
                inside[-1].says.setdefault(key, token)
                if len(inside) == 1 and inside[0].kind == "graph":
                    header.setdefault(key, token)
            key = ""
    if inside:
        raise FormatError(f"{path}, line {inside[-1].line}: '[' without a ']'")
    return header, found


def _tokens(content: bytes) -> Iterator[tuple[int, str]]:
    """Words, numbers, strings and brackets, with their lines."""
    text = content.decode("utf-8", errors="replace")
    text = re.sub(r"(?m)^[ \t]*#.*$", "", text)
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield line, match[0]
