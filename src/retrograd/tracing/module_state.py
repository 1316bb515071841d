"""What a function changes in modules that it is given: running statistics, states of generators.

A transform calls its function on modules put together from other tensors, so what `forward` assigns
there is not assigned in the caller's. Where it is not returned either, it would be lost: it is
`put_back` into the modules that the caller gave.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from optree import PyTreeKind

from retrograd import pytree
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.ir import Node, reachable
from retrograd.tree_plan import OBJECTS, Items, ModuleNode, ParameterLeaf, Subtree

Place = tuple[Any, ...]  # steps from a tree to a leaf: keys and positions, and an `Attribute`


class Attribute(str):
    """A step to an attribute."""

    __slots__ = ()


class WithState(NamedTuple):
    """The result of a function, and what it has changed in modules."""

    result: Any
    values: tuple[Any, ...]
    places: Places


class Places:
    """The places of changed values, as one leaf of a result; for equal ones there is one object."""

    __slots__ = ("listed",)

    def __init__(self, listed: tuple[Place, ...]) -> None:
        self.listed = listed


_interned = functools.lru_cache(maxsize=1000)(Places)


def places(structure: Any) -> list[Place | None]:
    """For each leaf its place, if it is a tensor of a module and no parameter; else None."""
    return list(_places(structure, (), False))


def _places(node: Any, path: Place, held: bool) -> Iterator[Place | None]:
    if node.kind == PyTreeKind.LEAF:
        yield path if held else None
        return
    inner: list[tuple[Any, bool]]
    if node.kind == PyTreeKind.CUSTOM:
        inner = _of_object(node, path, held)
    else:
        inner = [((*path, key), held) for key in node.entries()]
    for child, (place, below) in zip(node.children(), inner, strict=True):
        yield from _places(child, place, below)


def _of_object(node: Any, path: Place, held: bool) -> list[tuple[Any, bool]]:
    """The places of the children of an object, and whether they are a module's state."""
    if node.type in OBJECTS:
        return [((*path, Attribute(name)), held) for name in OBJECTS[node.type].children]
    plan = pytree.metadata(node)
    if not isinstance(plan, ModuleNode):
        return [((*path, Attribute(str(name))), False) for name in node.entries()]
    found: dict[int, tuple[Any, bool]] = {}
    todo: list[tuple[Any, Place]] = [(plan, path)]
    while todo:
        part, at = todo.pop()
        if isinstance(part, ModuleNode):
            todo += [
                (x, (*at, Attribute(key))) for key, x in zip(part.keys, part.values, strict=True)
            ]
        elif isinstance(part, Items):
            keys = part.keys if part.kind is dict else range(len(part.values))
            todo += [(x, (*at, key)) for key, x in zip(keys, part.values, strict=True)]
        elif isinstance(part, Subtree | ParameterLeaf):
            found[part.at] = at, isinstance(part, Subtree)
    return [found[i] for i in range(node.num_children)]


def changed(tree: Any, before: Sequence[Any], structure: Any) -> list[tuple[Place, Any]]:
    """What is another tensor in the modules of a tree than before."""
    after, now = pytree.flatten(tree)
    if all(x is y for x, y in zip(before, after, strict=False)) or now != structure:
        return []  # what has another structure has no places to put things back to
    found = zip(places(structure), before, after, strict=True)
    return [(place, y) for place, x, y in found if place is not None and x is not y]


def put_back(tree: Any, state: Iterable[tuple[Place, Any]]) -> None:
    """Have these values at their places in the modules of a tree."""
    for place, value in state:
        _put(tree, place, value)


def _put(holder: Any, place: Place, value: Any) -> Any:
    """The holder, or where that is a tuple another one, with a value at its place."""
    step, *rest = place
    of = vars(holder) if isinstance(step, Attribute) else holder
    new = _put(of[step], tuple(rest), value) if rest else value
    if isinstance(of, tuple):
        return (*of[:step], new, *of[step + 1 :])
    of[step] = new
    return holder


class StateWatch:
    """Arguments that a function is called on, and what it changes in their modules."""

    __slots__ = ("_before", "_structure", "_tree")

    def __init__(self, tree: Any, structure: Any = None, leaves: Any = None) -> None:
        self._tree = tree
        self._before, self._structure = leaves, structure
        if leaves is None:
            self._before, self._structure = pytree.flatten(tree)

    def lost(self, result: Any) -> list[tuple[Place, Any]]:
        """What has changed and is not among what the function returned."""
        found = changed(self._tree, self._before, self._structure)
        if not found:
            return []
        kept = {id(x) for x in pytree.flatten(result)[0]}
        return [(place, x) for place, x in found if id(x) not in kept]

    def lost_in_trace(self, result: Any) -> list[tuple[Place, Any]]:
        """The same while tracing: what no result is computed from."""
        found = self.lost(result)
        if not found:
            return []
        ends = [x.node for x in pytree.flatten(result)[0] if isinstance(x, LazyTensor)]
        kept: set[Node] = set(reachable(ends))
        return [(place, x) for place, x in found if x.node not in kept]


def settled(result: Any, tree: Any) -> Any:
    """The result of a function; if it is one `with_state`, the changes are made in this tree."""
    if type(result) is not WithState:
        return result
    put_back(tree, zip(result.places.listed, result.values, strict=True))
    return result.result


def with_state(f: Callable[..., Any]) -> Callable[..., WithState]:
    """A function that returns in addition what f changes in modules and does not return."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> WithState:
        watch = StateWatch((args, kwargs))
        result = f(*args, **kwargs)
        lost = watch.lost_in_trace(result)
        listed = tuple(place for place, _ in lost)
        return WithState(result, tuple(x for _, x in lost), _interned(listed))

    return call
