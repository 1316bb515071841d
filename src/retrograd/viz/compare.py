"""Two graphs as one document that says what was added, removed and changed.

Nodes are the same if they compute the same: operation, attributes, type, name, and inputs that are
the same; in another scope, they were moved. Of the others, two of one operation made at the same
place, scope and source line, in the same role, are one node that was changed; so are two of one
name, or, within one scope, of one operation and type. The rest was added or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from retrograd.ir.calls import without_number
from retrograd.viz.graph_document import Document, Record, completed, place_of
from retrograd.viz.packed import in_order

Pairs = dict[int, tuple[int, bool]]  # from nodes of `after` to those of `before`, and if the same
PARTS = {"op": "operation", "attrs": "attributes", "type": "type"}


def compared(before: Document, after: Document, pairs: Pairs | None = None) -> Document:
    """The document of `after`, each node with its `change`, and below it what only `before` has.

    `was` tells the earlier form of a changed node, and `differs` in what: operation, attributes,
    type, inputs; of a moved one it is the earlier scope. `pairs` is what `paired` found. Linear in
    the number of nodes.
    """
    if pairs is None:
        pairs = paired(before, after)
    nodes: list[Record] = []
    for r in after["nodes"]:
        i, same = pairs.get(r["id"], (None, False))
        nodes.append(r | _change(r, None if i is None else before["nodes"][i], same, pairs))
    number = {i: k for k, (i, _) in pairs.items()}
    lost = [r for r in before["nodes"] if r["id"] not in number]
    shift, sources, rules = len(after["nodes"]), len(after["sources"]), len(after["rules"])
    number |= {r["id"]: shift + k for k, r in enumerate(lost)}
    for k, r in enumerate(lost):
        nodes.append(
            r
            | {
                "id": shift + k,
                "inputs": [number[x] for x in r["inputs"]],
                "origin": None if r["origin"] is None else number[r["origin"]],
                "body": None if r["body"] is None else number[r["body"]],
                "gradient": None,
                "source": None if r["source"] is None else r["source"] + sources,
                "rule": None if r["rule"] is None else r["rule"] + rules,
                "outputs": [],
                "computed": False,
                "change": "removed",
            }
        )
    return completed(
        after
        | {
            "nodes": nodes,
            "sources": [*after["sources"], *before["sources"]],
            "rules": [*after["rules"], *before["rules"]],
            "calls": _calls(before, after),
            "words": {**before["words"], **after["words"]},
            "compared": [before["name"] or "before", after["name"] or "after"],
        }
    )


def _change(r: Record, was: Record | None, same: bool, pairs: Pairs) -> Record:
    if was is None:
        return {"change": "added"}
    if same and _scope(r) == _scope(was):
        return {"change": "same"}
    if same:
        return {"change": "moved", "was": was["scope"] or "outside of scopes"}
    differs = [text for key, text in PARTS.items() if r[key] != was[key]]
    if [pairs.get(x, (None, False))[0] for x in r["inputs"]] != was["inputs"]:
        differs.append("inputs")
    return {"change": "changed", "was": _told(was), "differs": differs or ["name"]}


def _calls(before: Document, after: Document) -> list[Record]:
    """What was called in both, and in `before` alone."""
    known, shift = {c["scope"] for c in after["calls"]}, len(after["sources"])
    gone = [c for c in before["calls"] if c["scope"] not in known]
    moved = [c["source"] if c["source"] is None else c["source"] + shift for c in gone]
    return [*after["calls"], *(c | {"source": at} for c, at in zip(gone, moved, strict=True))]


def _told(r: Record) -> str:
    attrs = f" {r['attrs']}" if r["attrs"] else ""
    return f"{r['op']}{attrs}: {r['type']}"


def paired(before: Document, after: Document) -> Pairs:
    """For nodes of `after` the node of `before` that they are, and whether nothing changed."""
    numbers: dict[Hashable, int] = {}
    first, second = (_meanings(d, numbers) for d in (before, after))
    found: Pairs = {}
    taken: set[int] = set()
    for scoped in (True, False):  # of equal ones, that of the same scope
        waiting: dict[Hashable, list[int]] = {}
        for r in reversed(before["nodes"]):
            if r["id"] not in taken:
                key = first[r["id"]], _scope(r) if scoped else None
                waiting.setdefault(key, []).append(r["id"])
        for r in after["nodes"]:
            key = second[r["id"]], _scope(r) if scoped else None
            if r["id"] not in found and waiting.get(key):
                found[r["id"]] = waiting[key].pop(), True
                taken.add(found[r["id"]][0])
    for part in (_named, _placed, _kind):
        _match(before, after, part, found, taken)
    for i, (j, same) in found.items():
        # What is computed from a changed node, but in the same way as before, is the same.
        r, was = after["nodes"][i], before["nodes"][j]
        alike = all(r[k] == was[k] for k in ("op", "attrs", "type"))
        inputs = [found.get(x, (None, False))[0] for x in r["inputs"]]
        found[i] = j, same or (alike and inputs == was["inputs"])
    return found


def _meanings(doc: Document, numbers: dict[Hashable, int]) -> list[int]:
    """A number for what each node computes, equal for equal computations."""
    found = [-1] * len(doc["nodes"])
    for i in in_order(doc["nodes"])[0]:
        r = doc["nodes"][i]
        inputs = tuple([found[x] for x in r["inputs"]])
        leaf = (r["name"], r["body"] is not None) if not inputs else ()
        key = r["op"], r["attrs"], r["type"], leaf, inputs
        found[i] = numbers.setdefault(key, len(numbers))
    return found


def _named(r: Record, doc: Document) -> Hashable:
    return (r["name"], _scope(r)) if r["name"] else None


def _placed(r: Record, doc: Document) -> Hashable:
    at = place_of(r, doc)
    where = (at["file"], at["line"]) if at is not None else None
    return r["op"], _scope(r), where, r["order"], r["role"]


def _kind(r: Record, doc: Document) -> Hashable:
    return r["op"], r["type"], r["attrs"], _scope(r), r["order"], r["role"]


def _scope(r: Record) -> str:
    """Of a call without its number, which another call before it changes."""
    return without_number(r["scope"])


def _match(
    before: Document,
    after: Document,
    key: Callable[[Record, Document], Hashable],
    found: Pairs,
    taken: set[int],
) -> None:
    """Pair nodes that are left and have a key in common, in order."""
    waiting: dict[Hashable, list[int]] = {}
    for r in reversed(before["nodes"]):
        own = key(r, before)
        if r["id"] not in taken and own is not None:
            waiting.setdefault(own, []).append(r["id"])
    for r in after["nodes"]:
        own = key(r, after)
        if r["id"] not in found and own is not None and waiting.get(own):
            i = waiting[own].pop()
            taken.add(i)
            found[r["id"]] = i, False
