"""What stands on a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.backends import Array
from retrograd.frontend.tensor import Tensor
from retrograd.ir import DType, Node, Shape, Source, TupleType
from retrograd.ops.control import items


class Entry:
    """One entry of a tape. `id` is its position; `parents` are the positions of its operands, in
    their order, an operand that was given twice twice."""

    __slots__ = ("hooks", "id", "node", "parents", "requires_grad")

    def __init__(self, id: int, node: Node, parents: tuple[int, ...], requires_grad: bool) -> None:
        self.id = id
        self.node = node
        self.parents = parents
        self.requires_grad = requires_grad
        self.hooks: tuple[Hook, ...] = ()

    @property
    def op(self) -> str:
        """The name of the operation; "input" for leaves and constants."""
        return self.node.op

    @property
    def name(self) -> str:
        """The name the leaf was given."""
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape

    @property
    def dtype(self) -> DType:
        return self.node.dtype

    @property
    def source(self) -> Source | None:
        """The user's line that recorded it."""
        return self.node.source

    @property
    def several(self) -> bool:
        """Whether it has several results, as a loop has; `item` entries take them apart."""
        return isinstance(self.node.type, TupleType)

    @property
    def value(self) -> Any:
        """The value, read-only; computed when it is looked at. A tuple of several results."""
        if self.several:
            return tuple([Tensor(x).numpy() for x in items(self.node)])
        return Tensor(self.node).numpy()

    def describe(self) -> str:
        """For messages: id, name, operation, type, source line."""
        return f"entry {self.id}, {self.node.describe()}"

    def __repr__(self) -> str:
        parents = ", ".join(f"%{p}" for p in self.parents)
        label = f" {self.name!r}" if self.name else ""
        frozen = "" if self.requires_grad else ", frozen"
        return f"%{self.id}{label}: {self.node.type} = {self.op}({parents}){frozen}"


class Hook:
    """A function that sees, and may replace, the cotangent of an entry; `remove()` ends that."""

    __slots__ = ("_entry", "see")

    def __init__(self, entry: Entry, see: Callable[[Array], Any]) -> None:
        self._entry = entry
        self.see = see
        entry.hooks = (*entry.hooks, self)

    def remove(self) -> None:
        """Do not call the function any more; removing twice does nothing."""
        self._entry.hooks = tuple([h for h in self._entry.hooks if h is not self])
