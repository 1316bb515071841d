"""What `Tensor.backward` does: gradients of everything below a tensor, added to the leaves."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from retrograd.autodiff import pullback, seeds
from retrograd.backends import CHECKED
from retrograd.errors import GradientError, ShapeError, TraceError
from retrograd.frontend.context import current_backend
from retrograd.frontend.conversion import as_array
from retrograd.frontend.elementwise import add, stop_gradient
from retrograd.frontend.forms import Form
from retrograd.frontend.leaves import Data, is_spent, known, leaf, leaf_handle
from retrograd.frontend.page import Page
from retrograd.frontend.past import past_of
from retrograd.frontend.programs import LOCK
from retrograd.frontend.recall import hold, operand
from retrograd.frontend.recording import Lazy, evaluate, recorders
from retrograd.frontend.retained import retained
from retrograd.frontend.segments import cut
from retrograd.frontend.through import gradients, way_from
from retrograd.ir import Node
from retrograd.ops.control import StopGradient

_SECOND_TIME = (
    "backward() for the second time through a tensor whose history went with the first; give the "
    "first retain_graph=True, or use the tensor's detach()"
)


def backward(root: Lazy, seed: Any, retain_graph: bool) -> None:
    """Add the gradient of `root` to the gradients of the leaves below."""
    inner = retained(root)  # whose gradients are found on nodes
    done: bool | None = False if inner else None
    if root._form is not None and not inner:
        done = _on_page(root, root._page, root._form, seed)
    if done or (done is None and _through_segments(root, seed)):
        if not retain_graph:
            root.spend()
        return
    node = root.node
    if root.is_spent:
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
    found = pullback([node], start, [*(n for n, _ in handles), *stale])
    shared = check_edits([g for g in found if g is not None])
    if any(g is not None for g in found[len(handles) :]):
        raise GradientError(
            f"backward() of {node.describe()}, which was computed before an optimizer's step or "
            "load_state_dict() changed a parameter it depends on; compute it again"
        )
    for (_, handle), g in zip(handles, found, strict=False):
        if g is not None:
            _accumulate(handle, g, root)
    if shared or current_backend() == CHECKED:  # now, before the user edits them or goes on
        evaluate([h._grad for _, h in handles if h._grad is not None])
    if not (retain_graph or node in leaves):
        root.spend()


def _on_page(root: Lazy, page: Page, form: Form, seed: Any) -> bool | None:
    """The same by forms, whose gradients are known from the second time on. None where the way
    leads to segments, False where it has to be done on nodes: what is wrong or out of the ordinary
    is found there, and said."""
    if form.spent or not root._requires_grad or recorders() or (seed is None and form.type.shape):
        return False
    start = None
    if seed is not None:
        if not isinstance(seed, Lazy) or (start := operand(page, seed)) is None:
            return False
        if start.type != form.type:
            return False
    slots = form.slots()
    if -1 in slots:
        return False
    handles, wanted, shared = [], [], False
    for k in slots:
        node = page.arrays[k]
        prim: Any = node.prim
        if prim.replaced:
            return False
        if prim.past is not None:
            return None
        if prim.mark is not None:
            shared = True
            if prim.edited:
                return False
        handle = leaf_handle(node)
        if handle is not None:
            handles.append(handle)
            wanted.append(page.slots[node])
    found = form.gradients.get((*wanted, start))
    if found is None:
        with LOCK:
            found = form.gradient(wanted, start)
    if not page.open:
        page.reopen()  # what follows, such as an optimizer's step, becomes one program with it
    for handle, g in zip(handles, found, strict=True):
        if g is None:
            continue
        new = hold(page, g, False)
        before = getattr(handle, "_grad", None)
        if before is not None:
            new = stop_gradient(add(before, new))
            if new._form is not None and new._form.loss is None:
                new._form.loss = g.loss
        handle._grad = new
    if shared:  # now, before the user edits them
        evaluate([h._grad for h in handles if h._grad is not None])
    return True


def check_edits(wanted: Iterable[Node]) -> bool:
    """Refuse to compute gradients with arrays that are not any more what operations have used.
    Tells whether there are any that the user can edit."""
    shared = False
    seen = set(wanted)
    todo = [n for n in seen if known(n) is None]
    for node in todo:  # the list grows while the loop goes through it
        for x in node.inputs:
            if x in seen:
                continue
            seen.add(x)
            if known(x) is None:
                todo.append(x)
            elif isinstance(x.prim, Data) and x.prim.mark is not None:
                shared = True
                if x.prim.edited:
                    raise GradientError(
                        f"backward() needs an array as {_user(x, node).describe()} used it, but it "
                        "was edited since; rg.asarray() shares memory: make a tensor of its own "
                        "with rg.tensor(), and update that with x.at[index].set(value)"
                    )
    return shared


def _user(x: Node, node: Node) -> Node:
    """The operation that the user wrote, where `x` is used by a derivative of it."""
    return node.origin if node.origin is not None and x in node.origin.inputs else node


def _through_segments(root: Lazy, seed: Any) -> bool:
    """The same where the recording was cut: at once, as segments are gone through one at a time.
    False as above."""
    if not root._requires_grad or recorders() or (seed is None and root.shape):
        return False
    if isinstance(seed, Lazy) and seed._type != root._type:
        return False
    if root._form is not None and not cut(root._page, [root]):
        return False
    if root._form is not None or past_of(root._own) is None:
        return False
    way = way_from(root._own)
    if way is None:
        return False
    if seed is None:
        start = np.ones((), root.dtype.dtype)
    else:
        start = seed.value() if isinstance(seed, Lazy) else _seed(seed, root._own).prim.array  # type: ignore[attr-defined]
    ends = dict(sorted(way.ends.items(), key=lambda item: item[0].id))
    found = gradients(root._own, start, way)
    for node, handle in ends.items():
        if node in found:
            new = Lazy.handle_class.of(found[node])
            before = getattr(handle, "_grad", None)
            handle._grad = new if before is None else stop_gradient(add(before, new))
    return True


def _seed(seed: Any, node: Node) -> Node:
    g = seed.node if isinstance(seed, Lazy) else leaf(as_array(seed, node.dtype).copy())
    if g.type != node.type:
        raise ShapeError(f"the seed of {node.type} must be of this type, not {g.type}")
    return g


def _leaves(root: Node) -> tuple[dict[Node, Lazy], list[Node]]:
    """The leaves a gradient can reach from a node, in the order of their making, with the handles
    that get it; and leaves that required one but have been replaced."""
    seen, todo = {root}, [root]
    while todo:
        for x in todo.pop().inputs:
            if x not in seen:
                seen.add(x)
                if is_spent(x):
                    raise GradientError(f"{_SECOND_TIME}: {x.describe()}")
                if x.op != "stop_gradient" and x.type.is_inexact:
                    todo.append(x)
    ends = sorted((n for n in seen if n.op == "input"), key=lambda n: n.id)
    traced = [n for n in ends if not isinstance(n.prim, Data)]
    if traced:
        raise TraceError(
            f"backward() of what depends on {traced[0].describe()}, which is traced: inside jit, "
            "vmap and trace use rg.grad or rg.value_and_grad, of a declared graph its gradient()"
        )
    found = {n: h for n in ends if (h := leaf_handle(n)) is not None}
    return found, [n for n in ends if n.prim.replaced]  # type: ignore[attr-defined]


def _accumulate(handle: Lazy, g: Node, root: Lazy) -> None:
    before = getattr(handle, "_grad", None)
    total = g if before is None else before.node + g
    new = Lazy.handle_class(StopGradient()(total))  # a gradient is a constant to what uses it
    if root is not handle:
        new._root = weakref.ref(root)
    handle._grad = new
