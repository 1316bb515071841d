"""Operations by name: how the parser, the node operators and the backends' tables find an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import FormatError

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
