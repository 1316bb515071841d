"""What a training step does with its gradients: which nodes update, which parameter they update,
and which parameters are updated by the same rule.

A node updates if it is made of gradients and no gradient is made of it, or if only such nodes use
it. An update of a parameter is what leads to its new value and to its new state, and to nothing of
another parameter; what several need, such as the norm of all gradients or the rate, is shared. Two
parameters have the same rule if their updates are equal but for shapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

Record = dict[str, Any]

NOWHERE, SHARED = -1, -2
# What only makes arrays fit: updates that differ in these alone are the same rule.
FITTING = ("expand", "reshape", "permute", "cast", "convert_element_type")


def updates(records: Sequence[Record]) -> Record | None:
    """The updates of a graph: `nodes`, all that belongs to them, and `rules`, each with a `name`
    and `members`, `{"parameter", "gradient", "nodes"}`; None of a graph that updates nothing. The
    roles of these nodes, and the gradients of parameters, are put into the records.

    Linear in the number of nodes.
    """
    own = [r for r in records if r["computed"] and r["body"] is None]
    users: dict[int, list[int]] = {}
    for r in own:
        for x in r["inputs"]:
            users.setdefault(x, []).append(r["id"])
    lane = _lane(own, users)
    if not lane:
        return None
    ends = _ends(own, users, lane, records)
    to = _destinations(own, users, lane, ends)
    members: dict[int, list[int]] = {}
    for i in sorted(lane):
        if to[i] not in (NOWHERE, SHARED):
            members.setdefault(to[i], []).append(i)
    rules: dict[Hashable, Record] = {}
    for gradient, nodes in members.items():
        parameter = _parameter(nodes, gradient, lane, records)
        if parameter is None:
            continue
        key = _rule(nodes, gradient, parameter, lane, records)
        rule = rules.setdefault(key, {"name": _name(nodes, records), "members": []})
        rule["members"].append({"parameter": parameter, "gradient": gradient, "nodes": nodes})
    if not rules:
        return None
    for i in lane:
        if records[i]["role"] == "forward":
            records[i]["role"] = "update"
    for rule in rules.values():
        rule["members"].sort(key=lambda m: m["parameter"])
        for m in rule["members"]:
            records[m["parameter"]]["gradient"] = m["gradient"]
    return {"nodes": sorted(lane), "rules": list(rules.values())}


def _lane(own: Sequence[Record], users: dict[int, list[int]]) -> set[int]:
    """The nodes that update."""
    lane: set[int] = set()
    needed: set[int] = set()  # by a gradient
    for r in reversed(own):
        i, above = r["id"], users.get(r["id"], ())
        if any(u in needed for u in above) or r["role"] == "gradient":
            needed.add(i)
        elif r["role"] == "update" or (above and all(u in lane for u in above)):
            lane.add(i)
    return lane


def _ends(
    own: Sequence[Record], users: dict[int, list[int]], lane: set[int], records: Sequence[Record]
) -> dict[int, int]:
    """For the last nodes of updates the gradient they are made of: the nearest one, of their own
    type if there are several, since a norm of all gradients lies further off."""
    found: dict[int, int] = {}
    for r in own:
        i = r["id"]
        if i not in lane or any(u in lane for u in users.get(i, ())):
            continue
        level, seen = [i], {i}
        while level and i not in found:
            near = [
                x
                for at in level
                for x in records[at]["inputs"]
                if x not in lane and records[x]["role"] == "gradient"
            ]
            fitting = [x for x in near if records[x]["type"] == r["type"]]
            if fitting or len(set(near)) == 1:
                found[i] = (fitting or near)[0]
            elif near:
                break  # a value of all gradients
            below: list[int] = []
            for at in level:
                for x in records[at]["inputs"]:
                    if x in lane and x not in seen:
                        seen.add(x)
                        below.append(x)
            level = below
    return found


def _destinations(
    own: Sequence[Record], users: dict[int, list[int]], lane: set[int], ends: dict[int, int]
) -> dict[int, int]:
    """For each node that updates the gradient of the one parameter it leads to, or `SHARED`."""
    to: dict[int, int] = {}
    for r in reversed(own):
        i = r["id"]
        if i not in lane:
            continue
        reached = {to[u] for u in users.get(i, ()) if u in lane}
        if not reached:
            to[i] = ends.get(i, NOWHERE)
        else:
            reached.discard(NOWHERE)
            to[i] = reached.pop() if len(reached) == 1 else SHARED if reached else NOWHERE
    return to


def _parameter(
    nodes: Sequence[int], gradient: int, lane: set[int], records: Sequence[Record]
) -> int | None:
    """What is updated: the input of the gradient's type that the rest of the graph uses as well."""
    wanted = records[gradient]["type"]
    for i in reversed(nodes):
        for x in records[i]["inputs"]:
            r = records[x]
            if x not in lane and r["role"] in ("input", "parameter") and r["type"] == wanted:
                return x
    return None


def _rule(
    nodes: Sequence[int],
    gradient: int,
    parameter: int,
    lane: set[int],
    records: Sequence[Record],
) -> Hashable:
    """Equal for updates that are equal but for shapes."""
    place: dict[int, Hashable] = {gradient: "gradient", parameter: "parameter"}
    inside, leaves = set(nodes), 0
    lines: list[Hashable] = []
    for i in nodes:
        r = records[i]
        if not r["inputs"]:
            if r["role"] == "constant":
                place[i] = r["attrs"]
            else:
                place[i] = f"state {leaves}"
                leaves += 1
            continue
        operands = tuple(_place(x, place, inside, records) for x in r["inputs"])
        if r["op"] in FITTING:
            place[i] = operands[0]
            continue
        place[i] = len(lines)
        attrs = r["attrs"] if r["family"] == "elementwise" else ""
        lines.append((r["op"], attrs, operands))
    return _name(nodes, records), tuple(lines)


def _place(
    x: int, place: dict[int, Hashable], inside: set[int], records: Sequence[Record]
) -> Hashable:
    """How an operand is told: shared ones of the same computation are the same."""
    if x not in place:
        r = records[x]
        while r["op"] in FITTING and r["inputs"]:
            r = records[r["inputs"][0]]
        place[x] = r["attrs"] if r["role"] == "constant" else ("shared", r["id"])
    return place[x]


def _name(nodes: Sequence[int], records: Sequence[Record]) -> str:
    """The name of the rule, where the scopes of most of its nodes tell it: `Adam(0.weight)`."""
    names: Counter[str] = Counter()
    for i in nodes:
        called = re.search(r"(?:^|[.\]])([A-Z]\w*?)(?:_\d+)?\([^()]*\)$", records[i]["scope"])
        if called is not None:
            names[called[1]] += 1
    return names.most_common(1)[0][0] if names else "update"
