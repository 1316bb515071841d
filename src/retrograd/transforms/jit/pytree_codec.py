"""Taking arguments apart and putting results together, as steps that `fast_call.c` follows.

`flatten_program` lists the steps that find the leaves of arguments of one structure, checking on
the way that it is this structure; `unflatten_program` those that make a result. They do for one
structure what `tree.flatten` and `tree.unflatten` do for all, without asking at every node what it
is. Tuples, named tuples, lists, dicts, None, modules and random generators are walked; where there
is anything else (dataclasses, ...), the steps are those for a list of the leaves, and `tree` does
the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from optree import PyTreeKind

from retrograd import pytree
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call
from retrograd.tree_plan import OBJECTS, Again, Items, ModuleNode, ParameterLeaf, Static

LARGEST = 1000  # leaves; the steps of larger trees take long to make

KINDS = {
    PyTreeKind.TUPLE: fast_call.TUPLE, PyTreeKind.NAMEDTUPLE: fast_call.TUPLE,
    PyTreeKind.LIST: fast_call.LIST, PyTreeKind.DICT: fast_call.DICT,
}  # fmt: skip
CONTAINERS: dict[type, int] = {tuple: fast_call.TUPLE, list: fast_call.LIST, dict: fast_call.DICT}
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
    if structure.kind == PyTreeKind.CUSTOM:
        known = structure.type in OBJECTS or _is_tree(structure)
        return known and all(map(is_plain, structure.children()))
    return structure.kind in KINDS and all(map(is_plain, structure.children()))


def _is_record(cls: Any) -> bool:
    """Whether instances of a class of named tuples are made by what `namedtuple` has written."""
    return cls.__new__.__module__.startswith("namedtuple_") and cls.__init__ is object.__init__


def _is_tree(structure: Any) -> bool:
    """Whether there is a plan of an object, in which no object holds one that holds it."""
    plan = pytree.metadata(structure)
    if not isinstance(plan, ModuleNode):
        return False
    open_: set[int] = set()
    todo: list[tuple[Any, bool]] = [(plan, False)]
    while todo:
        part, leaves = todo.pop()
        if isinstance(part, Again) and part.number in open_:
            return False
        if isinstance(part, ModuleNode) and not _is_simple(part.cls):
            return False
        if leaves:
            open_.discard(part.number)
        elif isinstance(part, ModuleNode | Items):
            if isinstance(part, ModuleNode):
                open_.add(part.number)
                todo.append((part, True))
            todo += [(x, False) for x in part.values]
    return True


def _is_simple(cls: type) -> bool:
    """Whether instances of a class are made by `object.__new__` and have attributes alone."""
    return not any(vars(c).get("__slots__") for c in cls.__mro__)


class _Taking:
    """The steps that take arguments apart, in the order of the leaves."""

    def __init__(self, kinds: Sequence[tuple[Any, bool]]) -> None:
        self.steps: list[fast_call.Take] = []
        self._free = 2
        self._leaves = iter(kinds)

    def _items(self, kind: int, x: int, what: Any, n: int, keys: tuple[Any, ...] = ()) -> range:
        """Have the items of what is in a register in others."""
        self.steps.append(fast_call.Take(kind, x, what, n, keys=keys))
        self._free += n
        return range(self._free - n, self._free)

    def tree(self, node: Any, x: int) -> None:
        """What is in a register, as a structure says."""
        n = node.num_children
        if node.kind == PyTreeKind.LEAF:
            self.steps.append(_leaf(x, *next(self._leaves)))
        elif node.kind == PyTreeKind.NONE:
            self.steps.append(fast_call.Take(fast_call.SAME, x, None))
        elif node.kind == PyTreeKind.CUSTOM and node.type in OBJECTS:
            names, others = OBJECTS[node.type]
            at = self._items(fast_call.OBJECT, x, node.type, n + len(others), (*names, *others))
            for y, value in zip(at[n:], others.values(), strict=True):
                self.steps.append(fast_call.Take(fast_call.SAME, y, value))
            for child, y in zip(node.children(), at, strict=False):
                self.tree(child, y)
        elif node.kind == PyTreeKind.CUSTOM:
            self._object(node, x)
        else:
            # A structure lists keys sorted; a dict is likely to have them in the order it had.
            order = list(range(n))
            keys: list[Any] = []
            if node.kind == PyTreeKind.DICT:
                at_keys = pytree.unflatten(node.one_level(), order) if n else {}
                keys, order = list(at_keys), sorted(order, key=list(at_keys.values()).__getitem__)
            at = self._items(KINDS[node.kind], x, node.type, n, tuple(keys))
            for child, i in zip(node.children(), order, strict=True):
                self.tree(child, at[i])

    def _object(self, node: Any, x: int) -> None:
        """An object of which there is a plan. Its children come in the order in which they are
        met."""
        children = node.children()
        known: dict[int, int] = {}  # registers of children
        objects: dict[int, int] = {}
        todo: list[tuple[Any, int]] = [(pytree.metadata(node), x)]
        while todo:
            part, y = todo.pop()
            if isinstance(part, ModuleNode):
                objects[part.number] = y
                at = self._items(fast_call.OBJECT, y, part.cls, len(part.keys), part.keys)
                todo += list(zip(part.values, at, strict=True))[::-1]
            elif isinstance(part, Items):
                kind = CONTAINERS[part.kind]
                at = self._items(kind, y, part.kind, len(part.values), part.keys)
                todo += list(zip(part.values, at, strict=True))[::-1]
            elif isinstance(part, Again):
                first = (objects[part.number],)
                self.steps.append(fast_call.Take(fast_call.REPEATED, y, None, keys=first))
            elif isinstance(part, Static):
                plain = type(part.value) in (int, float, str, bytes)
                kind = fast_call.EQUAL if plain else fast_call.SAME
                self.steps.append(fast_call.Take(kind, y, part.value))
            elif part.at in known:
                first = (known[part.at],)
                self.steps.append(fast_call.Take(fast_call.REPEATED, y, None, keys=first))
            else:
                known[part.at] = y
                self.tree(children[part.at], y)
                if isinstance(part, ParameterLeaf):
                    slot = (vars(part.cls)["trainable"],)
                    self.steps.append(fast_call.Take(fast_call.FIELD, y, part.trainable, keys=slot))
        every = (*known.values(), *objects.values())
        self.steps.append(fast_call.Take(fast_call.DISTINCT, x, None, keys=every))


def flatten_program(structure: Any, kinds: Sequence[tuple[Any, bool]]) -> list[fast_call.Take]:
    """The steps for `(args, kwargs)` of a plain structure. Of the leaves, `kinds` has the classes,
    or a `Fixed`, and whether they are donated."""
    taking = _Taking(kinds)
    for node, x in zip(structure.children(), (0, 1), strict=True):
        taking.tree(node, x)
    return taking.steps


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
    """Steps for a result that is then in the register `root`, and the classes of outputs that are
    not just tensors."""

    steps: list[fast_call.Put]
    root: int
    classes: dict[int, fast_call.OutputClass]


def unflatten_program(structure: Any, fixed: Sequence[Any], computed: object) -> Putting:
    """The steps for a plain structure. Its leaves are the outputs of the program where `fixed` has
    the mark `computed`, otherwise what stands there."""
    putting = _Putting(fixed, computed)
    root = putting.tree(structure)
    return Putting(putting.steps, root, putting.classes)


class _Putting:
    """The steps that make a result."""

    def __init__(self, fixed: Sequence[Any], computed: object) -> None:
        self.count = sum(y is computed for y in fixed)
        self.steps: list[fast_call.Put] = []
        self.classes: dict[int, fast_call.OutputClass] = {}
        outputs = iter(range(self.count))
        self._leaves = iter(
            [next(outputs) if y is computed else self.step(fast_call.CONSTANT, y) for y in fixed]
        )

    def step(self, *put: Any) -> int:
        """One more step; the register with what it makes."""
        self.steps.append(fast_call.Put(*put))
        return self.count + len(self.steps) - 1

    def tree(self, structure: Any) -> int:
        """The register with a part of the result."""
        if structure.kind == PyTreeKind.LEAF:
            return next(self._leaves)
        if structure.kind == PyTreeKind.NONE:
            return self.step(fast_call.CONSTANT, None)
        parts = [self.tree(below) for below in structure.children()]
        if structure.kind == PyTreeKind.NAMEDTUPLE:
            return self.step(fast_call.INSTANCE, structure.type, parts)
        if structure.kind == PyTreeKind.CUSTOM and structure.type in OBJECTS:
            names, others = OBJECTS[structure.type]
            return self._made(structure.type, (*names, *others), dict(others), parts, names)
        if structure.kind == PyTreeKind.CUSTOM:
            return self._object(pytree.metadata(structure), parts)
        if structure.kind != PyTreeKind.DICT:
            return self.step(KINDS[structure.kind], None, parts)
        # The structure lists keys sorted; the dict has them in the order of the traced result.
        order = pytree.unflatten(structure.one_level(), parts) if parts else {}
        return self.step(fast_call.DICT, dict.fromkeys(order), list(order.values()), tuple(order))

    def _made(
        self, cls: type, order: Sequence[str], static: dict[str, Any], parts: list[int],
        keys: Sequence[str],
    ) -> int:  # fmt: skip
        """An object with attributes in an order: static ones, and what is in registers."""
        attributes = {k: static.get(k) for k in order}
        dictionary = self.step(fast_call.DICT, attributes, parts, tuple(keys))
        return self.step(fast_call.MADE, cls, [dictionary])

    def _object(self, plan: Any, children: list[int]) -> int:
        """An object by its plan. What stands in it several times is copied before."""
        times = Counter(part.at for part in _parts(plan) if hasattr(part, "at"))
        spare = {
            at: [self.step(fast_call.COPY, None, [children[at]]) for _ in range(n - 1)]
            for at, n in times.items()
        }
        met: Counter[int] = Counter(p.number for p in _parts(plan) if isinstance(p, Again))
        copies: dict[int, list[int]] = {}

        def put(part: Any) -> int:
            if isinstance(part, Static):
                return self.step(fast_call.CONSTANT, part.value)
            if isinstance(part, Again):
                return copies[part.number].pop()
            if isinstance(part, Items):
                found = [put(x) for x in part.values]
                if part.kind is dict:
                    return self.step(fast_call.DICT, dict.fromkeys(part.keys), found, part.keys)
                return self.step(CONTAINERS[part.kind], None, found)
            if isinstance(part, ModuleNode):
                pairs = list(zip(part.keys, part.values, strict=True))
                static = {k: v.value for k, v in pairs if isinstance(v, Static)}
                keys = [k for k in part.keys if k not in static]
                found = [put(v) for k, v in pairs if k not in static]
                made = self._made(part.cls, part.keys, static, found, keys)
                more = [self.step(fast_call.COPY, None, [made]) for _ in range(met[part.number])]
                copies[part.number] = more
                return made
            if isinstance(part, ParameterLeaf):
                self._parameter(part, children[part.at])
            return spare[part.at].pop() if spare[part.at] else children[part.at]

        return put(plan)

    def _parameter(self, part: ParameterLeaf, register: int) -> None:
        if register < self.count:
            slot = vars(part.cls)["trainable"]
            self.classes[register] = fast_call.OutputClass(part.cls, slot, part.trainable)


def _parts(plan: Any) -> Iterator[Any]:
    """A plan and everything in it."""
    todo = [plan]
    while todo:
        part = todo.pop()
        yield part
        todo += part.values if isinstance(part, ModuleNode | Items) else ()


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
