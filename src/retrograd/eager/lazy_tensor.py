"""`LazyTensor`: handles on values, their states, and evaluation when somebody looks.

An operation on a `LazyTensor` returns another `LazyTensor`, which stands for a trace node in a
buffer (`trace_buffer.py`) or, where a transform, a tape or a trace is at work, for a node. Values
are computed when they are needed, by one program for everything that is needed together; programs
are remembered by the structure of what they compute, so a loop compiles once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from retrograd.coming_from.hints import MissingName
from retrograd.eager.fast_path import EPOCH, HandleBase
from retrograd.eager.grad_fn import Output, full_history, grad_fn_of
from retrograd.eager.leaf import (
    FREED,
    PENDING,
    TOGETHER,
    VALUES,
    ConcreteLeaf,
    is_freed,
    known,
    known_as,
    leaf,
    leaf_handle,
    snapshot,
)
from retrograd.eager.listeners import block_listener, is_held, listening, registered
from retrograd.eager.modes import current_backend, is_tracing, is_unseen
from retrograd.eager.program_cache import (
    LOCK,
    Needed,
    cache_stats,
    clone_graph,
    hoist_scalars,
    program_for,
    required_nodes,
)
from retrograd.eager.trace_buffer import (
    BUFFERS,
    CURRENT,
    NOWHERE,
    TraceBuffer,
    end_run,
    execute,
    looked,
    materialize,
    materialized_node,
)
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.weak_types import is_weak as is_weak_node
from retrograd.eager.weak_types import weak, wide
from retrograd.errors import ArgumentError, DonatedError, IndexRangeError, LinAlgError, TraceError
from retrograd.ir import DType, Node, Provenance, Shape, Source, TensorType, as_dtype, made_by
from retrograd.ops.identity import StopGradient
from retrograd.runtime.backend import Array
from retrograd.runtime.device_array import ARRAYS, DeviceArray, adopted, host, resident
from retrograd.runtime.executors.nan_observer import CHECKED, check_given, checked
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.paired_program import on_real
from retrograd.shared import completed, contained, lock

__all__ = [
    "Array",
    "ConcreteLeaf",
    "LazyTensor",
    "cache_stats",
    "clone_graph",
    "evaluate",
    "is_taped",
    "leaf",
    "leaf_handle",
]


def is_taped(values: Sequence[Any]) -> bool:
    """Whether what is computed of these here is recorded on a tape: on one that records all that
    happens, or on one that holds some of them."""
    if is_tracing() or is_unseen():
        return False
    handles = [x for x in values if isinstance(x, LazyTensor)]
    return (
        block_listener() is not None
        or any(h._buffer.is_taped() for h in handles)
        or any(
            h._trace_node is None and listener.holds(_in_use(h.leaf_or_node))
            for listener in registered()
            for h in handles
        )
    )


def _in_use(node: Node) -> Node:
    """The node that operations have used for a leaf."""
    last = node.prim.snapshot if isinstance(node.prim, ConcreteLeaf) else None
    return node if last is None else last() or node


def materialize_all() -> None:
    """Let everything that is recorded go on as nodes."""
    materialize([buffer for ref in list(BUFFERS) if (buffer := ref()) is not None])


class State(Enum):
    """What a tensor stands for: which of the types that `_state` can have it has."""

    DEFERRED = "a `TraceNode`: an operation recorded in the trace buffer `_buffer`"
    NODE = "a `Node` of a graph whose value is not at hand"
    CONCRETE = "an array at hand: a `Node` that is a leaf, an `Output`, or no more than the array"
    FREED = "a trace node or a leaf that backward() has gone through: no gradient goes again"
    DONATED = "`Donated`: its memory went to a compiled function"


class Donated(NamedTuple):
    """What a donated tensor holds: which function took it, and where it was called."""

    function: str
    code: CodeType | None
    lasti: int

    def error(self) -> DonatedError:
        where = f", called at {Source(self.code, self.lasti)}" if self.code is not None else ""
        return DonatedError(
            f"this tensor was donated to the compiled function {self.function}{where}; its memory "
            f"may hold something else now. Use what {self.function} returned, or do not name the "
            "argument in donate"
        )


CHANGING = lock(90)  # who has a handle stand for something else; nothing is computed meanwhile
CHANGES = 1000  # how often other threads may change a tensor while its value is computed
FIELDS = ("_buffer", "_grad", "_requires_grad")  # filled in when somebody asks
# Kinds of states; to make `A | B` at each call takes longer than to compare with it.
RECORDED = (TraceNode, Output)
KNOWN = (TraceNode, Node, Output)  # more than an array
_slot = object.__getattribute__


class LazyTensor(HandleBase):
    """A handle on a value: what the user holds. `Tensor` adds the operators.

    What it stands for is in one slot, `_state`; `State` names what that can be. It is changed in
    this class alone, by `_become` and `_goes_on`, and by C where an operation or a call makes a new
    handle or takes the memory of one (`hold` in `tensor.c`, `commit` in `fast_call.c`).

    A result of `jit` is made with its array only: the other slots are filled in when somebody asks
    for them (`__getattr__`), and `_state` is a leaf from then on. Most results of a training step
    just go into the next step, and nobody does.
    """

    __slots__ = ()

    handle_class: ClassVar[type[LazyTensor]]  # the class results are wrapped in: Tensor

    _state: TraceNode | Node | Output | Array | Donated
    _buffer: TraceBuffer  # of a trace node, and of what is on a tape
    _array: Any  # that of a leaf in `_state`, where C looks for it; None: it has not asked

    def __init__(self, node: Node, requires_grad: bool = False) -> None:
        if not isinstance(node, Node):
            raise ArgumentError(
                f"a Tensor is made of data by rg.tensor(data), not of {type(node).__name__} itself"
            )
        self._become(node)
        self._requires_grad = requires_grad
        self._grad: LazyTensor | None = None
        self._epoch = EPOCH[0]
        self._register(node)

    if not TYPE_CHECKING:  # a type checker knows all attributes there are

        def __getattr__(self, name: str) -> Any:
            """A slot that is not set: filled in, where there is an array alone."""
            if name not in FIELDS:
                if name == "_array":
                    return None  # C has not asked
                raise MissingName(self, name)
            self._hydrate()
            return _slot(self, name)

    # -- changes of the state ---------------------------------------------------------------------
    def _become(
        self, state: TraceNode | Node | Output | Array | Donated, buffer: TraceBuffer = NOWHERE
    ) -> None:
        """Stand for something, from here on."""
        with CHANGING:
            self._array = None
            self._state = state
            self._buffer = buffer

    def _goes_on(
        self, before: TraceNode | Node, state: TraceNode | Node, buffer: TraceBuffer = NOWHERE
    ) -> bool:
        """Stand for the same in another way, unless it stands for something else by now: a thread
        that computes may come upon what another one changes in place."""
        with CHANGING:
            if self._state is not before:
                return False
            self._array = None  # as in `_become`, without another call: a step does this often
            self._state = state
            self._buffer = buffer
        return True

    @classmethod
    def deferred(cls, buffer: TraceBuffer, trace_node: TraceNode, requires_grad: bool) -> Any:
        """A handle on what was recorded in a buffer, which has yet to list it."""
        new = object.__new__(cls.handle_class)
        new._state = trace_node
        new._buffer = buffer
        new._requires_grad = requires_grad
        new._epoch = EPOCH[0]
        return new

    @classmethod
    def output(cls, output: Output, requires_grad: bool) -> Any:
        """A handle on a result of a call that has run."""
        new = object.__new__(cls.handle_class)
        new._state = output
        new._buffer = NOWHERE
        new._requires_grad = requires_grad
        new._epoch = EPOCH[0]
        return new

    @classmethod
    def dehydrated(cls, array: Array) -> Self:
        """A tensor that is no more than this array."""
        new = object.__new__(cls)
        new._state = array
        new._epoch = EPOCH[0]
        return new

    def is_dehydrated(self) -> bool:
        """Whether there is no more than an array, or than what says who took it."""
        return not isinstance(self._state, KNOWN)

    def bare_array(self) -> Array | None:
        """The array of what is no more than that."""
        state = self._state
        return state if isinstance(state, np.ndarray) else None

    def _hydrate(self) -> None:
        """Have a leaf for what is no more than an array."""
        with LOCK:
            state = self._state
            if isinstance(state, Donated):
                raise state.error()
            if isinstance(state, KNOWN):
                return  # it is there by now, or was never set
            prim = ConcreteLeaf(state)
            self._grad = None
            self._requires_grad = False
            self._become(Node(prim, (), prim.type))
            self._array = state

    def has_array(self) -> bool:
        """Whether the array is where C looks for it, or the tensor is gone."""
        return self.is_dehydrated() or self._array is not None

    def keep_array(self, untracked: bool = False) -> bool:
        """Have the array where C looks for it, if this stands for an array at hand and nothing
        else; whether it does. One that requires a gradient does for a call that is not tracked: C
        looks at it in no others."""
        found = self._at_hand(untracked)
        if type(found) is not np.ndarray:
            return False  # there is none, or it is on a device
        self._array = found
        return True

    def is_on_device(self) -> bool:
        """Whether this stands for an array on a device and nothing else."""
        return type(self._at_hand(False)) is DeviceArray

    def array_there(self, untracked: bool) -> Any:
        """The array for a program on a device, if this stands for one and nothing else; None where
        it has to be computed, or a call that takes it is recorded."""
        state: Any = self._state
        if type(state) is DeviceArray:
            return state
        if not isinstance(state, Node) or type(state.prim) is not ConcreteLeaf:
            return None
        found = self._at_hand(untracked)
        return found if found is None or type(found) is DeviceArray else self.value_there()

    def _at_hand(self, untracked: bool) -> Any:
        """The array, if this stands for nothing else."""
        if (self._requires_grad and not untracked) or self._buffer.is_taped():
            return None  # a call that takes it is recorded
        state = self._state
        is_leaf = isinstance(state, Node) and isinstance(state.prim, ConcreteLeaf)
        return state.prim.array if is_leaf else None  # type: ignore[union-attr]

    def donate(self, gone: Donated) -> None:
        """Keep nothing of what has its array at hand. It stays a tensor at every step."""
        state: Any = self._state
        if type(state) is DeviceArray:
            self._become(gone)  # no other slot is set
            return
        self._become(gone)
        for name in FIELDS:
            with suppress(AttributeError):
                delattr(self, name)

    def give_back(self, array: Array) -> None:
        """Stand for the array again, where what took it has failed."""
        self._become(array)
        del self._buffer

    def attach(self, buffer: TraceBuffer) -> None:
        """Be an entry of a tape's buffer, for an array at hand."""
        self._buffer = buffer

    @property
    def state(self) -> State:
        """What this stands for."""
        state = self._state
        if isinstance(state, Donated):
            return State.DONATED
        if not isinstance(state, KNOWN):
            return State.CONCRETE
        if self.is_freed:
            return State.FREED
        if isinstance(state, TraceNode):
            return State.DEFERRED
        at_hand = isinstance(state, Output) or isinstance(state.prim, ConcreteLeaf)
        return State.CONCRETE if at_hand else State.NODE

    @property
    def leaf_or_node(self) -> Node:
        """The node, or a leaf that has a grad_fn: for another handle on the same value."""
        while not isinstance(state := self._state, Node):
            if isinstance(state, TraceNode):
                return self.node
            if isinstance(state, Output):
                return state.leaf
            self._hydrate()
        return state

    def _register(self, node: Node) -> None:
        prim = node.prim
        if not isinstance(prim, ConcreteLeaf):
            PENDING[node.id] = self
        elif self._requires_grad and prim.grad_fn is None and leaf_handle(node) is None:
            # Functions may return what they were given: the first handle gets the gradient.
            prim.handle = weakref.ref(self)

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
        made = cls(leaf(array, name, type), requires_grad)
        if not requires_grad:
            made._array = array
        return made

    def share(self) -> None:
        """Note that others can edit the array of this leaf."""
        prim = self.leaf_or_node.prim
        assert isinstance(prim, ConcreteLeaf)
        prim.shared = True

    def give_memory(self) -> Array:
        """The array, shared with others from here on. What was recorded, and other handles, keep
        the memory of before."""
        if not self.is_shared:
            self.become_leaf(self.value().copy())
            self.share()
        return self.value()

    @property
    def is_shared(self) -> bool:
        """Whether others can edit the array."""
        state = self._state
        prim = state.prim if isinstance(state, Node) else None
        return isinstance(prim, ConcreteLeaf) and prim.shared

    @property
    def node(self) -> Node:
        """The node of the graph that this handle stands for. Of an array that others can edit it
        is a leaf with what that holds now."""
        if self._trace_node is not None:
            return materialized_node(self)
        if self._buffer.is_taped():  # what is made of the node is shown to its tape
            materialize([self._buffer])
        own = self.leaf_or_node
        if self.is_shared:
            return snapshot(own)
        if grad_fn_of(own) is not None:
            materialize()
            own = full_history(own)
            self._become(own, self._buffer)
            for listener in registered():
                listener.pass_over(own)
            self._register(own)
        return own

    _node = node

    @property
    def _type(self) -> TensorType:
        state: Any = self._state
        kind = type(state)
        if kind is Node or kind is TraceNode:
            return state.type
        if kind is Output:
            state = state.array
        if isinstance(state, ARRAYS):
            return TensorType(as_dtype(state.dtype), state.shape)
        return self.leaf_or_node.type

    @property
    def shape(self) -> Shape:
        """The sizes of the axes: a tuple of integers, in traced functions also of named sizes."""
        return self._type.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements, such as `rg.float32`."""
        return self._type.dtype

    def _known(self) -> Array | None:
        """The value, if it is at hand."""
        state = self._state
        if type(state) is Node:
            return known(state)
        if type(state) is TraceNode:
            return self._buffer.values.get(state)
        if type(state) is Output:
            return state.array
        return state if isinstance(state, ARRAYS) else known(self.leaf_or_node)

    @property
    def is_computed(self) -> bool:
        """Whether the value is at hand."""
        return self._known() is not None

    @property
    def is_freed(self) -> bool:
        """Whether `backward()` has run, so that the history is gone."""
        state = self._state
        if isinstance(state, RECORDED):
            return state.freed
        return is_freed(self.leaf_or_node)

    @property
    def is_source(self) -> bool:
        """Whether it was given, not computed, and gets the gradients of what it was given for."""
        state = self._state
        return isinstance(state, Node) and leaf_handle(state) is self

    def value(self) -> Array:
        """The array, computed if it was not yet, fetched if it is on a device."""
        return host(self.computed())

    def value_there(self) -> Any:
        """The array, for a program: one that is on a device stays there, and one that nobody can
        edit has a place for its copy on one from here on."""
        found = self.computed()
        state = self._state
        prim = state.prim if isinstance(state, Node) else None
        if type(found) is np.ndarray and isinstance(prim, ConcreteLeaf) and not prim.shared:
            found = prim.array = adopted(found)
            self._array = None
        return found

    def computed(self) -> Any:
        """The array, computed if it was not yet, wherever it is."""
        if CURRENT.run is not None:
            looked()
        found = self._known()
        if found is None and self._trace_node is not None:
            execute(self._buffer, (self,))
            found = self._known()
        for _ in range(CHANGES):
            if found is not None:
                return found
            # A node, or made one by another thread that was faster than `execute`; or another
            # thread has had it stand for something else meanwhile.
            evaluate([self])
            found = self._known()
        raise TraceError("this tensor is changed by another thread faster than it is computed")

    def settle(self, own: Node, array: Array) -> None:
        """Take the computed value of the node that it stands for, of a weak one in double
        precision; forget how it came about unless a gradient may ask."""
        VALUES[wide(own)] = array
        if not self._requires_grad and not is_held(own):
            weaker = is_weak_node(own)
            made = weak(known_as(array, own)) if weaker else known_as(array, own, is_freed(own))
            self._register(made)  # first: whoever sees the node may ask for its gradient
            if self._goes_on(own, made):
                PENDING.pop(own.id, None)

    def _settle(self, array: Array, trace_node: TraceNode, freed: bool = False) -> None:
        """The same, in a buffer, of what no gradient may ask for."""
        freed = trace_node.freed or freed
        self._goes_on(trace_node, known_as(array, trace_node.node, freed, trace_node.type))

    def _cut(self, trace_node: TraceNode, leaf: Node, buffer: TraceBuffer) -> None:
        """Go on as a handle on a leaf that knows its grad_fn; on a tape, it is still there."""
        self._goes_on(trace_node, leaf, buffer if buffer.is_taped() else NOWHERE)

    def _leave(self, buffer: TraceBuffer) -> None:
        """Go on as a handle on the node that stands for the trace node in the buffer."""
        trace_node = self._trace_node
        if trace_node is None or self._buffer is not buffer:
            return
        node = buffer.nodes.get(trace_node.node)
        if node is None:
            return  # another thread has had it stand for something recorded meanwhile
        if trace_node.freed:
            FREED.add(node)
        if not self._goes_on(trace_node, node):
            return
        self._register(node)
        if not buffer.ordered:
            for listener in registered():  # it is not part of what they record from here on
                listener.pass_over(node)

    def own(self) -> None:
        """Belong to the function that is being called: it may be changed in place."""
        self._epoch = EPOCH[0]

    def rebind(self, new: LazyTensor) -> None:
        """Stand for what a new handle, which nobody else has, stands for."""
        with CHANGING:
            before = self._state
            self._exchange(new)
        if isinstance(before, Node):
            PENDING.pop(before.id, None)
        if isinstance(state := self._state, Node):
            self._register(state)

    def replace(self, array: Array) -> None:
        """Become a leaf holding another array: what an optimizer does to a parameter."""
        completed(lambda: self.replace_within(array))

    def replace_within(self, array: Array) -> None:
        """The same as a part of what is `completed`: it may be done again."""
        own = self._state
        if not (isinstance(own, Node) and leaf_handle(own) is self):
            self.become_leaf(array)
            return
        old: Any = own.prim
        old.replaced, old.handle = True, None
        same = (array.shape, array.dtype) == (old.array.shape, old.array.dtype)
        new = known_as(array, own, type=old.type if same else None)
        if array is old.array:
            new.prim.shared = old.shared  # type: ignore[attr-defined]
        if self._requires_grad:
            new.prim.handle = weakref.ref(self)  # type: ignore[attr-defined]
        self._become(new)

    def evaluate_with(self, others: list[weakref.ref[Any]]) -> None:
        """Be computed along with these: a loss and its gradients."""
        others.append(weakref.ref(self))
        TOGETHER[self.leaf_or_node] = others

    def tie(self, gradient: LazyTensor) -> None:
        """Be computed along with the loss that a gradient came from, as that gradient is."""
        mine, other = self._state, gradient._state
        if isinstance(mine, TraceNode) and isinstance(other, TraceNode):
            mine.loss = other.loss
        elif isinstance(mine, Node) and isinstance(other, Node) and other in TOGETHER:
            self.evaluate_with(TOGETHER[other])

    def free_history(self) -> None:
        """Become a constant through which no gradient can go, after `backward()`; on a tape, which
        holds the history, it stays what it is."""
        state = self._state
        if self._buffer.is_taped() or (
            not isinstance(state, TraceNode) and listening() and is_held(self.leaf_or_node)
        ):
            return
        self._requires_grad = False
        if isinstance(state, Output):
            self._become(state.without_history())
            return
        array = self._known()
        if isinstance(state, TraceNode) and array is None:
            with self._buffer.lock:  # which another thread may be computing
                if self._state is state:
                    self._become(state.free_history(), self._buffer)
                    return
            self.free_history()
            return
        if array is not None:
            self.become_leaf(array, freed=True)
            return
        node = self.node
        with made_by(Provenance(node.scope, node.source, node.origin)):
            after = StopGradient()(node)
        FREED.add(after)
        self._stand_for(after)

    def become_leaf(self, array: Array, freed: bool = False) -> None:
        """Stand for an array at hand from here on."""
        state = self._state
        node = state.node if isinstance(state, TraceNode) else self.leaf_or_node
        made = known_as(array, node, freed)
        if isinstance(node.prim, ConcreteLeaf) and node.prim.array is array:
            made.prim.shared = node.prim.shared  # type: ignore[attr-defined]
        self._stand_for(made)

    def _stand_for(self, node: Node) -> None:
        if isinstance(self._state, Node):
            PENDING.pop(self._state.id, None)
        self._register(node)  # first: whoever sees the node may ask for its gradient
        self._become(node)


def is_weak(x: Any) -> bool:
    """Whether it is a tensor that takes the dtype of what it meets."""
    return isinstance(x, LazyTensor) and is_weak_node(x._state)


def exact_value(x: LazyTensor) -> Array:
    """The value of a weak tensor in double precision."""
    x.value()
    found = known(wide(x.leaf_or_node))
    assert found is not None
    return found


def evaluate(handles: Iterable[LazyTensor]) -> None:
    """Compute everything the handles stand for: in one program what is in one buffer, and in
    another what stands for nodes.

    Other handles that are alive and wait for something computed on the way get their values too,
    so nothing that somebody holds is computed twice. What comes next is another recording.
    """
    end_run()
    nodes: list[LazyTensor] = []
    buffers: dict[TraceBuffer, list[LazyTensor]] = {}
    for h in handles:
        if h._trace_node is None:
            nodes.append(h)
        else:
            buffers.setdefault(h._buffer, []).append(h)
    for buffer, members in buffers.items():
        execute(buffer, members)
    wanted = {node: h for h in nodes if (node := _unknown(h)) is not None}
    if wanted:
        CURRENT.buffer.close()  # a look ends a recording
        _run(wanted)


def _unknown(h: LazyTensor) -> Node | None:
    """The node of a handle if its value is not at hand. Looked at once: another thread may be
    giving the handle its value, after which it stands for another node."""
    node = h.leaf_or_node
    return node if known(node) is None else None


@contained
def _run(wanted: dict[Node, LazyTensor]) -> None:
    """Compute nodes, and give them to the handles that wait for them."""
    what = required_nodes([wide(node) for node in wanted], known)
    held = [h for h in (PENDING.get(node.id) for node in what.order) if h is not None]
    nodes = (*wanted, *(state for h in held if isinstance(state := h._state, Node)))
    groups = {id(refs): refs for node in nodes if (refs := TOGETHER.get(node)) is not None}
    others = [h for refs in groups.values() for ref in refs if (h := ref()) is not None]
    for h in (*held, *others):
        if h._trace_node is None and (node := _unknown(h)) is not None:
            wanted.setdefault(node, h)
    targets = list(dict.fromkeys(map(wide, wanted)))
    if others:
        what = required_nodes(targets, known)
    if current_backend() == CHECKED:
        results = _looked_at(what, targets)
    else:
        program, scalars = program_for(what, targets)
        arrays = [known(x) for x in what.inputs] + [c.prim.value for c in scalars]  # type: ignore[attr-defined]
        try:
            results = resident(program)(arrays)
        except (IndexRangeError, LinAlgError):
            # The program may have been made for another line of the user's that does the same.
            on_real(hoist_scalars(what.inputs, scalars, targets), OpByOpExecutor)(arrays)  # type: ignore[arg-type]
            raise
    found = dict(zip(targets, results, strict=True))
    for node, handle in list(wanted.items()):
        if handle._state is node:
            handle.settle(node, found[wide(node)])


def _looked_at(what: Needed, wanted: Iterable[Node]) -> list[Array]:
    """The values of nodes, each checked as it is computed. Not by a program: one that is remembered
    has other source lines, and does not know of what its nodes are the derivatives."""
    values: dict[Node, Array] = {x: host(known(x)) for x in what.inputs}
    for x, array in values.items():
        if isinstance(x.prim, ConcreteLeaf):
            check_given(x, array)
    for node in what.order:
        values[node] = checked(node, [values[x] for x in node.inputs], {})
    return [values[node] for node in wanted]
