"""How a picture calls nodes and operations: in words, as the page does, or by their real names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from retrograd.viz.graph_document import Document, Record
from retrograd.viz.pictures.box import cut


class NodeNames:
    """The names within a document; `folded` are constants that stand in the titles of others."""

    def __init__(self, doc: Document, words: bool, folded: Set[int]) -> None:
        self._doc = doc
        self._words = words
        self._folded = folded

    def title(self, r: Record) -> str:
        """A node: `h = matrix product`, or `dot_general`."""
        if not r["inputs"]:
            return (
                r["name"]
                or (r["attrs"] if self._words and r["role"] == "constant" else "")
                or (self.op(r))
            )
        call, records = self.op(r), self._doc["nodes"]
        if any(x in self._folded for x in r["inputs"]):
            known = [_constant(records[x]) if x in self._folded else "·" for x in r["inputs"]]
            call += f"({', '.join(known)})"
        name = self._name(r)
        return cut(f"{name} = {call}" if name else call, 34)

    def op(self, r: Record) -> str:
        """What a node does: a function by its name, others by a word."""
        if not self._words:
            return str(r["op"])
        rule = None if r["rule"] is None else self._doc["rules"][r["rule"]]["forward"]
        if r["family"] == "elementwise" and rule == f"{r['op']}(‹0›)":
            return str(r["op"])
        return str(self._doc["words"].get(r["op"], r["op"]))

    def short(self, r: Record) -> str:
        """How others refer to a node, with its number."""
        return cut(self._name(r) or self.op(r), 14)

    def number(self, r: Record) -> str:
        """What tells a node from others of its name: its number on the page, or in text."""
        if not r["computed"] or (self._words and (self._name(r) or not r["inputs"])):
            return ""
        return f"v{r['id']}" if self._words else f"%{r['id']}"

    def counted(self, members: Iterable[Record]) -> list[tuple[str, int]]:
        """Operations with how often each, the most frequent first."""
        words = self._doc["words"] if self._words else {}
        return Counter(str(words.get(r["op"], r["op"])) for r in members).most_common()

    def _name(self, r: Record) -> str:
        return str(r["name"] or (r["variable"] if self._words else ""))


def _constant(r: Record) -> str:
    text = str(r["attrs"])
    return text if len(text) <= 8 else str(r["type"])
