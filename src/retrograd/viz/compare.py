"""Two graphs as one document that says what was added, removed and changed.

Nodes are the same if they compute the same: operation, attributes, type, name, and inputs that are
the same. Of the others, two of one operation made at the same place, scope and source line, in the
same role, are one node that was changed; so are two of one name, or, within one scope, of one
operation and type. The rest was added or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from retrograd.viz.graph_document import Document, Record, completed, place_of
from retrograd.viz.packed import in_order


def compared(before: Document, after: Document) -> Document:
    """The document of `after`, each node with its `change`, and below it what only `before` has.

    `was` tells the earlier form of a changed node. Linear in the number of nodes.
    """
    pairs = _pairs(before, after)  # from nodes of `after` to nodes of `before`, and how
    nodes: list[Record] = []
    for r in after["nodes"]:
        i, same = pairs.get(r["id"], (None, False))
        change = "added" if i is None else "same" if same else "changed"
        was = {"was": _told(before["nodes"][i])} if i is not None and not same else {}
        nodes.append(r | {"change": change} | was)
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
            "compared": [before["name"] or "before", after["name"] or "after"],
        }
    )


def _told(r: Record) -> str:
    attrs = f" {r['attrs']}" if r["attrs"] else ""
    return f"{r['op']}{attrs}: {r['type']}"


def _pairs(before: Document, after: Document) -> dict[int, tuple[int, bool]]:
    """For nodes of `after` the node of `before` that they are, and whether nothing changed."""
    numbers: dict[Hashable, int] = {}
    first, second = (_meanings(d, numbers) for d in (before, after))
    waiting: dict[int, list[int]] = {}
    for r in reversed(before["nodes"]):
        waiting.setdefault(first[r["id"]], []).append(r["id"])
    found: dict[int, tuple[int, bool]] = {}
    for r in after["nodes"]:
        if waiting.get(second[r["id"]]):
            found[r["id"]] = waiting[second[r["id"]]].pop(), True
    taken = {i for i, _ in found.values()}
    for key in (_named, _placed, _kind):
        _match(before, after, key, found, taken)
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
    return (r["name"], r["scope"]) if r["name"] else None


def _placed(r: Record, doc: Document) -> Hashable:
    at = place_of(r, doc)
    where = (at["file"], at["line"]) if at is not None else None
    return r["op"], r["scope"], where, r["order"], r["role"]


def _kind(r: Record, doc: Document) -> Hashable:
    return r["op"], r["type"], r["attrs"], r["scope"], r["order"], r["role"]


def _match(
    before: Document,
    after: Document,
    key: Callable[[Record, Document], Hashable],
    found: dict[int, tuple[int, bool]],
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
