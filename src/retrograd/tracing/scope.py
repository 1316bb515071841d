"""What all transforms need: arguments as nodes, and what is being differentiated around here."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.context_setting import Setting, restored
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor, leaf, leaf_handle
from retrograd.eager.listeners import shown
from retrograd.eager.modes import (
    _ACTIVE,
    active,
    calling,
    grad_enabled,
    recording_grad,
    seeking,
    sought,
)
from retrograd.eager.trace_buffer import materialize
from retrograd.eager.weak_types import is_weak, weak, wide
from retrograd.errors import ArgumentError, DTypeError, GradientError
from retrograd.functions.broadcasting import integer, rounded
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import (
    Node,
    Provenance,
    Trait,
    complex128,
    float64,
    full,
    made_by,
    provenance,
    reachable,
)
from retrograd.ir.source import user_source
from retrograd.ops.identity import Alias
from retrograd.tracing.module_state import Place, StateWatch

ArgNums = int | Sequence[int]


def to_node(x: Any, what: str) -> Node:
    """The node of a tensor, array or number that a transform works on."""
    if isinstance(x, LazyTensor):
        if x._requires_grad:
            materialize()
        return x.node
    try:
        return leaf(np.array(as_array(x)))
    except DTypeError as error:
        raise DTypeError(f"{what} works on tensors, arrays and numbers: {error}") from None


def argument(x: Any, what: str) -> Node:
    """The node of an argument that a transform differentiates. A Python number is weak."""
    if isinstance(x, float | complex) and not isinstance(x, np.generic):
        return weak(leaf(np.asarray(x)))
    return to_node(x, what)


def stand_in(node: Node) -> Node:
    """An argument under another identity, as `alias`; weak, if it is."""
    return weak(alias(wide(node))) if is_weak(node) else alias(node)


def alias(node: Node) -> Node:
    """The node under another identity: the same value reached otherwise counts as constant."""
    return Alias()(node)


def select(args: Sequence[Any], argnums: ArgNums, what: str) -> tuple[int, ...]:
    """The positions that `argnums` means among these arguments."""
    given = argnums if isinstance(argnums, tuple | list) else (argnums,)
    numbers = [integer(i, f"{what}: argnums") for i in given]
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise GradientError(
                f"{what}: argnums is {i}, but the function got {len(args)} arguments by position"
            )
    if not numbers:
        raise GradientError(f"{what}: argnums names no argument; give the position of one, or more")
    found = tuple(i % len(args) for i in numbers)
    if len(set(found)) < len(found):
        raise GradientError(f"{what}: argnums {argnums} name an argument twice")
    return found


def need_function(f: Any, what: str, remedy: str = "") -> None:
    """`ArgumentError` for what is no function."""
    if callable(f):
        return
    if not remedy and isinstance(f, LazyTensor):
        remedy = "give the function itself, not what it returns: f instead of f(x)"
    raise ArgumentError(
        f"{what} takes a function, not {f!r:.60} of type {type(f).__name__}"
        f"{remedy and '; '}{remedy}"
    )


def need_arguments(f: Callable[..., Any], given: Sequence[Any], what: str) -> None:
    """`ArgumentError` for a function that cannot be called with so many arguments."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return  # nobody knows
    try:
        signature.bind(*given)
    except TypeError as error:
        name = getattr(f, "__name__", type(f).__name__)
        raise ArgumentError(
            f"{what} calls the function with {len(given)} arguments by position, which "
            f"{name}{signature} does not take: {error}"
        ) from None


def substituted(args: Sequence[Any], numbers: Sequence[int], new: Sequence[Any]) -> list[Any]:
    """The arguments with those at some positions replaced."""
    result = list(args)
    for i, a in zip(numbers, new, strict=True):
        result[i] = a
    return result


_COUNT = threading.local()


def derivatives() -> int:
    """How often this thread has differentiated a function by a transform."""
    count: int = getattr(_COUNT, "derivatives", 0)
    return count


@contextmanager
def differentiating(nodes: Sequence[Node], handles: Sequence[LazyTensor] = ()) -> Iterator[None]:
    """Record gradients inside the block, with respect to these nodes and tensors too."""
    _COUNT.derivatives = derivatives() + 1
    with restored(), wanting(map(wide, nodes)), seeking(handles), recording_grad():
        yield


def wanting(nodes: Iterable[Node]) -> Setting:
    """Inside the block, what is computed from these nodes requires a gradient."""
    return Setting(_ACTIVE, active().union(nodes))


# Inputs of a trace that stand for tensors which require gradients.
_ASKED: ContextVar[frozenset[Node]] = ContextVar("asked", default=frozenset())


def asking(nodes: Iterable[Node]) -> Setting:
    """Inside the block, nodes stand for leaves that require a gradient."""
    return Setting(_ASKED, _ASKED.get().union(nodes))


def is_differentiating() -> bool:
    """Whether a transform is differentiating what is computed here and now."""
    return bool(active() or sought())


def wanted(node: Node) -> bool:
    """Whether somebody around here asks for the gradient with respect to this very node: it is, or
    stands for, a leaf that requires one, or a transform differentiates with respect to it."""
    if node in active() or node in _ASKED.get():
        return True
    return Trait.INPUT in node.prim.traits and leaf_handle(node) is not None


def is_tracked(nodes: Sequence[Node | None]) -> bool:
    """Whether somebody outside may still ask for a gradient through one of these nodes."""
    if not grad_enabled():
        return False
    return any(wanted(n) for n in reachable([n for n in nodes if n is not None]))


def called_on(
    f: Callable[..., Any], structure: Any, inner: Sequence[Node], kwargs: dict[str, Any]
) -> tuple[Any, list[tuple[Place, Any]]]:
    """`f` called on tensors that stand for nodes, while these are being differentiated: what it
    returns, and what it has changed in modules and does not return."""
    with differentiating(inner):
        leaves = [Tensor(n, n.dtype.is_inexact) for n in inner]
        new = pytree.unflatten(structure, leaves)
        watch = StateWatch(new, structure, leaves) if pytree.may_hold_state(new) else None
        with calling():
            result = f(*new, **kwargs)
        return result, [] if watch is None else watch.lost(result)


def detach_results(result: Any, tracked: bool) -> Any:
    """Outputs of the function as the caller sees them: requiring a gradient only if an argument
    did, not because the transform asked for one."""
    return pytree.map(
        lambda x: Tensor(x.node) if isinstance(x, LazyTensor) and x._requires_grad > tracked else x,
        result,
    )


def tensors(nodes: Sequence[Node | None], like: Sequence[Node], tracked: bool) -> list[Tensor]:
    """Gradients or tangents as tensors; None is a zero of the type it would have had."""
    return [
        Tensor(full(0, x.type) if n is None else shown(n), tracked and x.dtype.is_inexact)
        for n, x in zip(nodes, like, strict=True)
    ]


def gradients(
    nodes: Sequence[Node | None], like: Sequence[Node], outputs: Sequence[Node]
) -> list[Node | None]:
    """Gradients in the dtypes of arguments. That of a Python number, which has none, is weak, too,
    unless what was differentiated is of double precision."""
    double = any(y.dtype in (float64, complex128) for y in outputs)
    return [
        weak(n) if n is not None and is_weak(x) and not double else n
        for n, x in zip(nodes, like, strict=True)
    ]


def matching(value: Any, like: Node, what: Callable[[], str]) -> Node:
    """A cotangent or tangent as a node of the type of what it belongs to."""
    if is_weak(like):
        like = wide(like)
        if isinstance(value, LazyTensor) and value.dtype.kind == like.dtype.kind:
            value = Tensor(rounded(value.node, like.dtype))
    node = (
        value.node if isinstance(value, LazyTensor) else leaf(np.array(as_array(value, like.dtype)))
    )
    if node.type != like.type:
        raise GradientError(f"the {what()} of a {like.type} must be of that type, not {node.type}")
    return node


def match_cotangents(
    values: Any, structure: Any, like: Sequence[Node], what: str, whose: str
) -> list[Node]:
    """The leaves of a tree of cotangents or tangents as nodes; the tree must have a structure."""
    given, other = pytree.flatten(values)
    if other != structure:
        raise GradientError(f"the {what} has the structure {other}, the {whose} {structure}")
    return [
        matching(g, y, functools.partial(_named, what, structure, i))
        for i, (g, y) in enumerate(zip(given, like, strict=True))
    ]


def _named(what: str, structure: Any, i: int) -> str:
    return f"{what} {pytree.names(structure)[i]}".rstrip()


def with_aux(result: Any, has_aux: bool, first: str) -> tuple[Any, Any]:
    """What a function returned, as `(value, more)`."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple | list) and len(result) == 2):
        raise GradientError(
            f"with has_aux the function returns ({first}, more), not {type(result).__name__}"
        )
    return result[0], result[1]


def call_site() -> made_by:
    """Nodes made inside the block come from the user's line that called the transform."""
    return made_by(Provenance(provenance().scope, user_source(), None))
