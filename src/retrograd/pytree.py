"""Pytrees: nested tuples, lists, dicts, named tuples, dataclasses and modules with tensors in them.

A thin layer over `optree`. Dataclasses are taken apart by field; classes of other kinds join by
`register`.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import optree

NAMESPACE = "retrograd"
TreeDef = Any
T = TypeVar("T", bound=type)


_REGISTERED: set[type] = set()
_STATEFUL: set[type] = set()
_PLAIN: set[type] = set()  # of what was met in trees and is neither a container nor one of these


class _Attribute(optree.GetAttrEntry):
    """A child by the path that leads to it: `weight`, `layers[0].weight`, `[0].weight`."""

    def codify(self, node: str = "") -> str:
        return f"{node}{'' if self.entry.startswith('[') else '.'}{self.entry}"


def register(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any, Sequence[Any]]],
    unflatten: Callable[[Any, Any], Any],
    *,
    holds_state: bool = False,
) -> None:
    """Make instances of a class trees: `flatten` gives children, metadata, names of children.

    With `holds_state`, leaves that are not floating are state that comes along, such as a random
    key: transforms give them a gradient of zero instead of refusing them.
    """
    optree.register_pytree_node(
        cls, flatten, unflatten, path_entry_type=_Attribute, namespace=NAMESPACE
    )
    _REGISTERED.add(cls)
    if holds_state:
        _STATEFUL.add(cls)
        _PLAIN.discard(cls)


def is_state(tree: Any) -> list[bool]:
    """For each leaf whether it belongs to an object that was registered with `holds_state`."""
    found: list[bool] = []
    for x in tops(tree, lambda x: type(x) in _STATEFUL):
        held = type(x) in _STATEFUL
        found += [held] * (len(flatten(x)[0]) if held else 1)
    return found


def may_hold_state(tree: Any) -> bool:
    """Whether there may be such an object in a tree; quick to say no."""
    todo = [tree]
    for x in todo:
        kind = type(x)
        if kind in _PLAIN:
            continue
        if isinstance(x, tuple | list):
            todo += [y for y in x if type(y) not in _PLAIN]
        elif isinstance(x, dict):
            todo += [y for y in x.values() if type(y) not in _PLAIN]
        elif kind in _STATEFUL or dataclasses.is_dataclass(kind):
            return True
        else:
            _PLAIN.add(kind)
    return False


def tops(tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """The leaves of a tree in which objects that `is_leaf` says yes to are leaves too."""
    flatten(tree)  # registers dataclasses
    return optree.tree_leaves(tree, is_leaf=is_leaf, namespace=NAMESPACE)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, from left to right, and its structure. None is an empty tree."""
    while True:
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
        if not _register_dataclasses(leaves):
            return leaves, structure


def unflatten(structure: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of this structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def metadata(structure: TreeDef) -> Any:
    """What `flatten` of a class gave as metadata, of the top of a structure."""
    return structure.__getstate__()[0][-1][2]


def paths(tree: Any) -> list[str]:
    """For each leaf how it is reached, as Python writes it: `.layers[2]['w']`."""
    flatten(tree)  # registers dataclasses
    accessors = optree.tree_accessors(tree, namespace=NAMESPACE)
    return [a.codify("") for a in accessors]


def names(structure: TreeDef) -> list[str]:
    """`paths` of a structure alone."""
    return [a.codify("") for a in structure.accessors()]


def children(tree: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Keys, positions or names of what a tree holds directly, and that; of a leaf nothing."""
    leaves, _ = flatten(tree)  # registers dataclasses
    if len(leaves) == 1 and leaves[0] is tree:
        return (), []
    found = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return tuple(found.entries), list(found.children)


def one_level(tree: Any) -> tuple[tuple[Any, ...], list[Any], Any]:
    """Keys, positions or names of what a tree that is no leaf holds directly, that, and what
    `flatten` of its class gave as metadata."""
    flatten(tree)  # registers dataclasses
    found = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return tuple(found.entries), list(found.children), found.metadata


def spread(prefix: Any, tree: Any) -> list[Any]:
    """For each leaf of a tree the leaf above it of `prefix`, a tree that matches the upper part.
    None is a leaf of `prefix`. Raises `ValueError` where it does not match."""
    flatten(tree)  # registers dataclasses
    leaves = optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)
    found = optree.broadcast_prefix(prefix, tree, none_is_leaf=True, namespace=NAMESPACE)
    return [p for p, x in zip(found, leaves, strict=True) if x is not None]


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`f` applied to each leaf, and to the leaves at the same places of other trees."""
    leaves, structure = flatten(tree)
    others = []
    for i, t in enumerate(rest):
        found, other = flatten(t)
        if other != structure:
            raise ValueError(f"tree {i + 1} has the structure {other}, the first has {structure}")
        others.append(found)
    return unflatten(structure, [f(*group) for group in zip(leaves, *others, strict=True)])


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, from left to right."""
    return flatten(tree)[0]


def structure(tree: Any) -> TreeDef:
    """What a tree is made of, without its leaves."""
    return flatten(tree)[1]


def all(tree: Any) -> bool:
    """Whether all leaves are true."""
    return builtins.all(flatten(tree)[0])


def reduce(f: Callable[[Any, Any], Any], tree: Any, *initializer: Any) -> Any:
    """The leaves combined by `f` from left to right, after the initializer if there is one."""
    return functools.reduce(f, flatten(tree)[0], *initializer)


def _register_dataclasses(leaves: Sequence[Any]) -> bool:
    """Register the classes of leaves that are dataclass instances; whether there were any."""
    found = {c for c in {type(x) for x in leaves} if dataclasses.is_dataclass(c)}
    for cls in found:
        register_dataclass(cls)
    return bool(found)


def register_dataclass(cls: T) -> T:
    """Make instances of a dataclass trees of their fields, as `flatten` does when it meets one;
    nothing happens to another class, or to one that is known. The class, so that it is a decorator,
    too."""
    if dataclasses.is_dataclass(cls) and cls not in _REGISTERED:
        names = tuple(f.name for f in dataclasses.fields(cls) if f.init)
        register(cls, _splitter(names), _joiner(cls, names))
    return cls


def classes(structure: TreeDef) -> list[type]:
    """The classes whose instances are inside of trees of a structure; each once."""
    found: dict[type, None] = {}
    todo = [structure]
    while todo:
        tree = todo.pop()
        if tree.type is not None:
            found[tree.type] = None
        todo += tree.children()
    return list(found)


def _splitter(names: tuple[str, ...]) -> Callable[[Any], tuple[Sequence[Any], Any, Sequence[Any]]]:
    return lambda x: ([getattr(x, n) for n in names], None, names)


def _joiner(cls: type, names: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    return lambda _, children: cls(**dict(zip(names, children, strict=True)))
