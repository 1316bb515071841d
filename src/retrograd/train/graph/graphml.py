"""What NetworkX takes in a GraphML file without a word: nodes listed twice, of which it keeps the
last, edges to nodes that are not listed, which it makes up, and edges of the same id."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from retrograd.errors import FormatError
from retrograd.train.graph.weights import check_weight


def check_graphml(path: Path, content: bytes) -> None:
    """`FormatError` with the line of a node or an edge that is listed twice, of an edge to or from
    a node that is not listed, of a weight that is none, or of what is no XML."""
    reader = _Reader(path)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise FormatError(
            f"{path}, line {error.lineno}: this is not well-formed XML "
            f"({expat.ErrorString(error.code)})"
        ) from None
    except FormatError:
        raise
    except (LookupError, ValueError) as error:  # of an encoding that expat asks Python for
        raise FormatError(
            f"{path}, line 1: XML in this encoding cannot be read ({error}); save it as UTF-8"
        ) from None
    for line, name in reader.ends:
        if name not in reader.lines["node"]:
            raise FormatError(f"{path}, line {line}: there is no node {name!r}")


class _Reader:
    """What is said of nodes, ends of edges and weights, and in which lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
        self.ends: list[tuple[int, str]] = []
        self.weights: set[str] = set()  # keys of attributes of edges with that name
        self.inside = ""  # an edge, or nothing
        self.text: list[str] | None = None
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data

    def start(self, name: str, attributes: dict[str, str]) -> None:
        kind, line = name.rpartition(":")[2], self.parser.CurrentLineNumber
        own = attributes.get("id")
        if kind in self.lines and own is None and kind == "node":
            raise FormatError(f"{self.path}, line {line}: a node without an id")
        if kind in self.lines and own is not None:
            seen = self.lines[kind]
            if own in seen:
                raise FormatError(
                    f"{self.path}, line {line}: {kind} {own!r} is listed twice, first in line "
                    f"{seen[own]}"
                )
            seen[own] = line
        if kind == "edge":
            self.inside = kind
            self.ends += [(line, attributes.get(end, "")) for end in ("source", "target")]
        elif kind == "key" and attributes.get("attr.name") == "weight":
            if attributes.get("for") in ("edge", "all"):
                self.weights.add(attributes.get("id", ""))
        elif kind == "data" and self.inside and attributes.get("key") in self.weights:
            self.text = []

    def data(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def end(self, name: str) -> None:
        kind = name.rpartition(":")[2]
        if kind == "data" and self.text is not None:
            check_weight("".join(self.text).strip(), self.path, self.parser.CurrentLineNumber)
            self.text = None
        elif kind == "edge":
            self.inside = ""
