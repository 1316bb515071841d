"""Operations by name: how the parser, the node operators and the backends' tables find an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from retrograd.errors import FormatError

F = TypeVar("F")

REGISTRY: dict[str, Callable[..., Any]] = {}


def register(name: str, factory: Callable[..., Any]) -> None:
    """Make an op known by name. `factory(**attrs)` returns the op with these attributes."""
    if name in REGISTRY:
        raise ValueError(f"an op named {name!r} exists already")
    REGISTRY[name] = factory


def lookup(name: str) -> Callable[..., Any]:
    """The factory of the op named `name`; an unknown op is a `FormatError` that names it."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise FormatError(f"there is no op named {name!r}") from None


def entering(table: dict[str, Any]) -> Callable[..., Callable[[F], F]]:
    """A decorator that enters a function, or any value, in a table for the ops that it is given: by
    their classes, and elementwise ops, which share one, themselves. The table is looked up by
    `node.op`.

    >>> table = {}
    >>> lowers = entering(table)
    """

    def on(*ops: Any) -> Callable[[F], F]:
        def enter(f: F) -> F:
            for op in ops:
                if op.name in table:
                    raise ValueError(f"there is a rule for {op.name!r} already")
                table[op.name] = f
            return f

        return enter

    return on
