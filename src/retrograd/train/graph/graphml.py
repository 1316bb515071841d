"""What NetworkX takes in a GraphML file without a word: nodes listed twice, of which it keeps the
last, and edges to nodes that are not listed, which it makes up."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from retrograd.errors import FormatError


def check_graphml(path: Path, content: bytes) -> None:
    """`FormatError` with the line of a node that is listed twice, or of an edge to or from a node
    that is not listed. What is no XML at all is for others to tell."""
    nodes: dict[str, int] = {}
    ends: list[tuple[int, str]] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        kind, line = name.rpartition(":")[2], parser.CurrentLineNumber
        if kind == "node":
            own = attributes.get("id", "")
            if own in nodes:
                raise FormatError(
                    f"{path}, line {line}: node {own!r} is listed twice, first in line {nodes[own]}"
                )
            nodes[own] = line
        elif kind == "edge":
            ends.extend((line, attributes.get(end, "")) for end in ("source", "target"))

    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except expat.ExpatError:
        return
    for line, name in ends:
        if name not in nodes:
            raise FormatError(f"{path}, line {line}: there is no node {name!r}")
