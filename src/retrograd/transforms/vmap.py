"""vmap: a function of one sample applied to a stack of samples."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from retrograd import pytree
from retrograd.autodiff import batched
from retrograd.coming_from.keywords import respells
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import LEAKED
from retrograd.eager.listeners import shown, unlisted
from retrograd.eager.modes import calling
from retrograd.errors import ShapeError
from retrograd.functions.broadcasting import as_node
from retrograd.functions.manipulation import moveaxis
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, Node
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import expand
from retrograd.tracing.arguments import argument_names
from retrograd.tracing.module_state import Place, StateWatch, places, put_back
from retrograd.tracing.scope import need_function, to_node, wanting
from retrograd.tracing.transformed import Transformed

P = ParamSpec("P")
R = TypeVar("R")


@respells
def vmap(f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Transformed[P, R]:
    """A function that applies f to each sample of a stack, in one graph.

    `in_axes` says which axis of each argument carries the samples: an int or None for all of them,
    or a tuple with one entry for each; an entry is an int, None, or a tree of these that matches
    the upper part of the argument. None means the same value for every sample, as it is for
    arguments given by name. Negative axes count from the end. `out_axes` says in the same way where
    the results carry theirs; None is for results that are the same for every sample.

    Random numbers: a generator of which every sample shall have its own is split before,
    `vmap(f)(rng.split(n), x)`: sample i then draws what `f(rng.split(n)[i], x[i])` would. One that
    the samples share (from around the function, or with None) gives each the same numbers.

    Raises `ShapeError` where arguments carry different numbers of samples, naming them.

    >>> import retrograd as rg
    >>> x, w = rg.ones((5, 3)), rg.ones((3, 2))
    >>> rg.vmap(lambda x, w: x @ w, in_axes=(0, None), out_axes=1)(x, w).shape
    (2, 5)
    >>> noise = rg.vmap(lambda g: g.normal((3,)))(rg.random.Generator(0).split(5))
    >>> noise.shape
    (5, 3)
    """
    need_function(f, "vmap")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        axes = tuple(in_axes) if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ShapeError(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        leaves, structure = pytree.flatten(args)
        spread = [a for axis, arg in zip(axes, args, strict=True) for a in _spread(axis, arg)]
        samples: dict[Node, Node] = {}
        tracked = []
        inner = []
        for i, (x, axis) in enumerate(zip(leaves, spread, strict=True)):
            if axis is None:
                inner.append(x)
                continue
            node = to_node(x, "vmap")
            if node.type.rank == 0:
                raise ShapeError(_no_axis(f, args, i, axis))
            if not -node.type.rank <= axis < node.type.rank:
                raise ShapeError(
                    f"vmap: {argument_names(f, args)[i]}, {node.type}, has no axis {axis}, which "
                    "in_axes says carries its samples"
                )
            stack = as_node(moveaxis(node, axis % node.type.rank, 0))
            sample = input_node(stack.type.with_shape(stack.shape[1:]))
            samples[sample] = stack
            inner.append(Tensor(sample, isinstance(x, LazyTensor) and x._requires_grad))
            if inner[-1].requires_grad:
                tracked.append(sample)
        size = _size(f, args, spread, list(samples.values()))
        try:
            with wanting(tracked), unlisted(), calling():  # tapes are shown the stacks
                given = pytree.unflatten(structure, inner)
                holds = pytree.may_hold_state(given)
                watch = StateWatch(given, structure, inner) if holds else None
                out = f(*given, **kwargs)
                state = [] if watch is None else watch.lost_in_trace(out)
        finally:
            LEAKED.update(samples)
        _keep(args, state, samples, size)
        return _collected(out, out_axes, samples, size)

    return call  # type: ignore[return-value]


def _keep(
    args: tuple[Any, ...],
    state: Sequence[tuple[Place, Any]],
    samples: dict[Node, Node],
    size: int | Dim,
) -> None:
    """Change in modules among the arguments what f has changed in them, where that is the same for
    every sample."""
    if not state:
        return
    stacks = batched([x.node for _, x in state], samples, size)
    pairs = list(zip(state, stacks, strict=True))
    put_back(args, [(at, Tensor(shown(node))) for (at, _), (node, own) in pairs if not own])
    structure = pytree.flatten(args)[1]
    names = dict(zip(places(structure), pytree.paths(args), strict=True))
    if lost := [names[at] for (at, _), (_, own) in pairs if own]:
        warnings.warn(
            f"vmap: every sample changes {', '.join(lost)} of a module in its own way, which is "
            "not kept. Return the module from the function, or call its eval(), or make layers "
            "that keep no running statistics (track_running_stats=False)",
            UserWarning,
            stacklevel=3,
        )


def _collected(out: Any, out_axes: Any, samples: dict[Node, Node], size: int | Dim) -> Any:
    """The results for all samples, their axis where it is wanted."""
    ends, shape = pytree.flatten(out)
    stacks = batched([to_node(y, "vmap") for y in ends], samples, size)
    results = []
    spread = _spread(out_axes, out, "out_axes")
    for i, (y, (node, is_stack), axis) in enumerate(zip(ends, stacks, spread, strict=True)):
        if axis is None:
            if is_stack:
                name = pytree.paths(out)[i]
                raise ShapeError(
                    f"vmap: out_axes is None for the result{name and ' ' + name}, which is not the "
                    "same for every sample; give the axis that shall carry the samples"
                )
        else:
            node = node if is_stack else expand(node, (size, *node.shape), (0,))
            if not -node.type.rank <= axis < node.type.rank:
                name = pytree.paths(out)[i]
                raise ShapeError(
                    f"vmap: out_axes puts the samples at axis {axis} of the result"
                    f"{name and ' ' + name}, which has {node.type.rank} axes with theirs"
                )
            node = as_node(moveaxis(node, 0, axis % node.type.rank))
        results.append(Tensor(shown(node), isinstance(y, LazyTensor) and y._requires_grad))
    return pytree.unflatten(shape, results)


def _spread(axes: Any, arg: Any, what: str = "in_axes") -> list[int | None]:
    """The axis for each leaf of an argument, of a tree that matches its upper part."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * len(pytree.flatten(arg)[0])
    try:
        found = pytree.spread(axes, arg)
    except ValueError as error:
        raise ShapeError(
            f"vmap: {what} has an entry {axes!r} that does not match the upper part of what it is "
            f"for: {error}"
        ) from None
    for axis in found:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise ShapeError(f"vmap: an axis is an int or None, not {axis!r} in {what}")
    return found


def _size(
    f: Callable[..., Any], args: Sequence[Any], spread: Sequence[Any], stacks: Sequence[Node]
) -> int | Dim:
    """The number of samples, on which all stacks have to agree."""
    if not stacks:
        raise ShapeError("vmap: no argument carries samples; in_axes is None throughout")
    size = stacks[0].shape[0]
    for i, stack in enumerate(stacks):
        if stack.shape[0] != size:
            names = [
                (n, a) for n, a in zip(argument_names(f, args), spread, strict=True)
                if a is not None
            ]  # fmt: skip
            (first, a), (other, b) = names[0], names[i]
            raise ShapeError(
                f"vmap: {other} has {stack.shape[0]} samples along axis {b}, but {first} has "
                f"{size} along axis {a}; if one of them is for all samples, give it None in in_axes"
            )
    return size


def _no_axis(f: Callable[..., Any], args: Sequence[Any], i: int, axis: int) -> str:
    """What is wrong with leaf `i`, which is a scalar."""
    name = argument_names(f, args)[i]
    if pytree.is_state(tuple(args))[i]:
        return (
            f"vmap: {name} is part of one random generator, not of a stack of them; give every "
            "sample its own (rng.split(n) for n samples), or None in in_axes for one that all share"
        )
    return (
        f"vmap: {name} is a scalar, which has no axis {axis} to carry samples; give it None in "
        "in_axes, if it is the same for all of them"
    )
