"""The boxes of a picture in which scopes are closed, as the page has them at first.

A closed scope is one box for its forward nodes, and one for its gradient nodes beside that. Boxes
of a module that is called twice may need each other in turns: then one of the edges leads back.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from retrograd.viz.graph_document import Document, Record
from retrograd.viz.mathematics.composites import inline
from retrograd.viz.outline import Outline, Scope
from retrograd.viz.pictures.box import DrawnBox, cut, tail
from retrograd.viz.pictures.names import NodeNames
from retrograd.viz.pictures.node_box import node_box, place, result, slopes_of

ORDERS = ("", "gradient of ", "second order of ", "third order of ")


def closed_boxes(doc: Document, words: bool) -> list[DrawnBox]:
    """The boxes in topological order, as far as there is one."""
    outline = Outline(doc)
    names, standing = NodeNames(doc, words, outline.folded), outline.boxes()
    slopes = slopes_of(doc)
    index: dict[tuple[int, int], int] = {}
    found: list[DrawnBox] = []
    at: list[int | None] = []  # the box of each node
    for r in outline.nodes:
        scope = standing[r["id"]]
        if r["id"] in outline.folded:
            at.append(None)
            continue
        if scope is None:
            at.append(len(found))
            found.append(node_box(r, doc, names))
            if r["id"] in slopes:
                found[-1].results[:0] = slopes[r["id"]]
                found[-1].short, found[-1].number = slopes[r["id"]][0], ""
            continue
        key = scope, _order(r, outline)
        if key not in index:
            index[key] = len(found)
            found.append(_empty(outline, scope, key[1]))
        at.append(index[key])
        found[index[key]].members.append(r["id"])
    for (scope, _), i in index.items():
        _describe(found[i], doc, outline, outline.scopes[scope], names, at)
        given = [text for x in found[i].members for text in slopes.get(x, ())]
        found[i].results += _listed(given, "gradients")
    _link(found, outline, at)
    return _sorted(found, outline.nodes)


def _order(r: Record, outline: Outline) -> int:
    """How often what a node computes was differentiated; -1 of what is done with gradients."""
    if r["role"] == "update" or (outline.lanes and outline.lanes.is_home(r["id"])):
        return -1
    return max(r["order"], int(outline.second[r["id"]]))


def _empty(outline: Outline, at: int, order: int) -> DrawnBox:
    scope = outline.scopes[at]
    outer = outline.scopes[scope.parent].path
    title = ORDERS[min(max(order, 0), 3)] + tail(scope.name, 40)
    role = "update" if order < 0 else "gradient" if order else "forward"
    return DrawnBox(
        key=f"s{at}" if order == 0 else f"s{at}u" if order < 0 else f"s{at}d{order}",
        title=title,
        lines=[],
        family="group",
        role=role,
        members=[],
        column=max(order, 0),
        short=tail(scope.name, 20),
        scope="" if outer.startswith("⟨") else outer,
        computed=False,
    )


def _describe(
    box: DrawnBox,
    doc: Document,
    outline: Outline,
    scope: Scope,
    names: NodeNames,
    at: Sequence[int | None],
) -> None:
    """What a closed scope says: its formula, type and inputs, and how much is in it."""
    members = [outline.nodes[i] for i in box.members]
    leaves = [r for r in members if not r["inputs"]]
    inner = [r for r in members if r["inputs"]]
    box.computed = any(r["computed"] for r in inner or members)
    if not inner:
        box.role = leaves[0]["role"]
        box.family = box.role if box.role in ("input", "parameter") else "leaf"
    formula = inline(scope.call["formula"]) if scope.call and box.role != "gradient" else ""
    if formula:  # of a rule all lines, which are its steps
        lines = formula.split("\n")
        box.formula = lines if box.role == "update" else lines[:1]
    outputs = sorted((k, r["id"]) for r in members for k in r["outputs"])
    results = [result(k, outline.nodes[i], doc) for k, i in outputs]
    box.results = _listed(results, "gradients" if box.role == "gradient" else "outputs")
    count = f"{len(members):,} node{'s' * (len(members) != 1)}"
    source = scope.call["source"] if scope.call else None
    where = doc["sources"][source] if source is not None else None
    box.lines = [
        *(_types(inner, outline, at) if box.role != "update" else ()),
        *_inputs(leaves, scope, outline),
        f"{count} · {place(where)}" if where else count,
    ]
    ops = [f"{n} {op}" for op, n in names.counted(members)[:12]]
    source_line = place(where, text=True) if where else ""
    box.tooltip = "\n".join(filter(None, [scope.path, formula, source_line, *ops]))


def _types(inner: Sequence[Record], outline: Outline, at: Sequence[int | None]) -> list[str]:
    """The type of what leaves a box: towards others of its pass, if any of it does."""

    def leaves(r: Record, same: bool) -> bool:
        users = (u for u in outline.users[r["id"]] if at[u] != at[r["id"]])
        return any(not same or outline.second[u] == outline.second[r["id"]] for u in users)

    ends = [r for r in inner if leaves(r, True) or r["outputs"] or not outline.users[r["id"]]]
    passed = [r for r in ends if leaves(r, True)] or ends or [r for r in inner if leaves(r, False)]
    types = list(dict.fromkeys(r["type"] for r in passed))
    return [cut(", ".join(types), 36)] if types and len(types) <= 2 else []


def _inputs(leaves: Sequence[Record], scope: Scope, outline: Outline) -> list[str]:
    """The inputs that are in a box, by the ends of their names; of a rule the parameters."""
    members = [outline.scopes[c].name for c in scope.children]
    if members and scope.path.startswith("⟨update⟩"):
        return _listed(members, "parameters", 72)
    paths = [r["name"] for r in leaves if r["op"] == "input" and r["name"]]
    paths.sort(key=lambda path: "." in path)  # what a layer is given before what it has
    names = list(dict.fromkeys(path.rpartition(".")[2] for path in paths))
    reads = "" if len(leaves) == len(scope.nodes) else "reads "
    return [reads + text for text in _listed(names, "inputs")]


def _listed(names: Sequence[str], what: str, widest: int = 48) -> list[str]:
    """A line of names, or how many there are."""
    text = ", ".join(names)
    return [text if len(text) <= widest else f"{len(names):,} {what}"] if names else []


def _link(boxes: Sequence[DrawnBox], outline: Outline, at: Sequence[int | None]) -> None:
    """The edges between boxes, and what each gradient stands beside. Between nodes there is one for
    each use, otherwise one for all."""
    links: dict[tuple[int, int], list[str]] = {}
    beside: dict[int, Counter[int]] = {}
    for r in outline.nodes:
        to = at[r["id"]]
        if to is None:
            continue
        if r["origin"] is not None:
            origin = at[r["origin"]]
            if origin is not None and origin != to:
                beside.setdefault(to, Counter())[origin] += 1
        for x in r["inputs"]:
            source, leaf = at[x], not outline.nodes[x]["inputs"]
            if source is None or source == to:
                continue
            if leaf and boxes[to].role == "update" and boxes[to].family == "group":
                continue  # every parameter, and every state
            links.setdefault((source, to), []).append(outline.nodes[x]["shape"])
    for (source, to), shapes in links.items():
        if "group" not in (boxes[source].family, boxes[to].family):
            boxes[to].inputs += [(source, shape) for shape in shapes]
        else:
            text = shapes[0] if len(set(shapes)) == 1 else f"{len(shapes)} values"
            boxes[to].inputs.append((source, text))
    for i, found in beside.items():
        boxes[i].origin = found.most_common(1)[0][0]


def _sorted(boxes: Sequence[DrawnBox], nodes: Sequence[Record]) -> list[DrawnBox]:
    """The boxes in topological order, by their first nodes; of a circle that box first whose nodes
    come first."""
    first = [
        min((i for i in box.members if nodes[i]["inputs"]), default=box.members[0]) for box in boxes
    ]
    users: list[list[int]] = [[] for _ in boxes]
    missing = [0] * len(boxes)
    for i, box in enumerate(boxes):
        for x, _ in box.inputs:
            users[x].append(i)
            missing[i] += 1
    waiting = sorted(range(len(boxes)), key=lambda i: first[i], reverse=True)
    ready = [(first[i], i) for i in range(len(boxes)) if not missing[i]]
    heapq.heapify(ready)
    place_of: dict[int, int] = {}
    while len(place_of) < len(boxes):
        while waiting and waiting[-1] in place_of:
            waiting.pop()
        i = heapq.heappop(ready)[1] if ready else waiting.pop()
        if i in place_of:
            continue
        place_of[i] = len(place_of)
        for u in users[i]:
            missing[u] -= 1
            if not missing[u]:
                heapq.heappush(ready, (first[u], u))
    made = [boxes[i] for i in place_of]
    for box in made:
        box.inputs = [(place_of[x], shape) for x, shape in box.inputs]
        box.origin = None if box.origin is None else place_of[box.origin]
    return made
