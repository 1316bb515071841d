"""Plans of objects that are taken apart into trees as a whole, such as modules.

A plan says where each child of the tree stands in an object and everything below it, and what else
there is: it is the metadata of its tree, compared to tell whether two objects have one structure.
Native code that takes arguments apart follows it, see `transforms/jit/pytree_codec.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Static:
    """Configuration, as part of a structure: compared by type and value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        if isinstance(self.value, np.ndarray):
            return self.value.dtype == other.value.dtype and np.array_equal(self.value, other.value)
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        try:
            return hash((type(self.value), self.value))
        except TypeError:
            return hash(type(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


class ParameterLeaf(NamedTuple):
    """A child that is a parameter, of this class."""

    at: int
    trainable: bool
    cls: type

    def __repr__(self) -> str:
        return "*" if self.trainable else "frozen"


class Subtree(NamedTuple):
    """Any other tensor or pytree."""

    at: int

    def __repr__(self) -> str:
        return "*"


class Items(NamedTuple):
    """A list, tuple or dict."""

    kind: type
    keys: tuple[Any, ...]
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        pairs = dict(zip(self.keys, self.values, strict=True)) if self.kind is dict else self.values
        return repr(self.kind(pairs))


class ModuleNode(NamedTuple):
    """A module: its class and attributes. The number tells it from others of its kind."""

    cls: type
    number: int
    keys: tuple[str, ...]
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        """Brief, for messages that compare structures."""
        attributes = zip(self.keys, self.values, strict=True)
        shown = [f"{k}={v!r}" for k, v in attributes if k != "_buffers" or repr(v) != "{}"]
        return f"{self.cls.__name__}({', '.join(shown)})"


class Again(NamedTuple):
    """A module that was met before."""

    number: int


class Attributes(NamedTuple):
    """Of other objects: the attributes that are the children of their tree, and all others, which
    they have after they were put together."""

    children: tuple[str, ...]
    others: Mapping[str, Any]


OBJECTS: dict[type, Attributes] = {}  # by class
