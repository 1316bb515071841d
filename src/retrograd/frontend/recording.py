"""Recording by running: handles on nodes, and their evaluation when somebody looks.

An operation on a `Lazy` appends a node and returns another `Lazy`. Values are computed when they
are needed, by one program for everything that is needed together; programs are remembered by the
structure of what they compute, so a loop compiles once.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from retrograd.backends import Array, Program, compile_graph
from retrograd.errors import TraceError
from retrograd.frontend.context import current_backend
from retrograd.frontend.source import user_source
from retrograd.ir import (
    DType,
    Graph,
    Node,
    Provenance,
    Shape,
    TensorType,
    as_dtype,
    made_by,
    provenance,
    reachable,
)
from retrograd.ops.control import StopGradient
from retrograd.ops.leaf import Constant, Leaf, input_node
from retrograd.ops.shape import expand


class Data(Leaf):
    """A graph input whose value is at hand. Compared by identity."""

    name = "input"

    def __init__(self, array: Array, type: TensorType | None = None) -> None:
        self.array = array
        self.type = type or TensorType(as_dtype(array.dtype), array.shape)

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


_LOCK = threading.RLock()

# Values of nodes that were computed while a handle held them, for as long as the node lives; and
# the handles whose nodes wait to be computed.
VALUES: weakref.WeakKeyDictionary[Node, Array] = weakref.WeakKeyDictionary()
PENDING: weakref.WeakValueDictionary[int, Lazy] = weakref.WeakValueDictionary()
# The handles on leaves that require a gradient, or did when something was computed from them.
LEAVES: weakref.WeakKeyDictionary[Node, weakref.ref[Lazy]] = weakref.WeakKeyDictionary()
# Leaves that required a gradient and have another value now: what starts from them is out of date.
REPLACED: weakref.WeakSet[Node] = weakref.WeakSet()
# What tensors stand for after `backward()`: no gradient goes through them a second time.
SPENT: weakref.WeakSet[Node] = weakref.WeakSet()


def leaf_handle(node: Node) -> Lazy | None:
    """The handle on a leaf that requires a gradient."""
    found = LEAVES.get(node)
    handle = found() if found is not None else None
    return handle if handle is not None and handle._requires_grad else None


_RECORDERS: tuple[weakref.ref[Any], ...] = ()


def recorders() -> list[Any]:
    """The tapes that are alive: each is shown every result of a library function."""
    return [tape for tape in [ref() for ref in _RECORDERS] if tape is not None]


def add_recorder(tape: Any) -> None:
    """Show results to a tape for as long as it lives. The tuple is replaced, never changed, so that
    other threads may be going through it."""
    global _RECORDERS
    with _LOCK:
        _RECORDERS = (*[ref for ref in _RECORDERS if ref() is not None], weakref.ref(tape))


class Lazy:
    """A handle on a node: what the user holds. `Tensor` adds the operators."""

    __slots__ = ("__weakref__", "_grad", "_node", "_requires_grad", "_root", "_spent")

    handle_class: ClassVar[type[Lazy]]  # the class results are wrapped in: Tensor

    def __init__(self, node: Node, requires_grad: bool = False) -> None:
        self._node = node
        self._requires_grad = requires_grad
        self._grad: Lazy | None = None
        self._spent = False  # backward() has run, its history is gone
        self._root: weakref.ref[Lazy] | None = None  # a gradient's root: computed along with it
        self._register()

    def _register(self) -> None:
        if not isinstance(self._node.prim, Data):
            PENDING[self._node.id] = self
        elif self._requires_grad and leaf_handle(self._node) is None:
            # Functions may return what they were given: the first handle gets the gradient.
            LEAVES[self._node] = weakref.ref(self)

    @classmethod
    def of(
        cls,
        array: Array,
        requires_grad: bool = False,
        name: str = "",
        type: TensorType | None = None,
    ) -> Self:
        """A handle on an array that is at hand; the array is not copied. `type` is its type, where
        the caller knows it already."""
        return cls(leaf(array, name, type), requires_grad)

    @property
    def node(self) -> Node:
        """The node of the graph that this handle stands for."""
        return self._node

    @property
    def shape(self) -> Shape:
        return self._node.type.shape

    @property
    def dtype(self) -> DType:
        return self._node.type.dtype

    @property
    def is_computed(self) -> bool:
        """Whether the value is at hand."""
        return _known(self._node) is not None

    @property
    def is_spent(self) -> bool:
        """Whether `backward()` has run, so that the history is gone."""
        return self._spent

    def value(self) -> Array:
        """The array, computed if it was not yet."""
        found = _known(self._node)
        if found is None:
            evaluate([self])
            found = _known(self._node)
            assert found is not None
        return found

    def settle(self, array: Array) -> None:
        """Take the computed value; forget how it came about unless a gradient may ask."""
        VALUES[self._node] = array
        if not self._requires_grad:
            self.become_leaf(array)

    def replace(self, array: Array) -> None:
        """Become a leaf holding another array: what an optimizer does to a parameter."""
        if leaf_handle(self._node) is self:
            REPLACED.add(self._node)
            del LEAVES[self._node]
        self.become_leaf(array)

    def spend(self) -> None:
        """Become a constant through which no gradient can go, after `backward()`."""
        self._spent, self._requires_grad = True, False
        node, array = self._node, _known(self._node)
        with made_by(Provenance(node.scope, node.source, node.origin)):
            self._stand_for(StopGradient()(node) if array is None else _known_as(array, node))

    def become_leaf(self, array: Array) -> None:
        """Stand for an array at hand from here on."""
        self._stand_for(_known_as(array, self._node))

    def _stand_for(self, node: Node) -> None:
        PENDING.pop(self._node.id, None)
        self._node = node
        if self._spent:
            SPENT.add(node)
        self._register()


def leaf(array: Array, name: str = "", type: TensorType | None = None) -> Node:
    """A graph input whose value is at hand."""
    prim = Data(array, type)
    where = provenance()
    return Node(prim, (), prim.type, where.scope, where.source, None, name)


def _known_as(array: Array, node: Node) -> Node:
    """A leaf that takes the place of a node whose value is at hand."""
    prim = Data(array)
    return Node(prim, (), prim.type, node.scope, node.source, None, node.name)


def _known(node: Node) -> Array | None:
    return node.prim.array if isinstance(node.prim, Data) else VALUES.get(node)


def evaluate(handles: Iterable[Lazy]) -> None:
    """Compute everything the handles stand for in one program.

    Other handles that are alive and wait for nodes computed on the way get their values too, so
    nothing that somebody holds is computed twice.
    """
    wanted = {h._node: h for h in handles if _known(h._node) is None}
    if not wanted:
        return
    order, inputs = _needed(wanted)
    held = [h for h in (PENDING.get(node.id) for node in order) if h is not None]
    roots = [h for h in (g._root() for g in held if g._root is not None) if h is not None]
    for h in (*held, *roots):
        if _known(h._node) is None:
            wanted.setdefault(h._node, h)
    if roots:
        order, inputs = _needed(wanted)
    key, scalars = _key(order, inputs, wanted)
    program = _program(key, inputs, scalars, list(wanted))
    arrays = [_known(x) for x in inputs] + [c.prim.value for c in scalars]  # type: ignore[attr-defined]
    results = program(arrays)  # type: ignore[arg-type]
    for (node, handle), array in zip(list(wanted.items()), results, strict=True):
        if handle._node is node:
            handle.settle(array)


def _needed(outputs: Iterable[Node]) -> tuple[list[Node], list[Node]]:
    """What must be computed, in order, and the nodes at hand that this starts from."""
    seen, todo = set(outputs), list(outputs)
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen.add(x)
                if _known(x) is None:
                    todo.append(x)
    order = sorted((node for node in seen if _known(node) is None), key=lambda n: n.id)
    # Inputs by first use: when they were made differs from one step of a loop to the next.
    computed = set(order)
    inputs = list(dict.fromkeys(x for n in order for x in n.inputs if x not in computed))
    for node in order:
        if node.op == "input":
            raise TraceError(
                f"a number is needed at {user_source()}, but it depends on {node.describe()}, "
                "which stands for any array of this type while the function is traced. Use "
                "operations such as rg.where instead of Python's if, float() or .numpy(); make the "
                "argument static (static_argnames); or call the function without jit, vmap or trace"
            )
    return order, inputs


# Values that simplification knows what to do with stay in the program; every other number, such as
# a learning rate, is an argument, so that changing it does not compile again.
_LITERAL = frozenset({0.0, 1.0, -1.0, 2.0, 0.5})


def _is_argument(node: Node) -> bool:
    prim = node.prim
    return (
        isinstance(prim, Constant)
        and prim.value.ndim == 0
        and prim.value.dtype.kind == "f"
        and float(prim.value) not in _LITERAL
    )


def _key(
    order: Sequence[Node], inputs: Sequence[Node], outputs: Iterable[Node]
) -> tuple[Any, list[Node]]:
    """The structure of a computation, equal for equal programs, and its numbers."""
    position = {x: i for i, x in enumerate(inputs)}
    body: list[Any] = [x.type for x in inputs]
    scalars = []
    for node in order:
        position[node] = len(position)
        if _is_argument(node):
            scalars.append(node)
            body.append(("number", node.type))
        else:
            body.append((node.prim, tuple([position[x] for x in node.inputs])))
    return (current_backend(), tuple(body), tuple([position[y] for y in outputs])), scalars


_PROGRAMS: OrderedDict[Any, Any] = OrderedDict()
_CAPACITY = 512
_COUNTS = {"hits": 0, "misses": 0}


def cache_stats() -> dict[str, int]:
    """How often an evaluation found its program (`hits`) or had to compile it (`misses`)."""
    return {**_COUNTS, "programs": len(_PROGRAMS)}


def _program(
    key: Any, inputs: Sequence[Node], scalars: Sequence[Node], outputs: Sequence[Node]
) -> Program:
    with _LOCK:
        found = _PROGRAMS.get(key)
        if found is not None:
            _COUNTS["hits"] += 1
            _PROGRAMS.move_to_end(key)
            return found
    program = compile_graph(_with_arguments(inputs, scalars, outputs), current_backend())
    with _LOCK:
        _COUNTS["misses"] += 1
        _PROGRAMS[key] = program
        while len(_PROGRAMS) > _CAPACITY:
            _PROGRAMS.popitem(last=False)
    return program


def _with_arguments(
    inputs: Sequence[Node], scalars: Sequence[Node], outputs: Sequence[Node]
) -> Graph:
    """The graph in which the given numbers are inputs."""
    numbers = {c: input_node(TensorType(c.dtype, ())) for c in scalars}
    wide = {c: expand(x, c.shape, tuple(range(c.type.rank))) for c, x in numbers.items()}
    return detached(inputs, outputs, wide, tuple(numbers.values()))


def detached(
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    replaced: Mapping[Node, Node] | None = None,
    extra: Sequence[Node] = (),
    name: str = "",
) -> Graph:
    """The graph on inputs of its own, with no reference to the nodes it was made of: whoever keeps
    it keeps no data and no history alive."""
    fresh = {x: input_node(x.type, x.name) for x in inputs}
    new = {**fresh, **(replaced or {})}
    for node in reachable(outputs, stop=new.keys()):
        if node not in new:
            origin = new.get(node.origin) if node.origin is not None else None
            new[node] = node.rebuilt([new[x] for x in node.inputs], origin)
    return Graph((*fresh.values(), *extra), [new[y] for y in outputs], name)
