"""Recording by running: handles on values, and their evaluation when somebody looks.

An operation on a `LazyTensor` returns another `LazyTensor`, which stands for a form on a page
(`trace_buffer.py`) or, where a transform, a tape or a trace is at work, for a node. Values are
computed when they are needed, by one program for everything that is needed together; programs are
remembered by the structure of what they compute, so a loop compiles once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from retrograd.eager.fast_path import HandleBase
from retrograd.eager.grad_fn import full_history, past_of
from retrograd.eager.leaf import (
    FREED,
    PENDING,
    VALUES,
    ConcreteLeaf,
    is_freed,
    known,
    known_as,
    leaf,
    leaf_handle,
    snapshot,
)
from retrograd.eager.listeners import alive, on_tape
from retrograd.eager.modes import current_backend, current_tape, is_tracing, is_unseen
from retrograd.eager.program_cache import (
    LOCK,
    Needed,
    cache_stats,
    clone_graph,
    program_for,
    required_nodes,
)
from retrograd.eager.trace_buffer import (
    NOWHERE,
    PAGES,
    TraceBuffer,
    execute,
    materialize,
    materialized_node,
)
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.weak_types import is_weak as is_weak_node
from retrograd.eager.weak_types import weak, wide
from retrograd.errors import ArgumentError, DonatedError
from retrograd.ir import DType, Node, Provenance, Shape, Source, TensorType, made_by
from retrograd.ops.identity import StopGradient
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.nan_observer import CHECKED, check_given, checked
from retrograd.shared import completed, contained

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
        current_tape() is not None
        or any(h._page.is_taped() for h in handles)
        or any(h._form is None and tape.holds(_in_use(h._own)) for tape in alive() for h in handles)
    )


def _in_use(node: Node) -> Node:
    """The node that operations have used for a leaf."""
    last = node.prim.snapshot if isinstance(node.prim, ConcreteLeaf) else None
    return node if last is None else last() or node


def materialize_all() -> None:
    """Let everything that is recorded go on as nodes."""
    materialize([page for ref in list(PAGES) if (page := ref()) is not None])


class State(Enum):
    """What a tensor stands for."""

    DEFERRED = "a recorded operation: `_form` in the trace buffer `_page`"
    NODE = "a node of a graph, `_own`, whose value is not at hand"
    CONCRETE = "an array at hand: that of the leaf `_own`, or `_array` alone"
    FREED = "what backward() has gone through: a constant, through which no gradient goes again"
    DONATED = "nothing: its memory went to a compiled function; `_array` says to which"


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


SLOTS = ("_form", "_grad", "_own", "_page", "_array", "_requires_grad", "_root")
_slot = object.__getattribute__


class LazyTensor(HandleBase):
    """A handle on a value: what the user holds. `Tensor` adds the operators.

    It is in one of the states of `State`. Its slots say which, and are set here alone.

    A result of `jit` is made with its array only, `_array`: whatever else it has is filled in when
    somebody asks for it (`__getattr__`). Most results of a training step just go into the next
    step, and nobody does. `_array` of other tensors that are constants at hand is filled in in the
    same way; a tensor that changes what it stands for sets it to None.
    """

    __slots__ = ()

    handle_class: ClassVar[type[LazyTensor]]  # the class results are wrapped in: Tensor

    _form: TraceNode | None
    _page: TraceBuffer
    _own: Node  # where it stands for a form it has none, nor a `_grad` or `_root` before one is set
    _root: weakref.ref[LazyTensor] | None  # a gradient's root: computed along with it
    _array: Any  # the array of a constant that is at hand, or a `Donated`; None: look it up anew

    def __init__(self, node: Node, requires_grad: bool = False) -> None:
        if not isinstance(node, Node):
            raise ArgumentError(
                f"a Tensor is made of data by rg.tensor(data), not of {type(node).__name__} itself"
            )
        self._form = None
        self._page = NOWHERE
        self._own = node
        self._requires_grad = requires_grad
        self._grad: LazyTensor | None = None
        self._root = None
        self._register(node)

    if not TYPE_CHECKING:  # a type checker knows all attributes there are

        def __getattr__(self, name: str) -> Any:
            """A slot that is not set: filled in, where there is an array alone."""
            if name not in SLOTS:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
                )
            with LOCK:
                if name == "_array":
                    self._array = self._constant()
                else:
                    self._hydrate()
                return _slot(self, name)

    # -- changes of the state, and no array but `_array` ------------------------------------------
    @classmethod
    def deferred(cls, page: TraceBuffer, form: TraceNode, requires_grad: bool) -> Any:
        """A handle on what was recorded in a buffer, which has yet to list it."""
        new = object.__new__(cls.handle_class)
        new._form = form
        new._page = page
        new._requires_grad = requires_grad
        return new

    @classmethod
    def dehydrated(cls, array: Array) -> Self:
        """A tensor that is no more than this array."""
        new = object.__new__(cls)
        new._array = array
        return new

    def is_dehydrated(self) -> bool:
        """Whether there is nothing but what is in `_array`."""
        try:
            _slot(self, "_form")
        except AttributeError:
            return True
        return False

    def _hydrate(self) -> None:
        """Fill in the slots of what is no more than an array."""
        array = _slot(self, "_array")
        if type(array) is Donated:
            raise array.error()
        if not self.is_dehydrated():
            return  # it is there by now, or was never set
        prim = ConcreteLeaf(array)
        self._grad = self._root = None
        self._requires_grad = False
        self._page = NOWHERE
        self._own = Node(prim, (), prim.type)
        self._form = None

    def _constant(self) -> Array:
        """The array of a constant; AttributeError where there is none."""
        if _slot(self, "_form") is None and not (
            _slot(self, "_requires_grad") or _slot(self, "_page").is_taped()
        ):
            prim = _slot(self, "_own").prim
            if isinstance(prim, ConcreteLeaf):
                return prim.array
        raise AttributeError(name="_array", obj=self)

    def has_array(self) -> bool:
        """Whether the array is in `_array`, or what is there says that the tensor is gone."""
        try:
            return _slot(self, "_array") is not None
        except AttributeError:
            return False

    def keep_array(self) -> bool:
        """Have the array in `_array`, where this stands for an array at hand and nothing else;
        whether it does."""
        if (
            self._requires_grad
            or self._form is not None
            or not isinstance(self._own.prim, ConcreteLeaf)
        ):
            return False
        if self._page.is_taped():  # a call that takes it is recorded
            return False
        self._array = self._own.prim.array
        return True

    def donate(self, gone: Donated) -> None:
        """Keep nothing of what has its array in `_array`. It stays a tensor at every step: without
        `_form`, which goes first, it is what `_array` says."""
        for name in SLOTS:
            if name != "_array":
                with suppress(AttributeError):
                    delattr(self, name)
        self._array = gone

    def give_back(self, array: Array) -> None:
        """Stand for the array again, where what took it has failed."""
        self._array = array

    def attach(self, page: TraceBuffer) -> None:
        """Be an entry of a tape's buffer, for an array at hand."""
        self._page = page

    @property
    def state(self) -> State:
        """What this stands for."""
        if self.is_dehydrated():
            gone = type(_slot(self, "_array")) is Donated
            return State.DONATED if gone else State.CONCRETE
        if self.is_freed:
            return State.FREED
        if self._form is not None:
            return State.DEFERRED
        return State.CONCRETE if isinstance(self._own.prim, ConcreteLeaf) else State.NODE

    def _register(self, node: Node) -> None:
        prim = node.prim
        if not isinstance(prim, ConcreteLeaf):
            PENDING[node.id] = self
        elif self._requires_grad and prim.past is None and leaf_handle(node) is None:
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
        prim = self._own.prim
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
        prim = self._own.prim if self._form is None else None
        return isinstance(prim, ConcreteLeaf) and prim.shared

    @property
    def node(self) -> Node:
        """The node of the graph that this handle stands for. Of an array that others can edit it
        is a leaf with what that holds now."""
        if self._form is not None:
            return materialized_node(self)
        if self._page.is_taped():  # what is made of the node is shown to its tape
            materialize([self._page])
        own = self._own
        if self.is_shared:
            return snapshot(own)
        if past_of(own) is not None:
            materialize()
            self._own = own = full_history(own)
            for tape in alive():
                tape.pass_over(own)
            self._register(own)
        return own

    _node = node

    @property
    def leaf_or_node(self) -> Node:
        """The node, or a leaf that knows its past: for another handle on the same value."""
        return self._own if self._form is None else self.node

    @property
    def _type(self) -> TensorType:
        form = self._form
        return form.type if form is not None else self._own.type

    @property
    def shape(self) -> Shape:
        return self._type.shape

    @property
    def dtype(self) -> DType:
        return self._type.dtype

    def _known(self) -> Array | None:
        """The value, if it is at hand."""
        form = self._form
        return known(self._own) if form is None else self._page.values.get(form)

    @property
    def is_computed(self) -> bool:
        """Whether the value is at hand."""
        return self._known() is not None

    @property
    def is_freed(self) -> bool:
        """Whether `backward()` has run, so that the history is gone."""
        form = self._form
        return is_freed(self._own) if form is None else form.freed

    @property
    def is_source(self) -> bool:
        """Whether it was given, not computed, and gets the gradients of what it was given for."""
        return self._form is None and leaf_handle(self._own) is self

    def value(self) -> Array:
        """The array, computed if it was not yet."""
        found = self._known()
        if found is None and self._form is not None:
            execute(self._page, (self,))
            found = self._known()
        if found is None:  # a node, or made one by another thread that was faster than `execute`
            evaluate([self])
            found = self._known()
            assert found is not None
        return found

    def settle(self, array: Array) -> None:
        """Take the computed value, of a weak one in double precision; forget how it came about
        unless a gradient may ask."""
        own = self.node
        VALUES[wide(own)] = array
        if not self._requires_grad and not on_tape(own):
            if is_weak_node(own):
                self._stand_for(weak(known_as(array, own)))
            else:
                self.become_leaf(array, self.is_freed)

    def _settle(self, array: Array, form: TraceNode, freed: bool = False) -> None:
        """The same, on a page, of what no gradient may ask for."""
        self._own = known_as(array, form.node, form.freed or freed, form.type)
        self._form, self._page, self._root = None, NOWHERE, None

    def _cut(self, leaf: Node, page: TraceBuffer) -> None:
        """Go on as a handle on a leaf that knows its past; on a tape, it is still there."""
        self._own = leaf
        self._form, self._page, self._root = None, page if page.is_taped() else NOWHERE, None

    def _leave(self, page: TraceBuffer) -> None:
        """Go on as a handle on the node that stands for the form on the page."""
        form = self._form
        if form is None or self._page is not page:
            return
        self._own = node = page.nodes[form.node]
        self._form, self._page, self._root = None, NOWHERE, None
        if form.freed:
            FREED.add(node)
        self._register(node)
        if not page.ordered:
            for tape in alive():  # it is not part of what they record from here on
                tape.pass_over(node)

    def replace(self, array: Array) -> None:
        """Become a leaf holding another array: what an optimizer does to a parameter."""
        before = self._own.prim if self.is_source else None
        completed(lambda: self._replace(before, array))

    def _replace(self, before: Any, array: Array) -> None:
        if before is not None:
            before.replaced, before.handle = True, None
        self.become_leaf(array)

    def evaluate_with(self, root: LazyTensor) -> None:
        """Be computed along with the root that this is a gradient of."""
        self._root = weakref.ref(root)

    def tie(self, gradient: LazyTensor) -> None:
        """Be computed along with the loss that a gradient came from, as that gradient is."""
        if self._form is not None and gradient._form is not None:
            self._form.loss = gradient._form.loss
        elif self._form is None and gradient._form is None:
            self._root = gradient._root

    def free_history(self) -> None:
        """Become a constant through which no gradient can go, after `backward()`; on a tape, which
        holds the history, it stays what it is."""
        if self._page.is_taped() or (self._form is None and on_tape(self._own)):
            return
        self._requires_grad = False
        form, array = self._form, self._known()
        if form is not None and array is None:
            self._form = form.free_history()
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
        form = self._form
        node = self._own if form is None else form.node
        made = known_as(array, node, freed)
        if isinstance(node.prim, ConcreteLeaf) and node.prim.array is array:
            made.prim.shared = node.prim.shared  # type: ignore[attr-defined]
        self._stand_for(made)

    def _stand_for(self, node: Node) -> None:
        if self._form is None:
            PENDING.pop(self._own.id, None)
        self._register(node)  # first: whoever sees the node may ask for its gradient
        self._array = None
        self._own = node
        self._form, self._page, self._root = None, NOWHERE, None


def is_weak(x: Any) -> bool:
    """Whether it is a tensor that takes the dtype of what it meets."""
    return isinstance(x, LazyTensor) and x._form is None and is_weak_node(x._own)


def exact_value(x: LazyTensor) -> Array:
    """The value of a weak tensor in double precision."""
    x.value()
    found = known(wide(x._own))
    assert found is not None
    return found


def evaluate(handles: Iterable[LazyTensor]) -> None:
    """Compute everything the handles stand for: in one program what is on one page, and in another
    what stands for nodes.

    Other handles that are alive and wait for something computed on the way get their values too,
    so nothing that somebody holds is computed twice.
    """
    nodes: list[LazyTensor] = []
    pages: dict[TraceBuffer, list[LazyTensor]] = {}
    for h in handles:
        if h._form is None:
            nodes.append(h)
        else:
            pages.setdefault(h._page, []).append(h)
    for page, members in pages.items():
        execute(page, members)
    wanted = {node: h for h in nodes if (node := _unknown(h)) is not None}
    if wanted:
        _run(wanted)


def _unknown(h: LazyTensor) -> Node | None:
    """The node of a handle if its value is not at hand. Looked at once: another thread may be
    giving the handle its value, after which it stands for another node."""
    node = h._own if h._form is None else h.node
    return node if known(node) is None else None


@contained
def _run(wanted: dict[Node, LazyTensor]) -> None:
    """Compute nodes, and give them to the handles that wait for them."""
    what = required_nodes([wide(node) for node in wanted], known)
    held = [h for h in (PENDING.get(node.id) for node in what.order) if h is not None]
    roots = [h for h in (g._root() for g in held if g._root is not None) if h is not None]
    for h in (*held, *roots):
        if h._form is None and (node := _unknown(h)) is not None:
            wanted.setdefault(node, h)
    targets = list(dict.fromkeys(map(wide, wanted)))
    if roots:
        what = required_nodes(targets, known)
    if current_backend() == CHECKED:
        results = _looked_at(what, targets)
    else:
        program, scalars = program_for(what, targets)
        arrays = [known(x) for x in what.inputs] + [c.prim.value for c in scalars]  # type: ignore[attr-defined]
        results = program(arrays)  # type: ignore[arg-type]
    found = dict(zip(targets, results, strict=True))
    for node, handle in list(wanted.items()):
        if handle._form is None and handle._own is node:
            handle.settle(found[wide(node)])


def _looked_at(what: Needed, wanted: Iterable[Node]) -> list[Array]:
    """The values of nodes, each checked as it is computed. Not by a program: one that is remembered
    has other source lines, and does not know of what its nodes are the derivatives."""
    values: dict[Node, Array] = {x: known(x) for x in what.inputs}  # type: ignore[misc]
    for x, array in values.items():
        if isinstance(x.prim, ConcreteLeaf):
            check_given(x, array)
    for node in what.order:
        values[node] = checked(node, [values[x] for x in node.inputs], {})
    return [values[node] for node in wanted]
