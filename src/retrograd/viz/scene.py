"""What a picture shows: boxes and links, made of a document.

Constants are written into their users' titles. A large graph is grouped: one box for the forward
and one for the gradient nodes of a scope.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrograd.viz.graph_document import Document, Record, place_of
from retrograd.viz.scopes import prefixes

FEWEST = 4  # groups by source line; of fewer a picture says nothing


@dataclass
class Box:
    """A node, or a group of nodes. Boxes are referred to by their position in the scene."""

    key: str  # its id in the picture
    title: str
    lines: list[str]
    family: str
    role: str
    members: list[int]  # ids of nodes
    column: int = 0  # 0 for forward, 1 for gradient, 2 for gradients of gradients, ...
    origin: int | None = None  # the box it stands beside
    inputs: list[tuple[int, str]] = field(default_factory=list)  # box, shape; one for each edge
    short: str = ""  # how other boxes refer to it
    scope: str = ""
    tooltip: str = ""
    results: list[str] = field(default_factory=list)  # names of the outputs it is
    computed: bool = True
    number: str = ""


def scene(doc: Document, max_nodes: int) -> list[Box]:
    """The boxes of a picture, in topological order."""
    folded = _folded(doc)
    shown = [r for r in doc["nodes"] if r["id"] not in folded]
    large = len(shown) > max_nodes
    boxes = _groups(doc, shown, max_nodes) if large else _boxes(doc, shown, folded)
    _assign_columns(boxes)
    return boxes


def _folded(doc: Document) -> set[int]:
    """Constants that are shown in their users' titles."""
    used = {x for r in doc["nodes"] for x in r["inputs"]}
    return {
        r["id"]
        for r in doc["nodes"]
        if r["role"] == "constant" and r["id"] in used and not r["outputs"]
    }


# -- one box a node -------------------------------------------------------------------------------


def _boxes(doc: Document, shown: Sequence[Record], folded: set[int]) -> list[Box]:
    records = doc["nodes"]
    position = {r["id"]: i for i, r in enumerate(shown)}
    boxes = []
    for r in shown:
        known = [_constant(records[x]) if x in folded else "·" for x in r["inputs"]]
        title = r["name"] if r["op"] == "input" and r["name"] else r["op"]
        if any(x in folded for x in r["inputs"]):
            title += f"({', '.join(known)})"
        if r["name"] and r["op"] != "input":
            title = f"{r['name']} = {title}"
        attrs = re.sub(r"\(([^(),]+),\)", r"\1", r["attrs"])  # one axis needs no brackets
        box = Box(
            key=f"n{r['id']}",
            title=_cut(title, 34),
            lines=[_cut(text, 36) for text in (r["type"], attrs) if text],
            family=r["role"] if r["family"] == "leaf" and r["op"] == "input" else r["family"],
            role=r["role"],
            members=[r["id"]],
            column=r["order"],
            origin=position.get(r["origin"]) if r["origin"] is not None else None,
            inputs=[(position[x], records[x]["shape"]) for x in r["inputs"] if x not in folded],
            short=_cut(r["name"] or r["op"], 14),
            scope=r["scope"],
            tooltip=_tooltip(r, doc),
            results=[_result(k, r, doc) for k in r["outputs"]],
            computed=r["computed"],
            number=f"%{r['id']}" if r["computed"] else "",
        )
        boxes.append(box)
    return boxes


def _result(k: int, r: Record, doc: Document) -> str:
    """How output number `k` is called, where the node's own name does not say it."""
    name = doc["output_names"][k]
    if name and name != r["name"]:
        return _cut(name, 30)
    return "output" if len(doc["outputs"]) == 1 else f"output {k}"


def _constant(r: Record) -> str:
    text = str(r["attrs"])
    return text if len(text) <= 8 else r["type"]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _tooltip(r: Record, doc: Document) -> str:
    call = f"{r['op']}({r['attrs']})" if r["attrs"] else r["op"]
    lines = [f"%{r['id']} {r['name']}".rstrip() if r["computed"] else r["name"]]
    lines += [call, r["type"]]
    if r["scope"]:
        lines.append(f"in {r['scope']}")
    if not r["computed"]:
        lines.append("its value is not needed, so this graph does not compute it")
    return "\n".join([*filter(None, lines), *_place(r, doc)])


def _place(r: Record, doc: Document) -> list[str]:
    """The source line, by the last part of the file's path: pictures are shown to others."""
    at = place_of(r, doc)
    if at is None:
        return []
    file = at["file"].replace("\\", "/").rpartition("/")[2]
    return [f"{file}:{at['line']}  {at['text']}".rstrip()]


# -- one box a group ------------------------------------------------------------------------------


def _groups(doc: Document, shown: Sequence[Record], max_nodes: int) -> list[Box]:
    """A box for the forward and one for the gradient nodes of each group."""
    group = _grouping(doc, shown, max_nodes)
    index: dict[tuple[tuple[str, str], bool], int] = {}
    boxes: list[Box] = []
    place: dict[int, int] = {}
    for r in shown:
        name = group(r)
        key = name, _is_second(r)
        if key not in index:
            index[key] = len(boxes)
            family = r["role"] if r["op"] == "input" else "group"
            box = Box(f"s{len(boxes)}", _tail(name[1], 34), [], family, r["role"], [])
            box.column, box.scope, box.short = int(key[1]), r["scope"], _tail(name[1], 14)
            box.tooltip = name[1]
            boxes.append(box)
        place[r["id"]] = index[key]
        box = boxes[index[key]]
        box.members.append(r["id"])
        box.results += [_result(k, r, doc) for k in r["outputs"]]
    for (name, gradient), i in index.items():
        box, forward = boxes[i], index.get((name, False))
        box.origin = forward if gradient else None
        _describe(box, doc)
    _link(boxes, doc, place)
    return boxes


def _describe(box: Box, doc: Document) -> None:
    members = [doc["nodes"][i] for i in box.members]
    ops = Counter(r["op"] for r in members)
    most = ", ".join(f"{n} {op}" for op, n in ops.most_common(2))
    if len(members) == 1:
        box.lines = [members[0]["type"]]
    else:
        box.lines = [f"{len(members)} nodes", _cut(most + (", …" if len(ops) > 2 else ""), 36)]
    box.tooltip += "\n" + "\n".join(f"{n} {op}" for op, n in ops.most_common(12))
    box.results = [_cut(", ".join(box.results), 20)] if box.results else []


def _link(boxes: Sequence[Box], doc: Document, place: dict[int, int]) -> None:
    """An edge between groups for all edges between their nodes. Groups may need each other in
    turns; the order in which they first occur decides which of the edges count for the layout."""
    links: dict[tuple[int, int], list[str]] = {}
    for edge in doc["edges"]:
        x, y = place.get(edge["from"]), place.get(edge["to"])
        if x is not None and y is not None and x != y:
            links.setdefault((x, y), []).append(edge["shape"])
    for (x, y), shapes in links.items():
        if x < y:
            text = shapes[0] if len(shapes) == 1 else f"{len(shapes)} values"
            boxes[y].inputs.append((x, text))


def _tail(name: str, length: int) -> str:
    return name if len(name) <= length else "…" + name[len(name) - length + 1 :]


Grouping = Callable[[Record], tuple[str, str]]  # the kind of the group, and its name


def _grouping(doc: Document, shown: Sequence[Record], most: int) -> Grouping:
    """The finest grouping of at most this many boxes: by scope, cut off at some depth, else by
    source line or function, else by position. Named inputs stand alone as long as they may."""
    paths = {s: prefixes(s) for s in {r["scope"] for r in shown}}
    deepest = max(map(len, paths.values()), default=0)
    for alone in (True, False):
        for depth in range(deepest, -2, -1):
            group = _by_scope(doc, paths, depth, alone)
            count = len({(group(r), _is_second(r)) for r in shown})
            if count <= most and (count >= FEWEST or depth > 0):
                return group
    size = -(-len(shown) // max(1, most // 4))
    rank: dict[int, int] = {}
    for i, r in enumerate(shown):
        rank[r["id"]] = rank.get(r["origin"], i // size) if r["origin"] is not None else i // size
    return lambda r: ("part", f"part {rank[r['id']] + 1}")


def _by_scope(doc: Document, paths: dict[str, list[str]], depth: int, alone: bool) -> Grouping:
    """By the outer `depth` levels of the scope; outside of all scopes, and for the depth 0, by
    source line; for the depth -1 by function."""

    def group(r: Record) -> tuple[str, str]:
        levels = paths[r["scope"]][: max(depth, 0)]
        if levels:
            return "scope", levels[-1]
        if r["op"] == "input":
            return "input", r["name"] if alone and r["name"] else "inputs"
        at = place_of(r, doc)
        if at is None:
            return "source", "elsewhere"
        if depth < 0:
            return "source", f"{at['function']}()"
        return "source", f"line {at['line']}: {at['text']}"

    return group


def _is_second(r: Record) -> bool:
    """Whether a node belongs into the gradient half of its group."""
    return bool(r["order"]) or r["role"] == "update"


def _assign_columns(boxes: Sequence[Box]) -> None:
    """What is made of gradients stands in their column, and so does an input only they use."""
    users: list[list[int]] = [[] for _ in boxes]
    for i, box in enumerate(boxes):
        for x, _ in box.inputs:
            users[x].append(i)
        if box.column == 0 and any(boxes[x].column for x, _ in box.inputs):
            box.column = 1
    for i, box in enumerate(boxes):
        if not box.inputs and users[i]:
            box.column = min(boxes[u].column for u in users[i])
