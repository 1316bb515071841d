"""Recording by running: handles on values, and their evaluation when somebody looks.

An operation on a `LazyTensor` returns another `LazyTensor`, which stands for a form on a page
(`trace_buffer.py`) or, where a transform, a tape or a trace is at work, for a node. Values are
computed when they are needed, by one program for everything that is needed together; programs are
remembered by the structure of what they compute, so a loop compiles once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from retrograd.eager.bare_tensor import hydrate
from retrograd.eager.fast_path import HandleBase
from retrograd.eager.grad_fn import full_history, past_of
from retrograd.eager.leaf import (
    FREED,
    PENDING,
    VALUES,
    ConcreteLeaf,
    is_spent,
    known,
    known_as,
    leaf,
    leaf_handle,
    snapshot,
)
from retrograd.eager.listeners import alive, on_tape
from retrograd.eager.modes import current_backend, current_tape, is_tracing, is_unseen
from retrograd.eager.program_cache import (
    Needed,
    cache_stats,
    clone_graph,
    program_for,
    required_nodes,
)
from retrograd.eager.trace_buffer import NOWHERE, PAGES, TraceBuffer, dissolve, flush, materialise
from retrograd.eager.trace_cache import TraceNode
from retrograd.errors import ArgumentError
from retrograd.functions.tensor.weak_types import is_weak as is_weak_node
from retrograd.functions.tensor.weak_types import weak, wide
from retrograd.ir import DType, Node, Provenance, Shape, TensorType, made_by
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


def dissolve_pages() -> None:
    """Let everything that is recorded go on as nodes."""
    dissolve([page for ref in list(PAGES) if (page := ref()) is not None])


class LazyTensor(HandleBase):
    """A handle on a value: what the user holds. `Tensor` adds the operators.

    It stands for `_form` on `_page`, or for a node, `_own`. `ConcreteLeaf` nodes are values at
    hand.
    """

    __slots__ = ()

    handle_class: ClassVar[type[LazyTensor]]  # the class results are wrapped in: Tensor

    _form: TraceNode | None
    _page: TraceBuffer
    _own: Node  # where it stands for a form it has none, nor a `_grad` or `_root` before one is set
    _root: weakref.ref[LazyTensor] | None  # a gradient's root: computed along with it
    _ready: Any  # the array of a constant that is at hand, see ready.py; None: look it up anew

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
            """What is not there: all but the array of a result of `jit`, until somebody asks."""
            return hydrate(self, name)

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
            made._ready = array
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
            return materialise(self)
        if self._page.is_taped():  # what is made of the node is shown to its tape
            dissolve([self._page])
        own = self._own
        if self.is_shared:
            return snapshot(own)
        if past_of(own) is not None:
            dissolve()
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
    def is_spent(self) -> bool:
        """Whether `backward()` has run, so that the history is gone."""
        form = self._form
        return is_spent(self._own) if form is None else form.spent

    @property
    def is_source(self) -> bool:
        """Whether it was given, not computed, and gets the gradients of what it was given for."""
        return self._form is None and leaf_handle(self._own) is self

    def value(self) -> Array:
        """The array, computed if it was not yet."""
        found = self._known()
        if found is None and self._form is not None:
            flush(self._page, (self,))
            found = self._known()
        if found is None:  # a node, or made one by another thread that was faster than `flush`
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
                self.become_leaf(array, self.is_spent)

    def _settle(self, array: Array, form: TraceNode, spent: bool = False) -> None:
        """The same, on a page, of what no gradient may ask for."""
        self._own = known_as(array, form.node, form.spent or spent, form.type)
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
        if form.spent:
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

    def tie(self, gradient: LazyTensor) -> None:
        """Be computed along with the loss that a gradient came from, as that gradient is."""
        if self._form is not None and gradient._form is not None:
            self._form.loss = gradient._form.loss
        elif self._form is None and gradient._form is None:
            self._root = gradient._root

    def spend(self) -> None:
        """Become a constant through which no gradient can go, after `backward()`; on a tape, which
        holds the history, it stays what it is."""
        if self._page.is_taped() or (self._form is None and on_tape(self._own)):
            return
        self._requires_grad = False
        form, array = self._form, self._known()
        if form is not None and array is None:
            self._form = form.spend()
            return
        if array is not None:
            self.become_leaf(array, spent=True)
            return
        node = self.node
        with made_by(Provenance(node.scope, node.source, node.origin)):
            after = StopGradient()(node)
        FREED.add(after)
        self._stand_for(after)

    def become_leaf(self, array: Array, spent: bool = False) -> None:
        """Stand for an array at hand from here on."""
        form = self._form
        node = self._own if form is None else form.node
        made = known_as(array, node, spent)
        if isinstance(node.prim, ConcreteLeaf) and node.prim.array is array:
            made.prim.shared = node.prim.shared  # type: ignore[attr-defined]
        self._stand_for(made)

    def _stand_for(self, node: Node) -> None:
        if self._form is None:
            PENDING.pop(self._own.id, None)
        self._register(node)  # first: whoever sees the node may ask for its gradient
        self._ready = None
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
        flush(page, members)
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
