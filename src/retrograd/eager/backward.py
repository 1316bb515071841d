"""What `Tensor.backward` does: gradients of everything below a tensor, added to the leaves."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import pullback, seeds
from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.grad_fn import grad_fn_of
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.eager.leaf import ConcreteLeaf, is_freed, known, leaf, leaf_handle
from retrograd.eager.listeners import sees_all, tell_gradient
from retrograd.eager.modes import current_backend, unseen
from retrograd.eager.program_cache import GRADIENTS, LOCK
from retrograd.eager.quick_dispatch import lookup_operand, make_handle
from retrograd.eager.segment_backward import backward_path, gradients, gradients_by_calls
from retrograd.eager.segments import split
from retrograd.eager.trace_buffer import TraceBuffer, end_run
from retrograd.eager.trace_cache import TraceNode
from retrograd.errors import GradientError, ShapeError, TraceError
from retrograd.ir import Node, Trait
from retrograd.ops.elementwise import add
from retrograd.ops.identity import StopGradient
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.nan_observer import CHECKED
from retrograd.shared import assign, contained

_SECOND_TIME = (
    "backward() for the second time through a tensor whose history went with the first; give the "
    "first retain_graph=True, or use the tensor's detach()"
)


@contained
def backward(root: LazyTensor, seed: Any, retain_graph: bool) -> None:
    """Add the gradient of `root` to the gradients of the leaves below."""
    end_run()
    inner = retained(root)  # whose gradients are found on nodes
    on_nodes = bool(inner) or has_hooks()
    done: bool | None = False if on_nodes else None
    trace_node, buffer = root._trace_node, root._buffer
    if buffer.is_taped():
        if not on_nodes and _on_tape(root, seed):
            return  # it keeps its history
        done = False
    elif trace_node is not None and not on_nodes:
        # Another thread may make nodes of it between two looks.
        still = root._trace_node is trace_node
        done = _in_buffer(root, buffer, trace_node, seed) if still else False
    if done or (done is None and _through_segments(root, seed)):
        if not retain_graph:
            root.free_history()
        return
    node = root.node
    if root.is_freed:
        raise GradientError(f"{_SECOND_TIME}: {node.describe()}")
    if not root._requires_grad:
        _leaves(node)  # which says so where the reason is that something is traced
        raise GradientError(
            f"backward() of a tensor that depends on nothing that requires a gradient: "
            f"{node.describe()}; make an input with requires_grad=True"
        )
    start = seeds([node]) if seed is None else [_seed(seed, node)]
    leaves, stale = _leaves(node)
    handles = [*leaves.items(), *((h.node, h) for h in inner)]
    tell_gradient([node], [n for n, _ in handles])
    found = pullback([node], start, [*(n for n, _ in handles), *stale])
    if any(g is not None for g in found[len(handles) :]):
        raise GradientError(
            f"backward() of {node.describe()}, which was computed before an optimizer's step or "
            "load_state_dict() changed a parameter it depends on; compute it again"
        )
    changed = [
        g if g is None else after_hooks(handle, g)
        for (_, handle), g in zip(handles, found, strict=False)
    ]
    with GRADIENTS:
        totals: dict[LazyTensor, LazyTensor] = {}
        together: list[weakref.ref[Any]] = []
        for (_, handle), g in zip(handles, changed, strict=True):
            if g is not None:
                totals[handle] = _added_node(_so_far(totals, handle), g)
                if root is not handle:
                    totals[handle].evaluate_with(together)
        _publish(totals)
    if current_backend() == CHECKED:  # now, before the user goes on
        evaluate([h._grad for _, h in handles if h._grad is not None])
    if not (retain_graph or node in leaves):
        root.free_history()
    if together:
        root.evaluate_with(together)


def _in_buffer(
    root: LazyTensor, buffer: TraceBuffer, trace_node: TraceNode, seed: Any
) -> bool | None:
    """The same by trace nodes, whose gradients are known from the second time on. None where the
    way leads to segments, False where it has to be done on nodes: what is wrong or out of the
    ordinary is found there, and said."""
    if (
        trace_node.freed
        or not root._requires_grad
        or sees_all()
        or (seed is None and trace_node.type.shape)
    ):
        return False
    start = None
    if seed is not None:
        if not isinstance(seed, LazyTensor) or (start := lookup_operand(buffer, seed)) is None:
            return False
        if start.type != trace_node.type:
            return False
    slots = trace_node.slots()
    if -1 in slots:
        return False
    handles, wanted = [], []
    for k in slots:
        node = buffer.arrays[k]
        prim: Any = node.prim
        if prim.replaced:
            return False
        if prim.grad_fn is not None:
            return None
        handle = leaf_handle(node)
        if handle is not None:
            handles.append(handle)
            wanted.append(buffer.slots[node])
    found = trace_node.gradients.get((*wanted, start))
    if found is None:
        with LOCK:
            found = trace_node.gradient(wanted, start)
    if not buffer.open:
        buffer.reopen()  # what follows, such as an optimizer's step, becomes one program with it
    with GRADIENTS:
        totals: dict[LazyTensor, LazyTensor] = {}
        for handle, g in zip(handles, found, strict=True):
            if g is None:
                continue
            new = make_handle(buffer, g, False)
            before = _so_far(totals, handle)
            if before is not None:
                new = _added(before, new)
                if new._trace_node is not None and new._trace_node.loss is None:
                    new._trace_node.loss = g.loss
            totals[handle] = new
        _publish(totals)
    return True


def _on_tape(root: LazyTensor, seed: Any) -> bool:
    """The same in the buffers of a tape. False as below."""
    if not root._requires_grad or (seed is None and root.shape) or root.dtype.is_complex:
        return False
    if isinstance(seed, LazyTensor) and seed._type != root._type:
        return False
    listener = root._buffer.listener()
    if listener is None:
        return False
    trace_node = root._trace_node
    node: Any = root.leaf_or_node if trace_node is None else trace_node.node
    start: Any
    if seed is None:
        start = np.ones((), root.dtype.dtype)
    else:
        start = seed.value() if isinstance(seed, LazyTensor) else known(_seed(seed, node))
    found = listener.gradients_of_leaves(root, start)
    if found is None:
        return False
    with unseen():
        _accumulate(found)
    return True


def _accumulate(found: Iterable[tuple[LazyTensor, Array]]) -> None:
    """Add arrays to the gradients of leaves."""
    with GRADIENTS:
        totals: dict[LazyTensor, LazyTensor] = {}
        for handle, g in found:
            new = LazyTensor.handle_class.of(g)
            before = _so_far(totals, handle)
            totals[handle] = new if before is None else _added(before, new)
        _publish(totals)


def _through_segments(root: LazyTensor, seed: Any) -> bool:
    """The same where the recording was cut: at once, as segments are gone through one at a time.
    False as above."""
    if not root._requires_grad or sees_all() or (seed is None and root.shape):
        return False
    if root.dtype.is_complex or (isinstance(seed, LazyTensor) and seed._type != root._type):
        return False
    if root._trace_node is not None and not split(root._buffer, [root]):
        return False
    if root._trace_node is not None:
        return False
    if seed is None:
        start = np.ones((), root.dtype.dtype)
    elif isinstance(seed, LazyTensor):
        start = seed.value()
    else:
        given: Any = _seed(seed, root.leaf_or_node).prim
        start = given.array
    by_calls = gradients_by_calls(root, start)
    if by_calls is not None:
        pairs = [by_calls[x] for x in sorted(by_calls, key=attrgetter("id"))]
        _accumulate([(h, g) for h, g in pairs if h is not None])
        return True
    if grad_fn_of(root.leaf_or_node) is None:
        return False
    path = backward_path(root.leaf_or_node)
    if path is None:
        return False
    ends = dict(sorted(path.ends.items(), key=lambda item: item[0].id))
    found = gradients(root.leaf_or_node, start, path)
    _accumulate([(h, found[x]) for x, h in ends.items() if h is not None and x in found])
    return True


def _seed(seed: Any, node: Node) -> Node:
    g = seed.node if isinstance(seed, LazyTensor) else leaf(as_array(seed, node.dtype).copy())
    if g.type != node.type:
        raise ShapeError(f"the seed of {node.type} must be of this type, not {g.type}")
    return g


def _leaves(root: Node) -> tuple[dict[Node, LazyTensor], list[Node]]:
    """The leaves a gradient can reach from a node, in the order of their making, with the handles
    that get it; and leaves that required one but have been replaced."""
    seen, todo = {root}, [root]
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen.add(x)
                if is_freed(x):
                    raise GradientError(f"{_SECOND_TIME}: {x.describe()}")
                if not isinstance(x.prim, StopGradient) and x.type.is_inexact:
                    todo.append(x)
    ends = sorted((n for n in seen if Trait.INPUT in n.prim.traits), key=lambda n: n.id)
    traced = [n for n in ends if not isinstance(n.prim, ConcreteLeaf)]
    if traced:
        raise TraceError(
            f"backward() of what depends on {traced[0].describe()}, which is traced: inside jit, "
            "vmap and trace use rg.grad or rg.value_and_grad, of a declared graph its gradient()"
        )
    found = {n: h for n in ends if (h := leaf_handle(n)) is not None}
    return found, [n for n in ends if n.prim.replaced]  # type: ignore[attr-defined]


def _so_far(totals: dict[LazyTensor, LazyTensor], handle: LazyTensor) -> LazyTensor | None:
    """What has been accumulated for a leaf; more than one array that it had may be among those that
    were used."""
    found = totals.get(handle)
    return getattr(handle, "_grad", None) if found is None else found


@op_function
def _added(before: ArrayLike, g: ArrayLike, /) -> Any:
    """A gradient with a contribution more, a constant to what uses it."""
    return StopGradient()(add(before, g))


def _added_node(before: LazyTensor | None, g: Node) -> LazyTensor:
    """The same on nodes."""
    total = g if before is None else before.node + g
    return LazyTensor.handle_class(
        StopGradient()(total)
    )  # a gradient is a constant to what uses it


def _publish(totals: dict[LazyTensor, LazyTensor]) -> None:
    """Set the gradients of leaves, of all or of none."""
    assign([(handle, "_grad", new) for handle, new in totals.items()])


# -- gradients of what is not a leaf -------------------------------------------------------------
# By id: equality of tensors is that of their elements.
_RETAINED: weakref.WeakValueDictionary[int, LazyTensor] = weakref.WeakValueDictionary()


def retain(x: LazyTensor) -> None:
    """Have `backward()` add to the gradient of x."""
    if not x._requires_grad:
        raise GradientError(
            f"retain_grad() of a tensor that depends on nothing that requires a gradient: "
            f"{x.node.describe()}"
        )
    if not x.is_source:
        _RETAINED[id(x)] = x


def is_retained(x: LazyTensor) -> bool:
    """Whether `backward()` adds to the gradient of x though it is not a leaf."""
    return _RETAINED.get(id(x)) is x


def retained(root: LazyTensor) -> list[LazyTensor]:
    """What gets a gradient, if `root` depends on it, though it is no leaf."""
    if not _RETAINED:
        return []
    return [
        x
        for reference in _RETAINED.valuerefs()  # at once: another thread may add some
        if (x := reference()) is not None
        and x._requires_grad
        and (x._trace_node is None or x._buffer is root._buffer)
    ]


def warn_of_no_leaf(x: LazyTensor) -> None:
    """Say why there is no gradient, where x was computed: called by what the user's line calls."""
    if x.is_freed or (x._requires_grad and not x.is_source):
        warnings.warn(
            f"the .grad of a tensor that is not a leaf is never set by backward(): "
            f"{x._type} was computed. To update a leaf, write `with rg.no_grad(): w -= lr * "
            "w.grad` in place of w = w - lr * w.grad. For gradients of what is in between, call "
            "retain_grad() on it before backward(), or use rg.grad or a Tape",
            UserWarning,
            stacklevel=3,
        )


# -- hooks: what is called with the gradient of a leaf before it is added --------------------------
Hook = Callable[[Any], Any]


class _Hooked(NamedTuple):
    leaf: weakref.ref[LazyTensor]
    hooks: dict[int, Hook]


# By id: equality of tensors is that of their elements.
_LEAVES: dict[int, _Hooked] = {}
_NUMBERS = count()


class RemovableHandle:
    """What a function that registers a hook returns: `remove()` takes the hook back, as does the
    end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks, self.id = hooks, number

    def remove(self) -> None:
        """Take the hook back; a second time changes nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def registered(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    """A hook more in a table, and what takes it back."""
    number = next(_NUMBERS)
    hooks[number] = hook
    return RemovableHandle(hooks, number)


def register_on_leaf(x: LazyTensor, hook: Hook) -> RemovableHandle:
    """Have a hook called with every gradient of a leaf."""
    key = id(x)
    found = _LEAVES.get(key)
    if found is None:
        found = _LEAVES[key] = _Hooked(weakref.ref(x, lambda _: _LEAVES.pop(key, None)), {})
    return registered(found.hooks, hook)


def has_hooks() -> bool:
    """Whether any leaf has a hook, so that gradients are found on nodes."""
    return bool(_LEAVES) and any(h.hooks for h in list(_LEAVES.values()))


def after_hooks(x: LazyTensor, g: Node) -> Node:
    """The gradient of a leaf, as its hooks leave it."""
    found = _LEAVES.get(id(x))
    if found is None or found.leaf() is not x:
        return g
    for hook in list(found.hooks.values()):
        g = changed(hook, g)
    return g


def changed(hook: Hook, g: Node) -> Node:
    """What a hook makes of a gradient: None leaves it as it is."""
    given = hook(LazyTensor.handle_class(StopGradient()(g)))
    if given is None:
        return g
    if not isinstance(given, LazyTensor) or given.node.type != g.type:
        what = given.node.type if isinstance(given, LazyTensor) else type(given).__name__
        raise GradientError(f"a hook of a gradient of {g.type} returned {what}; it returns None or "
                            "a tensor of this shape and dtype")  # fmt: skip
    return given.node
