"""The scopes of a document as boxes, and which of them a picture shows closed at first.

The page decides the same in `ui/src/model.ts`, `lanes.ts` and `app.ts`; a test in a browser
compares both. What a user called, a function or a layer with a formula, is closed: it is what he
knows it as. Other scopes are open as long as all that is shown can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from retrograd.viz.lanes import Lanes
from retrograd.viz.scopes import prefixes

Document = dict[str, Any]
Record = dict[str, Any]

UNUSED = "⟨unused⟩"


class Readable(NamedTuple):
    """How much a picture shows at first."""

    small: int = 160  # nodes of a document of which only calls are closed
    boxes: int = 30  # that a larger one opens with, about
    leaves: int = 40  # inputs and constants of a scope beyond which they are put into groups
    group: int = 4  # leaves that are worth a group


@dataclass
class Scope:
    """A scope; the first of an outline is the outermost, of everything."""

    path: str  # names in ⟨ ⟩ are not of the user's program
    name: str
    parent: int
    children: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    call: Record | None = None  # what was called
    note: str = ""

    @property
    def is_call(self) -> bool:
        """Whether it is what a user called, or of no interest."""
        if self.call is None:
            return self.path == UNUSED
        return bool(self.call["formula"]) or self.call["scope"].endswith(")")


class Outline:
    """The scopes of a document as a tree, and the one that each node stands in."""

    def __init__(self, doc: Document, limits: Readable | None = None) -> None:
        self.limits = limits or Readable()
        self.nodes: list[Record] = doc["nodes"]
        self.calls: list[Record] = doc.get("calls", [])
        self.users = users_of(self.nodes)
        self.folded = folded(doc)
        self.second = _second(self.nodes, self.users)
        self.lanes = Lanes(self.nodes, self.second, doc["updates"]) if "updates" in doc else None
        self.unit = self._units()
        self.scopes: list[Scope] = []
        self._add("", "", -1)
        if self.lanes:
            self.lanes.build(self._add, self.nodes)
        self.scope_of = self._found()
        self._move_leaves()
        self.scope_of = [self.scope_of[u] for u in self.unit]
        for i, s in enumerate(self.scope_of):
            self.scopes[s].nodes.append(i)
        self._merge_only_children()
        self._name_calls()
        for at in range(len(self.scopes)):
            self._group_leaves(at)
        self._group_unused()

    def _add(self, path: str, name: str, parent: int, note: str = "") -> int:
        self.scopes.append(Scope(path, name, parent, note=note))
        if parent >= 0:
            self.scopes[parent].children.append(len(self.scopes) - 1)
        return len(self.scopes) - 1

    def _units(self) -> list[int]:
        """The forward node that each node is drawn beside, or itself."""
        unit = list(range(len(self.nodes)))
        pending = []
        for r in self.nodes:
            at = r["id"]
            while not self.lanes and self.nodes[at]["origin"] is not None:
                at = self.nodes[at]["origin"]
            unit[r["id"]] = at
            if self.second[r["id"]] and at == r["id"]:
                pending.append(at)
        for i in pending:  # leaves of gradients stand beside their first user
            if self.users[i] and not self.nodes[i]["inputs"]:
                unit[i] = unit[self.users[i][0]]
        return unit

    def _found(self) -> list[int]:
        """The scope of each node, made where there is none yet."""
        known: dict[tuple[int, str], int] = {}
        found = []
        for r in self.nodes:
            at = self.lanes.scope_of(r["id"]) if self.lanes else 0
            if not (self.lanes and self.lanes.is_home(r["id"])):
                lane, before = at, ""
                for prefix in prefixes(r["scope"]):
                    if (lane, prefix) not in known:
                        name = prefix[len(before) :].removeprefix(".")
                        known[lane, prefix] = self._add(prefix, name, at)
                    at, before = known[lane, prefix], prefix
            found.append(at)
        return found

    def _move_leaves(self) -> None:
        """Inputs without a scope, and other names of them, stand where they are used, if that is
        one scope."""
        depth = [0]
        for s in self.scopes[1:]:
            depth.append(depth[s.parent] + 1)

        def common(a: int, b: int) -> int:
            while a != b:
                if depth[a] >= depth[b]:
                    a = self.scopes[a].parent
                else:
                    b = self.scopes[b].parent
            return a

        for r in reversed(self.nodes):
            i = r["id"]
            stands = not r["inputs"] or r["op"] == "alias"
            home = self.lanes is not None and self.lanes.is_home(i)
            if not stands or r["scope"] or self.unit[i] != i or home:
                continue
            own = [u for u in self.users[i] if self._same_pass(u, i)]
            if own or (self.users[i] and not self.lanes):
                users = own or self.users[i]
                self.scope_of[i] = reduce(common, (self.scope_of[u] for u in users))

    def _same_pass(self, user: int, i: int) -> bool:
        if self.lanes:
            return self.lanes.lane[user] == self.lanes.lane[i]
        return not self.second[user] or self.second[i]

    def _merge_only_children(self) -> None:
        """A scope that holds one scope and nothing else is shown as one: model.layers."""
        for at, s in enumerate(self.scopes):
            if at == 0 or s.parent < 0 or s.path.startswith("⟨"):
                continue
            while len(s.children) == 1 and not s.nodes:
                child = self.scopes[s.children[0]]
                outer = self.scopes[s.parent].path
                s.name = child.path[0 if outer.startswith("⟨") else len(outer) :].removeprefix(".")
                s.path, s.children, s.nodes = child.path, child.children, child.nodes
                for c in s.children:
                    self.scopes[c].parent = at
                for x in s.nodes:
                    self.scope_of[x] = at
                child.parent, child.nodes, child.children = -2, [], []  # no longer there

    def _name_calls(self) -> None:
        """Calls and layers by what was called."""
        known = {c["scope"]: c for c in self.calls}
        for s in self.scopes:
            s.call = known.get(s.path)
            if s.call is None:
                continue
            name, of = s.call["name"], s.call["of"]
            if s.path.endswith(")"):
                s.name = f"{name}: {of}" if of else name
            elif s.name != name:
                s.name += f" · {name}"
        if not self.lanes:
            return
        for s in self.scopes:  # rules have the formula of the calls that their nodes are part of
            if s.path.startswith("⟨update⟩⟨") and s.path != "⟨update⟩⟨shared⟩":
                inside = s.nodes or [x for c in s.children for x in self.scopes[c].nodes]
                found = (known.get(self.nodes[x]["scope"]) for x in inside)
                s.call = next((c for c in found if c and c["formula"]), s.call)

    def _group_leaves(self, at: int) -> None:
        """Many inputs and constants of a scope, by the first part of their names."""
        scope = self.scopes[at]
        leaves = [x for x in self._members(scope) if not self.nodes[x]["inputs"]]
        if len(leaves) <= self.limits.leaves:
            return
        groups: dict[str, list[int]] = {}
        for x in leaves:
            r = self.nodes[x]
            name = r["name"].split("[")[0].split(".")[0] or "inputs"
            groups.setdefault("constants" if r["role"] == "constant" else name, []).append(x)
        homes: dict[int, int] = {}
        for name, members in groups.items():
            if len(members) >= self.limits.group:
                home = self._add(f"{scope.path}⟨{name}⟩", name, at)
                homes.update(dict.fromkeys(members, home))
        self._move(homes, at)

    def _group_unused(self) -> None:
        """Inputs that nothing reads, and constants that are outputs only."""
        unused = [
            x for x in self.scopes[0].nodes
            if self.unit[x] == x and not self.nodes[x]["inputs"] and not self.users[x]
        ]  # fmt: skip
        if self.limits.group <= len(unused) != len(self.nodes):
            self._move(dict.fromkeys(unused, self._add(UNUSED, "not used", 0)), 0)

    def _move(self, homes: Mapping[int, int], source: int) -> None:
        """Move nodes, and what stands beside them, into other scopes."""
        kept = []
        for x in self.scopes[source].nodes:
            home = homes.get(self.unit[x])
            if home is None:
                kept.append(x)
            else:
                self.scope_of[x] = home
                self.scopes[home].nodes.append(x)
        self.scopes[source].nodes = kept

    def _members(self, scope: Scope) -> list[int]:
        """The nodes of a scope that stand there by themselves."""
        return [x for x in scope.nodes if self.unit[x] == x and x not in self.folded]

    # -- what is closed ----------------------------------------------------------------------------

    def opened(self) -> list[bool]:
        """Whether each scope is open at first."""
        if len(self.nodes) <= self.limits.small and not self.lanes:
            return [at == 0 or not s.is_call for at, s in enumerate(self.scopes)]
        return self._few()

    def _few(self) -> list[bool]:
        """The outer scopes first, as long as the whole can be read; of those that are alike, such
        as the layers of a network, all or none."""
        scopes, lanes = self.scopes, self.lanes
        size = [len(s.children) + len(self._members(s)) for s in scopes]
        first = lanes.scopes if lanes else [0]
        opened = [False] * len(scopes)
        for at in (0, *first):
            opened[at] = True
        shown = sum(size[at] for at in first)
        level = [c for at in first for c in scopes[at].children]
        while level:
            alike: dict[tuple[int, int, str], list[int]] = {}
            for at in sorted(level, key=lambda at: size[at]):
                s = scopes[at]
                if not s.is_call and not (lanes and at in lanes.closed):
                    kind = s.parent, size[at], s.call["name"] if s.call else ""
                    alike.setdefault(kind, []).append(at)
            level = []
            for same in alike.values():
                more = sum(size[at] - 1 for at in same)
                if shown + more + 1 <= self.limits.boxes:
                    shown += more
                    for at in same:
                        opened[at] = True
                        level += scopes[at].children
        return opened

    def boxes(self) -> list[int | None]:
        """For each node the closed scope that it is shown as; None of one that is shown itself."""
        opened = self.opened()
        standing: list[int | None] = [None] * len(self.scopes)
        todo = [0]
        while todo:
            at = todo.pop()
            for c in self.scopes[at].children:
                standing[c] = standing[at] if standing[at] is not None else None if opened[c] else c
                todo.append(c)
        return [standing[s] for s in self.scope_of]


def users_of(nodes: Sequence[Record]) -> list[list[int]]:
    """The nodes that read each node, once for each use."""
    users: list[list[int]] = [[] for _ in nodes]
    for r in nodes:
        for x in r["inputs"]:
            users[x].append(r["id"])
    return users


def folded(doc: Document) -> set[int]:
    """Constants that are shown in their users' titles."""
    used = {x for r in doc["nodes"] for x in r["inputs"]}
    return {
        r["id"]
        for r in doc["nodes"]
        if r["role"] == "constant" and r["id"] in used and not r["outputs"]
    }


def _second(nodes: Sequence[Record], users: Sequence[Sequence[int]]) -> list[bool]:
    """Whether each node is of a backward pass; so are leaves that only such nodes use."""
    second = [r["order"] > 0 for r in nodes]
    for r in nodes:
        if r["role"] in ("constant", "input") and users[r["id"]]:
            second[r["id"]] = all(second[u] for u in users[r["id"]]) or second[r["id"]]
    return second
