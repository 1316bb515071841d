"""Taking arguments apart and putting results together, as steps that `fast_call.c` follows.

`flatten_program` lists the steps that find the leaves of arguments of one structure, checking on
the way that it is this structure; `unflatten_program` those that make a result. They do for one
structure what `tree.flatten` and `tree.unflatten` do for all, without asking at every node what it
is. Tuples, named tuples, lists, dicts and None are walked; where there is anything else (modules,
dataclasses, ...), the steps are those for a list of the leaves, and `tree` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from optree import PyTreeKind

from retrograd import pytree
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call

LARGEST = 1000  # leaves; the steps of larger trees take long to make

KINDS = {
    PyTreeKind.TUPLE: fast_call.TUPLE, PyTreeKind.NAMEDTUPLE: fast_call.TUPLE,
    PyTreeKind.LIST: fast_call.LIST, PyTreeKind.DICT: fast_call.DICT,
}  # fmt: skip
SCALARS = (
    np.float16, np.float32, np.float64, np.bool_, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
NUMBERS = {int: fast_call.INT, float: fast_call.FLOAT, **dict.fromkeys(SCALARS, fast_call.SCALAR)}


class Fixed:
    """A leaf that has to be this object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def is_plain(structure: Any) -> bool:
    """Whether a structure has only parts that are walked."""
    if structure.kind in (PyTreeKind.LEAF, PyTreeKind.NONE):
        return True
    if structure.kind == PyTreeKind.NAMEDTUPLE and not _is_record(structure.type):
        return False
    return structure.kind in KINDS and all(map(is_plain, structure.children()))


def _is_record(cls: Any) -> bool:
    """Whether instances of a class of named tuples are made by what `namedtuple` has written."""
    return cls.__new__.__module__.startswith("namedtuple_") and cls.__init__ is object.__init__


def flatten_program(structure: Any, kinds: Sequence[tuple[Any, bool]]) -> list[fast_call.Take]:
    """The steps for `(args, kwargs)` of a plain structure. Of the leaves, `kinds` has the classes,
    or a `Fixed`, and whether they are donated."""
    steps: list[fast_call.Take] = []
    free = 2
    leaves = iter(kinds)
    todo = list(zip(structure.children(), (0, 1), strict=True))[::-1]
    while todo:
        node, x = todo.pop()
        n = node.num_children
        if node.kind == PyTreeKind.LEAF:
            kind, gone = next(leaves)
            steps.append(_leaf(x, kind, gone))
        elif node.kind == PyTreeKind.NONE:
            steps.append(fast_call.Take(fast_call.SAME, x, None))
        else:
            # A structure lists keys sorted; a dict is likely to have them in the order it had.
            order = list(range(n))
            keys: list[Any] = []
            if node.kind == PyTreeKind.DICT:
                at = pytree.unflatten(node.one_level(), order) if n else {}
                keys, order = list(at), sorted(order, key=list(at.values()).__getitem__)
            steps.append(fast_call.Take(KINDS[node.kind], x, node.type, n, keys=tuple(keys)))
            todo += [(c, free + i) for c, i in zip(node.children(), order, strict=True)][::-1]
            free += n
    return steps


def taking_leaves(kinds: Sequence[tuple[Any, bool]]) -> list[fast_call.Take]:
    """The steps for a list of leaves instead of `args`."""
    leaves = [_leaf(2 + i, *x) for i, x in enumerate(kinds)]
    return [fast_call.Take(fast_call.LIST, 0, list, len(leaves)), *leaves]


def _leaf(x: int, kind: Any, gone: bool) -> fast_call.Take:
    if isinstance(kind, Fixed):
        return fast_call.Take(fast_call.SAME, x, kind.value)
    if issubclass(kind, LazyTensor):
        return fast_call.Take(fast_call.TENSOR, x, kind, gone=gone)
    return fast_call.Take(NUMBERS.get(kind, fast_call.ARRAY), x, kind)


class Putting(NamedTuple):
    """Steps for a result that is then in the register `root`."""

    steps: list[fast_call.Put]
    root: int


def unflatten_program(structure: Any, fixed: Sequence[Any], computed: object) -> Putting:
    """The steps for a plain structure. Its leaves are the outputs of the program where `fixed` has
    the mark `computed`, otherwise what stands there."""
    count = sum(y is computed for y in fixed)
    steps: list[fast_call.Put] = []

    def step(*put: Any) -> int:
        steps.append(fast_call.Put(*put))
        return count + len(steps) - 1

    outputs = iter(range(count))
    leaves = iter([next(outputs) if y is computed else step(fast_call.CONSTANT, y) for y in fixed])
    return Putting(steps, _put(structure, leaves, step))


def _put(structure: Any, leaves: Iterator[int], step: Callable[..., int]) -> int:
    """The register with a part of the result."""
    if structure.kind == PyTreeKind.LEAF:
        return next(leaves)
    if structure.kind == PyTreeKind.NONE:
        return step(fast_call.CONSTANT, None)
    parts = [_put(below, leaves, step) for below in structure.children()]
    if structure.kind == PyTreeKind.NAMEDTUPLE:
        return step(fast_call.INSTANCE, structure.type, parts)
    if structure.kind != PyTreeKind.DICT:
        return step(KINDS[structure.kind], None, parts)
    # The structure lists keys sorted; the dict has them in the order of the traced result.
    order = pytree.unflatten(structure.one_level(), parts) if parts else {}
    return step(fast_call.DICT, dict.fromkeys(order), list(order.values()), tuple(order))


def prepared(kind: Any, gone: bool) -> Callable[[Any], Any] | None:
    """What has to be done in Python with a leaf, for a native call to take it; None for nothing.

    A donated array that is no tensor's is copied: it stays the user's.
    """
    if isinstance(kind, Fixed) or issubclass(kind, LazyTensor) or kind in NUMBERS:
        return None
    if gone:
        return _copied
    return None if kind is np.ndarray or kind in SCALARS else np.array


def _copied(x: Any) -> LazyTensor:
    """A tensor with a copy of what is no tensor."""
    return LazyTensor.handle_class.dehydrated(np.array(x))
