"""What is found out about a node once, as running it takes less time than finding it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from retrograd.ir import Node

T = TypeVar("T")


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
