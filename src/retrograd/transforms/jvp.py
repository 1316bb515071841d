"""Forward mode for functions: jvp, linearize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from retrograd import pytree
from retrograd.autodiff import pushforward
from retrograd.eager.weak_types import wide
from retrograd.errors import ArgumentError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node, reachable, substitute
from retrograd.ops.leaf import input_node
from retrograd.tracing.module_state import put_back
from retrograd.tracing.scope import (
    argument,
    called_on,
    detach_results,
    is_tracked,
    match_cotangents,
    need_arguments,
    need_function,
    stand_in,
    tensors,
    to_node,
    with_aux,
)

R = TypeVar("R")
X = TypeVar("X")


@overload
def jvp(
    f: Callable[..., R],
    args: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = ...,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, X]],
    args: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, X]: ...
@overload
def jvp(
    f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]: ...
def jvp(
    f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """`(out, tangent)`: the value and its derivative in the direction of the tangents, `df/dx v`.

    Arguments and tangents are tuples of the same structure, shapes and dtypes. Integers have no
    direction: theirs is given, as zeros, and ignored. With `has_aux`, f returns `(out, aux)` and
    the result is `(out, tangent, aux)`.

    `ArgumentError` where arguments or tangents are no tuples, `GradientError` for a tangent of
    another shape or structure than its argument.

    >>> import retrograd as rg
    >>> out, slope = rg.jvp(lambda x: x**2, (3.0,), (1.0,))
    >>> out.item(), slope.item()
    (9.0, 6.0)
    """
    need_function(f, "jvp")
    if not (isinstance(args, tuple | list) and isinstance(tangents, tuple | list)):
        raise ArgumentError(
            "jvp takes the arguments and the tangents as tuples, with an entry for each argument "
            "of the function: rg.jvp(f, (x,), (t,)) for a function of one, not "
            f"{type(args).__name__} and {type(tangents).__name__}"
        )
    need_arguments(f, args, "jvp")
    leaves, structure = pytree.flatten(tuple(args))
    nodes = [argument(x, "jvp") for x in leaves]
    directions = match_cotangents(tuple(tangents), structure, nodes, "tangent", "arguments")
    inner = [stand_in(n) for n in nodes]
    result, state = called_on(f, structure, inner, {})
    out, aux = with_aux(result, has_aux, "out")
    ends, shape = pytree.flatten(out)
    outputs = [to_node(y, "jvp") for y in ends]
    found = _pushed(outputs, inner, directions)
    tracked = is_tracked([*outputs, *found])
    put_back(args, detach_results(state, tracked))
    moved = pytree.unflatten(shape, tensors(found, outputs, tracked))
    out, aux = detach_results((out, aux), tracked)
    return (out, moved, aux) if has_aux else (out, moved)


def _pushed(
    outputs: Sequence[Node], inner: Sequence[Node], directions: Sequence[Node]
) -> list[Node | None]:
    moving = [(n, t) for n, t in zip(inner, directions, strict=True) if n.dtype.is_inexact]
    return pushforward(outputs, [wide(n) for n, _ in moving], [t for _, t in moving])


def linearize(f: Callable[..., R], *args: Any) -> tuple[R, Callable[..., R]]:
    """`(out, tangent_of)`: the value at a point, and the linear function `v -> df/dx v` there.

    `tangent_of(*tangents)` gives what `jvp(f, args, tangents)` gives, for as many directions as
    one likes: what it needs of f is computed once, and kept for as long as it lives.

    Tangents have the shapes and dtypes of the arguments, what is returned those of the output; for
    other shapes it is a `GradientError`.

    >>> import retrograd as rg
    >>> out, slope = rg.linearize(rg.sin, 0.0)
    >>> slope(1.0).item(), slope(2.0).item()
    (1.0, 2.0)
    """
    need_function(f, "linearize")
    need_arguments(f, args, "linearize")
    leaves, structure = pytree.flatten(args)
    inner = [stand_in(argument(x, "linearize")) for x in leaves]
    out, state = called_on(f, structure, inner, {})
    ends, shape = pytree.flatten(out)
    outputs = [to_node(y, "linearize") for y in ends]
    directions = [input_node(wide(n).type) for n in inner]
    found = _pushed(outputs, inner, directions)
    tracked = is_tracked([*outputs, *found])
    put_back(args, detach_results(state, tracked))
    kept = [Tensor(n, tracked) for n in _read_from_f([t for t in found if t], set(directions))]

    def tangent_of(*tangents: Any) -> Any:
        given = match_cotangents(tangents, structure, inner, "tangent", "arguments")
        # `kept` are alive, so they are computed once: with the first of these.
        new = dict(zip(directions, given, strict=True)) | {h.node: h.node for h in kept}
        moved = iter(substitute([t for t in found if t is not None], new))
        results = [None if t is None else next(moved) for t in found]
        again = is_tracked(results)
        return pytree.unflatten(shape, tensors(results, outputs, again))

    return detach_results(out, tracked), tangent_of


def _read_from_f(tangents: Sequence[Node], directions: set[Node]) -> list[Node]:
    """The nodes without tangent that the tangents are computed from."""
    linear: set[Node] = set(directions)
    found: dict[Node, None] = {}
    for node in reachable(tangents):
        if any(x in linear for x in node.inputs):
            linear.add(node)
            found.update((x, None) for x in node.inputs if x not in linear and x.inputs)
    return list(found)
