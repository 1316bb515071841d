"""Calls in graphs: the nodes that one call of a public function made, as a scope.

Each node knows what the user called at his line (`source.py`). What made several nodes is shown as
one by text and pictures; it is no part of the structure of a graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from retrograd.ir.node import Node
from retrograd.ir.trait import Trait

MANY = 6  # operations of a gradient, beyond which that of a single operation is worth a box
Call = tuple[str, int]  # a scope, and the number of a call
_K = TypeVar("_K")


class Called(NamedTuple):
    """A call that nodes of a graph are part of: their scope, that of the module, and the name of
    the function as it is shown, "softmax()"; of the second in a scope "softmax_2()"."""

    scope: str
    shown: str

    @property
    def path(self) -> str:
        """The scope of the call within the module: "model.head.softmax()"."""
        return f"{self.scope}.{self.shown}" if self.scope else self.shown


def calls_of(nodes: Sequence[Node]) -> dict[Node, Called]:
    """The calls of a graph that are more than one operation, or have a long gradient, by node;
    gradients belong to the calls of what they are gradients of. One call that is all that a module
    computes is shown as the module, not as a call within it."""
    members: dict[Call, list[Node]] = {}
    back = Counter[Call]()
    calls, scopes = _Operations[Call](), _Operations[str]()
    for node in nodes:
        at = node.source
        key = (node.scope, at.call) if at is not None and at.called else None
        if key is not None:
            members.setdefault(key, []).append(node)
            back[key] += node.origin is not None and bool(node.inputs)
            calls.count(key, node)
        scopes.count(node.scope, node)
    found: dict[Node, Called] = {}
    taken = Counter[Call | tuple[str, str]]()
    for key, group in members.items():
        scope, at = key[0], group[0].source
        size = calls.of(key)
        if at is None or (size < 2 and back[key] <= MANY) or (scope and size == scopes.of(scope)):
            continue
        taken[scope, at.called] += 1
        k = taken[scope, at.called]
        shown = at.called if k == 1 else at.called.replace("(", f"_{k}(", 1)
        found.update(dict.fromkeys(group, Called(scope, shown)))
    return found


class _Operations(Generic[_K]):
    """How many operations there are of calls or in scopes: those at hand, or if these are more,
    those that gradients are of. What only moves, repeats or renames counts as part of another."""

    def __init__(self) -> None:
        self._forward = Counter[_K]()
        self._origins: dict[_K, set[Node]] = {}

    def count(self, key: _K, node: Node) -> None:
        """Enter a node of a graph."""
        if node.origin is None:
            self._forward[key] += _computes(node)
            return
        while node.origin is not None:
            node = node.origin
        if _computes(node):
            self._origins.setdefault(key, set()).add(node)

    def of(self, key: _K) -> int:
        """The number of operations."""
        return max(self._forward[key], len(self._origins.get(key, ())))


def _computes(node: Node) -> bool:
    return bool(node.inputs) and Trait.FREE not in node.prim.traits


_COUNTED = re.compile(r"_[0-9]+(?=\()")


def without_number(shown: str) -> str:
    """The name of a function without the number that tells it from others of its name in a scope.

    >>> without_number("softmax_2()")
    'softmax()'
    """
    return _COUNTED.sub("", shown, count=1)
