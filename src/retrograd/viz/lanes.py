"""The three lanes of a training step: forward, backward, update. In the third, parameters that are
updated by the same rule are one box with a count. `ui/src/lanes.ts` is the same for the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]

NAMES = ("forward", "backward", "update")
FORWARD, BACKWARD, UPDATE = range(len(NAMES))


class Lanes:
    """The lane of each node, and the scopes of what updates. Up to `few` nodes that updates share
    stand in the lane by themselves."""

    def __init__(
        self, nodes: Sequence[Record], second: Sequence[bool], updates: Record, few: int = 3
    ) -> None:
        self._updates = updates
        self._few = few
        updating = set(updates["nodes"])
        self.lane = [
            UPDATE if r["id"] in updating else BACKWARD if second[r["id"]] else FORWARD
            for r in nodes
        ]
        for r in nodes:
            if r["body"] is not None:
                self.lane[r["id"]] = self.lane[r["body"]]
        self.scopes: list[int] = []
        self.closed: set[int] = set()  # scopes that stay closed at first
        self._home: dict[int, int] = {}

    def build(self, add: Callable[..., int], nodes: Sequence[Record]) -> None:
        """Add the scopes of the lanes, and those of the rules: `add(path, name, parent, note)`."""
        self.scopes = [add(f"⟨{name}⟩", name, 0) for name in NAMES]
        lane = self.scopes[UPDATE]
        for k, rule in enumerate(self._updates["rules"]):
            members, name = rule["members"], rule["name"]
            many, path, home = len(members) > 1, f"⟨update⟩⟨{name} {k}⟩", lane
            if many:
                home = add(path, f"{name} × {len(members)}", lane, f"{len(members)} parameters")
                self.closed.add(home)
            for m in members:
                r = nodes[m["parameter"]]
                own = r["name"] or f"%{r['id']}" if many else f"{name} {r['name']}"
                scope = add(f"{path}⟨{r['id']}⟩", own, home, r["type"])
                self.closed.add(scope)
                self._home.update(dict.fromkeys(m["nodes"], scope))
        shared = [x for x in self._updates["nodes"] if x not in self._home]
        if sum(bool(nodes[x]["inputs"]) for x in shared) > self._few:
            scope = add("⟨update⟩⟨shared⟩", "shared by all", lane)
            self.closed.add(scope)
            self._home.update(dict.fromkeys(shared, scope))

    def scope_of(self, node: int) -> int:
        """The scope of a node that updates, the lane of any other."""
        return self._home.get(node, self.scopes[self.lane[node]])

    def is_home(self, node: int) -> bool:
        """Whether a node stands in a scope of the updates, not in one of the user's."""
        return self.lane[node] == UPDATE
