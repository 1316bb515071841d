"""Leaves: nodes whose value is at hand; what is known of values, waiting handles and gradients."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from retrograd.eager.weak_types import is_weak
from retrograd.ir import Node, TensorType, Trait, as_dtype, provenance
from retrograd.ops.leaf import Leaf
from retrograd.runtime.backend import Array
from retrograd.runtime.device_array import host


class ConcreteLeaf(Leaf):
    """A graph input whose value is at hand. Compared by identity."""

    name = "input"
    traits = frozenset({Trait.INPUT, Trait.FREE})

    # Of the class where an instance has no other: a step of training makes leaves by the hundred.
    # The handle that requires a gradient, or did when something was computed from this.
    handle: weakref.ref[Any] | None = None
    replaced: bool = False  # it required one and has another value now: out of date
    # How it was computed, where a long recording was cut: a `GradFn`; and its node with history.
    grad_fn: Any = None
    whole: Node | None = None
    # Whether others can edit the array; then operations use what it holds when they are recorded: a
    # `Snapshot`, which is the leaf of this node as long as anybody needs it.
    shared: bool = False
    snapshot: weakref.ref[Node] | None = None

    def __init__(self, array: Array, type: TensorType | None = None, freed: bool = False) -> None:
        self.array = array
        self.type = type or TensorType(as_dtype(array.dtype), array.shape)
        self.freed = freed  # backward() went through it: no gradient does again

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


class Snapshot(ConcreteLeaf):
    """What an array that others can edit held when it was used. For the rest it is that leaf."""

    def __init__(self, source: ConcreteLeaf, array: Array) -> None:
        self.source = source
        self.array = array
        self.type = source.type
        self.grad_fn = self.whole = self.snapshot = None
        self.freed, self.shared = source.freed, False

    @property
    def handle(self) -> weakref.ref[Any] | None:
        return self.source.handle

    @handle.setter
    def handle(self, handle: weakref.ref[Any] | None) -> None:
        self.source.handle = handle

    @property
    def replaced(self) -> bool:  # type: ignore[override]
        return self.source.replaced


def snapshot(node: Node) -> Node:
    """The leaf that an operation uses in place of one whose array others can edit: the same one
    until they do."""
    prim: Any = node.prim
    array = np.array(prim.array, order="C")
    last = prim.snapshot() if prim.snapshot is not None else None
    if last is not None and _same(last.prim.array, array):
        return last
    new = Node(Snapshot(prim, array), (), prim.type, node.scope, node.source, None, node.name)
    prim.snapshot = weakref.ref(new)
    return new


def live(node: Node, array: Array) -> Array:
    """The array of a leaf; where others can edit it, theirs, for what reads it when it runs."""
    prim = node.prim
    return prim.source.array if isinstance(prim, Snapshot) else array


def _same(a: Array, b: Array) -> bool:
    """Whether contiguous arrays of one type have the same bits."""
    word = np.dtype(f"u{min(a.itemsize, 8)}")
    return bool((a.reshape(-1).view(word) == b.reshape(-1).view(word)).all())


# Values of nodes that were computed while a handle held them, for as long as the node lives; and
# the handles whose nodes wait to be computed.
VALUES: weakref.WeakKeyDictionary[Node, Array] = weakref.WeakKeyDictionary()
PENDING: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
# A loss and its gradients, of which one is not computed without the others: the handles, by the
# node of each.
TOGETHER: weakref.WeakKeyDictionary[Node, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()
# What tensors that are not computed stand for after `backward()`.
FREED: weakref.WeakSet[Node] = weakref.WeakSet()
# Stand-ins for arguments of functions that were traced, or mapped over samples, and are done.
LEAKED: weakref.WeakSet[Node] = weakref.WeakSet()


def leaf(array: Array, name: str = "", type: TensorType | None = None) -> Node:
    """A graph input whose value is at hand."""
    prim = ConcreteLeaf(array, type)
    where = provenance()
    return Node(prim, (), prim.type, where.scope, where.source, None, name)


def known_as(array: Array, node: Node, freed: bool = False, type: TensorType | None = None) -> Node:
    """A leaf that takes the place of a node whose value is at hand."""
    prim = ConcreteLeaf(array, type, freed)
    return Node(prim, (), prim.type, node.scope, node.source, None, node.name)


def known(node: Node) -> Array | None:
    """The value of a node, if it is at hand."""
    if isinstance(node.prim, ConcreteLeaf):
        return node.prim.array
    found = VALUES.get(node)
    if found is None and is_weak(node) and (exact := known(node.inputs[0])) is not None:
        found = VALUES[node] = node.prim.reference(host(exact))
    return found


def stands_for_any(node: Node) -> bool:
    """Whether a value depends on arguments of a function that is being traced, and has no number
    until that is called."""
    seen, todo = {node}, [node]
    for x in todo:  # which grows
        if known(x) is None:
            if Trait.INPUT in x.prim.traits:
                return True
            new = [y for y in x.inputs if y not in seen]
            seen.update(new)
            todo += new
    return False


def leaf_handle(node: Node) -> Any:
    """The handle, a `LazyTensor`, on a leaf that requires a gradient; None if there is none."""
    ref = node.prim.handle if isinstance(node.prim, ConcreteLeaf) else None
    handle = ref() if ref is not None else None
    return handle if handle is not None and handle._requires_grad else None


def is_freed(node: Node) -> bool:
    """Whether no gradient may be asked to go through a node, as one did."""
    return node.prim.freed if isinstance(node.prim, ConcreteLeaf) else node in FREED
