"""Functions of functions: grad, value_and_grad, vjp, jvp, vmap.

A transform calls the function on tensors with fresh identities and works on the nodes that come
out, so transforms compose in any order, and with `backward()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from retrograd.autodiff import batched, pullback, pushforward, seeds
from retrograd.errors import DTypeError, GradientError, ShapeError
from retrograd.frontend import tree
from retrograd.frontend.broadcasting import integer, normal_axis
from retrograd.frontend.context import grad_enabled, recording_grad
from retrograd.frontend.conversion import as_array
from retrograd.frontend.manipulation import moveaxis
from retrograd.frontend.recording import Lazy, leaf, leaf_handle
from retrograd.frontend.source import user_source
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Dim, Node, Provenance, full, made_by, provenance, reachable
from retrograd.ops.control import Alias
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import expand

ArgNums = int | Sequence[int]


def to_node(x: Any, what: str) -> Node:
    """The node of a tensor, array or number that a transform works on."""
    if isinstance(x, Lazy):
        return x.node
    try:
        return leaf(np.array(as_array(x)))
    except DTypeError as error:
        raise DTypeError(f"{what} works on tensors, arrays and numbers: {error}") from None


def _alias(node: Node) -> Node:
    return Alias()(node)


def _select(args: Sequence[Any], argnums: ArgNums, what: str) -> tuple[Any, ...]:
    given = argnums if isinstance(argnums, tuple | list) else (argnums,)
    numbers = [integer(i, f"{what}: argnums") for i in given]
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise GradientError(
                f"{what}: argnums is {i}, but the function got {len(args)} arguments by position"
            )
    found = tuple(i % len(args) for i in numbers)
    if len(set(found)) < len(found):
        raise GradientError(f"{what}: argnums {argnums} name an argument twice")
    return found


def _function(f: Any, what: str) -> None:
    if not callable(f):
        raise TypeError(f"{what} takes a function, not {f!r:.80}")


def _substituted(args: Sequence[Any], numbers: Sequence[int], new: Sequence[Any]) -> list[Any]:
    result = list(args)
    for i, a in zip(numbers, new, strict=True):
        result[i] = a
    return result


# What the transforms around this one differentiate with respect to.
_ACTIVE: ContextVar[frozenset[Node]] = ContextVar("active", default=frozenset())


@contextmanager
def _differentiating(nodes: Sequence[Node]) -> Iterator[None]:
    """Record gradients inside the block, with respect to these nodes too."""
    token = _ACTIVE.set(_ACTIVE.get().union(nodes))
    try:
        with recording_grad():
            yield
    finally:
        _ACTIVE.reset(token)


def is_differentiating() -> bool:
    """Whether a transform is differentiating what is computed here and now."""
    return bool(_ACTIVE.get())


def is_tracked(nodes: Sequence[Node | None]) -> bool:
    """Whether somebody outside may still ask for a gradient through one of these nodes: a leaf that
    requires one, or a transform around this one."""
    if not grad_enabled():
        return False
    around = _ACTIVE.get()
    below = reachable([n for n in nodes if n is not None])
    return any(n in around or (n.op == "input" and leaf_handle(n) is not None) for n in below)


def value_and_grad(
    f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns `(f(*args), gradient)`.

    The gradient is that of the scalar f with respect to argument `argnums` (a tuple of them gives a
    tuple), in the structure of that argument; its leaves must be floating. With `has_aux`, f
    returns `(scalar, aux)` and the result is `((scalar, aux), gradient)`.
    """
    _function(f, "grad")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = _select(args, argnums, "grad")
        chosen = tuple(args[i] for i in numbers)
        leaves, structure = tree.flatten(chosen)
        inner = [_alias(n) for n in _differentiable(leaves, chosen)]
        with _differentiating(inner):
            new = tree.unflatten(structure, [Tensor(n, n.dtype.is_inexact) for n in inner])
            result = f(*_substituted(args, numbers, new), **kwargs)
        if has_aux and not (isinstance(result, tuple | list) and len(result) == 2):
            raise GradientError(
                f"with has_aux the function returns (scalar, more), not {type(result).__name__}"
            )
        value, aux = result if has_aux else (result, None)
        y = _scalar(value)
        here = provenance()
        with made_by(Provenance(here.scope, user_source(), None)):
            found = pullback([y], seeds([y]), inner)
        tracked = is_tracked([y, *found])
        gradients = [
            Tensor(full(0, n.type) if g is None else g, tracked and n.dtype.is_inexact)
            for n, g in zip(inner, found, strict=True)
        ]
        grads = tree.unflatten(structure, gradients)
        value, aux = _released((value, aux), tracked)
        return (value, aux) if has_aux else value, grads[0] if isinstance(argnums, int) else grads

    return call


def grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of the scalar function f.

    See `value_and_grad`; with `has_aux` the result is `(gradient, aux)`.

    >>> import retrograd as rg
    >>> rg.grad(lambda x: x**3)(2.0).item()
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return call


def _differentiable(leaves: Sequence[Any], arguments: Any) -> list[Node]:
    nodes = [to_node(x, "grad") for x in leaves]
    if all(n.dtype.is_inexact for n in nodes):
        return nodes
    for node, state in zip(nodes, tree.is_state(arguments), strict=True):
        if not (node.dtype.is_inexact or state):
            raise GradientError(
                f"grad with respect to a {node.dtype} argument of shape {node.shape}: only "
                "floating values have gradients; pass it in another argument, or cast it"
            )
    return nodes


def _scalar(value: Any) -> Node:
    if isinstance(value, Lazy):
        return value.node
    if isinstance(value, bool | int | float) or hasattr(value, "__array__"):
        raise GradientError(
            f"the function to differentiate returned the plain number or array {value!r}, which "
            "knows nothing of what it was computed from: its gradient would silently be zero. "
            "Compute with tensors throughout (rg.sin instead of math.sin or np.sin, no .item() or "
            ".numpy()), or return rg.tensor(...) if a constant is meant"
        )
    raise GradientError(
        f"grad needs a function that returns a scalar tensor, not {type(value).__name__}; use "
        "has_aux=True for a function that returns (scalar, more)"
    )


def _released(result: Any, tracked: bool) -> Any:
    """Outputs of the function as the caller sees them: requiring a gradient only if an argument
    did, not because the transform asked for one."""
    return tree.map(
        lambda x: Tensor(x.node) if isinstance(x, Lazy) and x._requires_grad > tracked else x,
        result,
    )


def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """`(out, pullback)`: the value, and the function from a cotangent to one gradient for each
    argument. `pullback` can be called any number of times."""
    _function(f, "vjp")
    leaves, structure = tree.flatten(args)
    nodes = [to_node(x, "vjp") for x in leaves]
    inner = [_alias(n) for n in nodes]
    with _differentiating(inner):
        out = f(*tree.unflatten(structure, [Tensor(n, n.dtype.is_inexact) for n in inner]))
    ends, shape = tree.flatten(out)
    outputs = [to_node(y, "vjp") for y in ends]
    tracked = is_tracked(outputs)

    def back(cotangent: Any) -> tuple[Any, ...]:
        given, other = tree.flatten(cotangent)
        if other != shape:
            raise GradientError(f"the cotangent has the structure {other}, the output {shape}")
        start = [_like(g, y, "cotangent") for g, y in zip(given, outputs, strict=True)]
        pairs = [(y, g) for y, g in zip(outputs, start, strict=True) if y.dtype.is_inexact]
        found = pullback([y for y, _ in pairs], [g for _, g in pairs], inner)
        again = is_tracked(found)
        gradients = [
            Tensor(full(0, n.type) if g is None else g, again)
            for n, g in zip(inner, found, strict=True)
        ]
        return tree.unflatten(structure, gradients)

    return _released(out, tracked), back


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`(out, tangent)`: the value and its derivative in the direction of the tangents."""
    _function(f, "jvp")
    if not (isinstance(args, tuple | list) and isinstance(tangents, tuple | list)):
        raise TypeError("jvp takes the arguments and the tangents as tuples")
    leaves, structure = tree.flatten(tuple(args))
    given, other = tree.flatten(tuple(tangents))
    if other != structure:
        raise GradientError(f"the tangents have the structure {other}, the arguments {structure}")
    nodes = [to_node(x, "jvp") for x in leaves]
    inner = [_alias(n) for n in nodes]
    directions = [_like(t, n, "tangent") for t, n in zip(given, nodes, strict=True)]
    with _differentiating(inner):
        out = f(*tree.unflatten(structure, [Tensor(n, n.dtype.is_inexact) for n in inner]))
    ends, shape = tree.flatten(out)
    outputs = [to_node(y, "jvp") for y in ends]
    moving = [(n, t) for n, t in zip(inner, directions, strict=True) if n.dtype.is_inexact]
    found = pushforward(outputs, [n for n, _ in moving], [t for _, t in moving])
    tracked = is_tracked([*outputs, *found])
    results = [
        Tensor(full(0, y.type) if t is None else t, tracked and y.dtype.is_inexact)
        for y, t in zip(outputs, found, strict=True)
    ]
    return _released(out, tracked), tree.unflatten(shape, results)


def _like(value: Any, like: Node, what: str) -> Node:
    """A cotangent or tangent as a node of the type of what it belongs to."""
    node = value.node if isinstance(value, Lazy) else leaf(np.array(as_array(value, like.dtype)))
    if node.type != like.type:
        raise GradientError(f"the {what} of a {like.type} must be of that type, not {node.type}")
    return node


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """A function that applies f to each sample of a stack, in one graph.

    `in_axes` says which axis of each argument carries the samples: an int or None for all, or a
    tuple with one for each argument; None means the same value for every sample, as it is for
    arguments given by name.
    """
    _function(f, "vmap")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ShapeError(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        size: int | Dim | None = None
        samples: dict[Node, Node] = {}
        inner = []
        for i, (arg, axis) in enumerate(zip(args, axes, strict=True)):
            if axis is None:
                inner.append(arg)
                continue
            leaves, structure = tree.flatten(arg)
            new = []
            for x in leaves:
                node = to_node(x, "vmap")
                if node.type.rank == 0:
                    raise ShapeError(f"vmap: argument {i} holds a scalar, which has no axis {axis}")
                stack = moveaxis(node, normal_axis(axis, node.type.rank, "vmap"), 0)
                if size is not None and stack.shape[0] != size:
                    raise ShapeError(
                        f"vmap: argument {i} has {stack.shape[0]} samples, others have {size}"
                    )
                size = stack.shape[0]
                sample = input_node(stack.type.with_shape(stack.shape[1:]))
                samples[sample] = stack
                new.append(Tensor(sample, isinstance(x, Lazy) and x._requires_grad))
            inner.append(tree.unflatten(structure, new))
        if size is None:
            raise ShapeError("vmap: no argument carries samples; in_axes is None throughout")
        out, shape = tree.flatten(f(*inner, **kwargs))
        stacks = batched([to_node(y, "vmap") for y in out], samples, size)
        results = []
        for y, (node, stacked) in zip(out, stacks, strict=True):
            node = node if stacked else expand(node, (size, *node.shape), (0,))
            node = moveaxis(node, 0, normal_axis(out_axes, node.type.rank, "vmap"))
            results.append(Tensor(node, isinstance(y, Lazy) and y._requires_grad))
        return tree.unflatten(shape, results)

    return call
