"""What a picture shows: boxes and links, made of a document.

Constants are written into their users' titles. A large graph is grouped: one box for the forward
and one for the gradient nodes of a scope. What a training step does with its gradients stands in a
column of its own, where parameters that are updated by the same rule are one box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from retrograd.viz.graph_document import Document, Record, place_of
from retrograd.viz.outline import folded as folded_constants
from retrograd.viz.pictures.box import DrawnBox, cut, tail
from retrograd.viz.pictures.closed import closed_boxes
from retrograd.viz.pictures.names import NodeNames
from retrograd.viz.pictures.node_box import node_box, result, slopes_of
from retrograd.viz.scopes import prefixes

FEWEST = 4  # groups by source line; of fewer a picture says nothing


def scene(doc: Document, max_nodes: int, closed: bool = True, words: bool = True) -> list[DrawnBox]:
    """The boxes of a picture, in topological order. `closed` is whether scopes are closed that the
    page closes at first, `words` whether operations are called by words."""
    folded = folded_constants(doc)
    names = NodeNames(doc, words, folded)
    shown = [r for r in doc["nodes"] if r["id"] not in folded]
    boxes = closed_boxes(doc, words) if closed else []
    if (len(boxes) if closed else len(shown)) > max_nodes:
        boxes = _groups(doc, shown, max_nodes, names)
    elif not closed:
        boxes = _boxes(doc, shown, folded, names)
    _assign_columns(boxes, "updates" in doc)
    return boxes


def _rules(doc: Document) -> dict[int, Record]:
    """The rule by which several parameters are updated, for each node of these updates."""
    rules = doc.get("updates", {"rules": []})["rules"]
    return {
        i: rule for rule in rules if len(rule["members"]) > 1 for m in rule["members"]
        for i in m["nodes"]
    }  # fmt: skip


def _rule_title(rule: Record) -> str:
    return f"{rule['name']} × {len(rule['members'])}"


# -- one box a node -------------------------------------------------------------------------------


def _boxes(
    doc: Document, shown: Sequence[Record], folded: set[int], names: NodeNames
) -> list[DrawnBox]:
    records, rules = doc["nodes"], _rules(doc)
    last = {id(rule): i for i, rule in sorted(rules.items())}  # node of each rule
    kept = [r for r in shown if r["id"] not in rules or last[id(rules[r["id"]])] == r["id"]]
    position = {r["id"]: i for i, r in enumerate(kept)}
    position |= {i: position[last[id(rule)]] for i, rule in rules.items() if i not in folded}
    slopes = slopes_of(doc)
    boxes: list[DrawnBox] = []
    for r in kept:
        if r["id"] in rules:
            boxes.append(_rule_box(rules[r["id"]], doc, position, folded, len(boxes)))
            continue
        box = node_box(r, doc, names)
        box.origin = position.get(r["origin"]) if r["origin"] is not None else None
        box.inputs = [(position[x], records[x]["shape"]) for x in r["inputs"] if x not in folded]
        box.results = [*slopes.get(r["id"], ()), *box.results]
        boxes.append(box)
    return boxes


def _rule_box(
    rule: Record, doc: Document, position: dict[int, int], folded: set[int], at: int
) -> DrawnBox:
    """The updates of many parameters as one box. Of its edges those are drawn that all of them
    have: the gradients carry the names of the parameters."""
    records, members = doc["nodes"], rule["members"]
    names = [records[m["parameter"]]["name"] or f"%{m['parameter']}" for m in members]
    inside = {i for m in members for i in m["nodes"]}
    common = set.intersection(
        *({x for i in m["nodes"] for x in records[i]["inputs"]} - inside for m in members)
    )
    inputs = sorted({position[x] for x in common - folded if position.get(x, at) < at})
    shapes = {position[x]: records[x]["shape"] for x in common - folded if x in position}
    lines = [*names[:4], f"and {len(names) - 4} more"] if len(names) > 5 else names
    ops = Counter(records[i]["op"] for i in members[0]["nodes"] if records[i]["inputs"])
    box = DrawnBox(
        key=f"u{members[0]['parameter']}",
        title=_rule_title(rule),
        lines=[tail(text, 36) for text in lines],
        family="group",
        role="update",
        members=sorted(inside),
        inputs=[(x, shapes[x]) for x in inputs],
        short=cut(_rule_title(rule), 14),
    )
    box.tooltip = "\n".join(
        [box.title, *names, "each:", *(f"{n} {op}" for op, n in ops.most_common(12))]
    )
    return box


# -- one box a group ------------------------------------------------------------------------------


def _groups(
    doc: Document, shown: Sequence[Record], max_nodes: int, names: NodeNames
) -> list[DrawnBox]:
    """A box for the forward and one for the gradient nodes of each group."""
    group, rules = _grouping(doc, shown, max_nodes), _rules(doc)
    updating = set(doc.get("updates", {"nodes": ()})["nodes"])
    index: dict[tuple[tuple[str, str], int], int] = {}
    boxes: list[DrawnBox] = []
    place: dict[int, int] = {}
    for r in shown:
        name = group(r)
        if r["id"] in rules:
            name = "rule", _rule_title(rules[r["id"]])
        elif r["id"] in updating and r["op"] != "input":
            name = "shared", "shared by all"
        key = name, 2 if r["id"] in updating else int(_is_second(r))
        if key not in index:
            index[key] = len(boxes)
            alone = r["op"] == "input" and name[0] == "input"
            role = r["role"] if alone or key[1] < 2 else "update"
            family = role if alone else "group"
            box = DrawnBox(f"s{len(boxes)}", tail(name[1], 34), [], family, role, [])
            box.column, box.scope, box.short = key[1] % 2, r["scope"], tail(name[1], 14)
            box.tooltip = name[1]
            boxes.append(box)
        place[r["id"]] = index[key]
        box = boxes[index[key]]
        box.members.append(r["id"])
        box.results += [result(k, r, doc) for k in r["outputs"]]
    for (name, column), i in index.items():
        box, forward = boxes[i], index.get((name, 0))
        box.origin = forward if column == 1 else None
        _describe(box, doc, names)
    _link(boxes, doc, place)
    return boxes


def _describe(box: DrawnBox, doc: Document, names: NodeNames) -> None:
    members = [doc["nodes"][i] for i in box.members]
    ops = names.counted(members)
    most = ", ".join(f"{n} {op}" for op, n in ops[:2])
    if len(members) == 1:
        box.lines = [members[0]["type"]]
    else:
        box.lines = [f"{len(members)} nodes", cut(most + (", …" if len(ops) > 2 else ""), 36)]
    box.tooltip += "\n" + "\n".join(f"{n} {op}" for op, n in ops[:12])
    box.results = [cut(", ".join(box.results), 20)] if box.results else []


def _link(boxes: Sequence[DrawnBox], doc: Document, place: dict[int, int]) -> None:
    """An edge between groups for all edges between their nodes. Groups may need each other in
    turns; the order in which they first occur decides which of the edges count for the layout."""
    titles = {_rule_title(rule) for rule in doc.get("updates", {"rules": []})["rules"]}
    links: dict[tuple[int, int], list[str]] = {}
    for edge in doc["edges"]:
        x, y = place.get(edge["from"]), place.get(edge["to"])
        if x is not None and y is not None and x != y:
            if boxes[y].title in titles and boxes[x].role in ("input", "parameter"):
                continue  # every parameter, and every state
            links.setdefault((x, y), []).append(edge["shape"])
    for (x, y), shapes in links.items():
        if x < y:
            text = shapes[0] if len(shapes) == 1 else f"{len(shapes)} values"
            boxes[y].inputs.append((x, text))


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


def _assign_columns(boxes: Sequence[DrawnBox], updating: bool) -> None:
    """What is made of gradients stands in their column, or in the last one if it updates
    parameters, and so does an input only they use."""
    last = 1 + max((box.column for box in boxes if box.role != "update"), default=0)
    users: list[list[int]] = [[] for _ in boxes]
    for i, box in enumerate(boxes):
        for x, _ in box.inputs:
            users[x].append(i)
        if updating and box.role == "update":
            box.column, box.updates = last, True
        elif box.column == 0 and any(boxes[x].column for x, _ in box.inputs):
            box.column = 1
    for i, box in enumerate(boxes):
        if not box.inputs and users[i]:
            box.column = min(boxes[u].column for u in users[i])
            box.updates = updating and all(boxes[u].updates for u in users[i])
