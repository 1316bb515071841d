"""What stands on a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.eager.leaf import PENDING, leaf_handle
from retrograd.eager.trace_buffer import materialize
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import DType, Node, Shape, Source, Trait, TupleType
from retrograd.ops.identity import StopGradient, items
from retrograd.runtime.backend import Array
from retrograd.tape.trace_buffer import TapeBuffer


class Entry:
    """One entry of a tape. `id` is its position; `parents` are the positions of its operands, in
    their order, an operand that was given twice twice. `is_given` says that it is a tensor from
    elsewhere, which operations of the tape have used."""

    __slots__ = (
        "_about",
        "_buffer",
        "_node",
        "hooks",
        "id",
        "is_given",
        "parents",
        "requires_grad",
    )

    def __init__(
        self,
        id: int,
        node: Node,
        parents: tuple[int, ...],
        requires_grad: bool,
        is_given: bool = False,
        buffer: TapeBuffer | None = None,
    ) -> None:
        self.id = id
        self._about = node  # which says what it is; over slots while it is in a buffer
        self._node = node if buffer is None else None
        self._buffer = buffer
        self.parents = parents
        self.requires_grad = requires_grad
        self.is_given = is_given
        self.hooks: tuple[Hook, ...] = ()

    @property
    def node(self) -> Node:
        """The node of the graph. Whoever asks has the tape go on with nodes."""
        if self._node is None and self._buffer is not None:
            buffer = self._buffer
            materialize([buffer])
            if self._node is None:  # the tape is gone, or was reset
                self.become(buffer.node_of(self._about))
        assert self._node is not None
        return self._node

    def become(self, node: Node) -> None:
        """Be an entry on nodes."""
        self._node = self._about = node
        self._buffer = None

    @property
    def about(self) -> Node:
        """The node, or what stands for it in a buffer: of the same operation and type."""
        return self._about

    @property
    def is_buffered(self) -> bool:
        """Whether it was not asked for its node, nor anything else on its tape."""
        return self._buffer is not None

    @property
    def op(self) -> str:
        """The name of the operation; "input" for leaves and for what was given, however it was
        computed elsewhere."""
        return "input" if self.is_given and self._about.inputs else self._about.op

    @property
    def is_input(self) -> bool:
        """Whether its value was given to the tape, by a leaf or from elsewhere."""
        given = self.is_given and bool(self._about.inputs)
        return given or Trait.INPUT in self._about.prim.traits

    @property
    def name(self) -> str:
        """The name the leaf was given."""
        return self._about.name

    @property
    def shape(self) -> Shape:
        return self._about.shape

    @property
    def dtype(self) -> DType:
        return self._about.dtype

    @property
    def source(self) -> Source | None:
        """The user's line that recorded it."""
        return self._about.source

    @property
    def several(self) -> bool:
        """Whether it has several results, as a loop has; `item` entries take them apart."""
        return isinstance(self._about.type, TupleType)

    @property
    def value(self) -> Any:
        """The value, read-only; computed when it is looked at. A tuple of several results."""
        buffer = self._buffer
        if buffer is not None and not self.several:
            return Tensor.numpy(buffer.handle_of(self._about))  # type: ignore[arg-type]
        if self.several:
            return tuple([Tensor(x).numpy() for x in items(self.node)])
        return Tensor(self.node).numpy()

    def describe(self) -> str:
        """For messages: id, name, operation, type, source line."""
        return f"entry {self.id}, {self._about.describe()}"

    def __repr__(self) -> str:
        parents = ", ".join(f"%{p}" for p in self.parents)
        label = f" {self.name!r}" if self.name else ""
        frozen = "" if self.requires_grad else ", frozen"
        return f"%{self.id}{label}: {self._about.type} = {self.op}({parents}){frozen}"


def wants_gradient(node: Node) -> bool:
    """Whether a tensor from elsewhere requires a gradient, or something it was computed from."""
    seen, todo = {node}, [node]
    while todo:
        x = todo.pop()
        if isinstance(x.prim, StopGradient) or not x.type.is_inexact:
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
