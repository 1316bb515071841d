"""What stands on a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.backends import Array
from retrograd.frontend.leaves import PENDING, leaf_handle
from retrograd.frontend.tensor import Tensor
from retrograd.ir import DType, Node, Shape, Source, TupleType
from retrograd.ops.control import items


class Entry:
    """One entry of a tape. `id` is its position; `parents` are the positions of its operands, in
    their order, an operand that was given twice twice. `is_given` says that it is a tensor from
    elsewhere, which operations of the tape have used."""

    __slots__ = ("hooks", "id", "is_given", "node", "parents", "requires_grad")

    def __init__(
        self,
        id: int,
        node: Node,
        parents: tuple[int, ...],
        requires_grad: bool,
        is_given: bool = False,
    ) -> None:
        self.id = id
        self.node = node
        self.parents = parents
        self.requires_grad = requires_grad
        self.is_given = is_given
        self.hooks: tuple[Hook, ...] = ()

    @property
    def op(self) -> str:
        """The name of the operation; "input" for leaves and for what was given, however it was
        computed elsewhere."""
        return "input" if self.is_given and self.node.inputs else self.node.op

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


def wants_gradient(node: Node) -> bool:
    """Whether a tensor from elsewhere requires a gradient, or something it was computed from."""
    seen, todo = {node}, [node]
    while todo:
        x = todo.pop()
        if x.op == "stop_gradient" or not x.type.is_inexact:
            continue
        handle = leaf_handle(x) if not x.inputs else PENDING.get(x.id)
        if handle is not None:
            if handle._requires_grad:
                return True
            continue
        new = [i for i in x.inputs if i not in seen]
        seen.update(new)
        todo += new
    return False


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
