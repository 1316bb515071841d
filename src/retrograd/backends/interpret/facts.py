"""What is found out about a node once, as running it takes less time than finding it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from retrograd.ir import Node

T = TypeVar("T")


class Key:
    """A key of a table, whose hash is computed once: that of an operation takes a microsecond."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self.value == other.value)


_FACTS: WeakKeyDictionary[Node, dict[Any, Any]] = WeakKeyDictionary()


def once(node: Node, what: str, find: Callable[[Node], T]) -> T:
    """What `find` gives for a node, found once for as long as that lives; it does not hold it."""
    facts = _FACTS.get(node)
    if facts is None:
        facts = _FACTS[node] = {}
    if what not in facts:
        facts[what] = find(node)
    found: T = facts[what]
    return found
