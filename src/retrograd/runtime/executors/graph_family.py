"""Recorded graphs that differ in sizes alone, as one graph with names.

Two graphs of the same operations have the same *skeleton*, and differ in numbers: sizes of inputs,
and attributes that follow from these. Their least general generalization (anti-unification) has
names for the sizes that differ and expressions of these for the attributes. It serves every graph
of the skeleton that it becomes where the names have values, and those alone: which is looked up,
not assumed. Nothing is optimised, planned or compiled for such a graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from retrograd.errors import RetrogradError
from retrograd.ir import Dim, Graph, Node, evaluate, expressed, lowest
from retrograd.ir.node import names_of, nested
from retrograd.ops.leaf import Constant, input_node
from retrograd.runtime.backend import Program
from retrograd.shared import own_lock
from retrograd.tuning import TUNING

LETTERS = "NMLKPQRSTUVWABCDEFGHIJ"


class Unlike(Exception):
    """A graph that is not compared with others."""


class Skeleton(NamedTuple):
    """A graph but for its numbers, and these: those of its inputs first."""

    key: Hashable
    numbers: tuple[int, ...]
    inputs: int


def skeleton(graph: Graph) -> Skeleton:
    """A graph taken apart, those of loops and choices in it, too. `Unlike` where it holds names
    already, has no sizes, or is so large that this is not worth it."""
    if len(graph.body) > TUNING.huge_nodes or not any(x.shape for x in graph.inputs):
        raise Unlike
    numbers: list[int] = []
    key = _graph_key(graph, numbers)
    return Skeleton(key, tuple(numbers), sum([len(x.shape) for x in graph.inputs]))


def _graph_key(graph: Graph, numbers: list[int]) -> Hashable:
    """What a graph is but for numbers, which are added to a list."""
    key: list[Any] = []
    place: dict[Node, int] = {}
    for x in graph.inputs:
        place[x] = len(place)
        key.append((x.dtype, _taken(x.shape, numbers)))
    for node in graph.body:
        place[node] = len(place)
        prim, before = node.prim, len(numbers)
        parts: list[Any] = [type(prim), prim.name]
        if isinstance(prim, Constant):
            parts += [prim.value.dtype.str, prim.value.tobytes(), prim.value.ndim]
            parts.append(prim.shape if prim.value.ndim else _taken(prim.shape, numbers))
        else:
            parts += [_taken(getattr(prim, name), numbers) for name in names_of(prim)]
        same: Any = tuple(parts) if len(numbers) > before else prim
        key.append((same, *[place[x] for x in node.inputs]))
    return tuple(key), tuple([place[y] for y in graph.outputs])


def _taken(value: Any, numbers: list[int]) -> Any:
    """The same of an attribute."""
    kind = type(value)
    if kind is int:
        numbers.append(value)
        return int
    if kind is tuple:
        return tuple([_taken(part, numbers) for part in value])
    if isinstance(value, Dim):
        raise Unlike
    return _graph_key(value, numbers) if isinstance(value, Graph) else value


class Generalization:
    """A graph with names, and which numbers of its skeleton these are."""

    def __init__(self, graph: Graph, samples: Sequence[Skeleton]) -> None:
        """The least general one of samples, the last of which is that of the graph."""
        columns = list(zip(*[s.numbers for s in samples], strict=True))
        count = samples[0].inputs
        known: dict[tuple[int, ...], Dim] = {}
        for column in columns[:count]:
            if len(set(column)) > 1 and column not in known:
                if min(column) < 2 or len(known) == len(LETTERS):
                    raise Unlike
                known[column] = Dim(LETTERS[len(known)])
        sizes = [(size, column) for column, size in known.items()]
        pattern: list[Any] = [c[0] if len(set(c)) == 1 else expressed(c, sizes) for c in columns]
        if not known or any(size is None for size in pattern):
            raise Unlike
        self._names = [(str(size), columns.index(column)) for size, column in sizes]
        self._constant = [(i, n) for i, n in enumerate(pattern) if not isinstance(n, Dim)]
        self._varying = [(i, n) for i, n in enumerate(pattern) if isinstance(n, Dim)]
        self.graph = _named(graph, iter(pattern))
        least = {name: Dim(name) + 2 for name, _ in self._names}
        self._odd = [d for d in _dims(self.graph) if (lowest(evaluate(d, least)) or 0) < 2]  # type: ignore[arg-type]

    def sizes(self, numbers: Sequence[int]) -> dict[str, int]:
        """The values of the names."""
        return {name: numbers[i] for name, i in self._names}

    def fits(self, numbers: Sequence[int]) -> bool:
        """Whether the graph of these numbers is one of it, with no size of 0 or 1 where there is a
        name."""
        if any(numbers[i] != n for i, n in self._constant):
            return False
        sizes = self.sizes(numbers)
        if min(sizes.values()) < 2 or any(evaluate(d, sizes) < 2 for d in self._odd):
            return False
        return all(evaluate(d, sizes) == numbers[i] for i, d in self._varying)


def _dims(graph: Graph) -> set[Dim]:
    """The sizes with names of all that is computed in a graph."""
    graphs = [*nested(graph), graph]
    return {d for g in graphs for x in g.nodes for d in x.shape if isinstance(d, Dim)}


def _named(graph: Graph, rest: Iterator[int | Dim]) -> Graph:
    """A graph with other numbers, types inferred anew."""
    new: dict[Node, Node] = {}
    for x in graph.inputs:
        new[x] = input_node(x.type.with_shape(_put(x.shape, rest)), x.name)
    for node in graph.body:
        prim: Any = node.prim
        if isinstance(prim, Constant):
            changed = {} if prim.value.ndim else {"shape": _put(prim.shape, rest)}
        else:
            changed = {name: _put(getattr(prim, name), rest) for name in names_of(prim)}
        if any(_has_dim(v) for v in changed.values()):
            prim = dataclasses.replace(prim, **changed)
        inputs = tuple([new[x] for x in node.inputs])
        try:
            found = prim.infer(*[x.type for x in inputs])
        except (RetrogradError, TypeError) as error:
            raise Unlike from error
        if prim.needs_sizes(found, *[x.type for x in inputs]):
            raise Unlike  # its bits are others
        origin = new.get(node.origin) if node.origin is not None else None
        new[node] = Node(prim, inputs, found, node.scope, node.source, origin, node.name)
    return Graph([new[x] for x in graph.inputs], [new[y] for y in graph.outputs], graph.name)


def _put(value: Any, numbers: Any) -> Any:
    """The reverse of `_taken`."""
    if type(value) is int:
        return next(numbers)
    if isinstance(value, Graph):
        return _named(value, numbers)
    return tuple([_put(part, numbers) for part in value]) if type(value) is tuple else value


def _has_dim(value: Any) -> bool:
    if isinstance(value, Graph):
        return bool(_dims(value))
    return isinstance(value, Dim) or (type(value) is tuple and any(map(_has_dim, value)))


class GraphFamily:
    """Programs for graphs of one skeleton."""

    def __init__(self) -> None:
        self._samples: list[Skeleton] = []
        self._named: list[tuple[Generalization, Program]] = []
        self._failed = 0
        self._lock = own_lock()

    def program(
        self, graph: Graph, found: Skeleton, make: Callable[[Graph, dict[str, int]], Program]
    ) -> Program | None:
        """A program with names, if there is one; made where the graph and one seen before differ in
        sizes alone. `make` takes the graph with names, and the values of these."""
        for named, program in self._named:
            if named.fits(found.numbers):
                return program
        with self._lock:
            if self._failed >= TUNING.naming_attempts:
                return None
            pairs = [[sample, found] for sample in reversed(self._samples)]
            for samples in ([*self._samples, found], *pairs[1:]):
                try:
                    named = Generalization(graph, samples)
                except Unlike:
                    continue
                if named.fits(found.numbers):
                    program = make(named.graph, named.sizes(found.numbers))
                    self._named = [(named, program), *self._named[: TUNING.named_variants - 1]]
                    self._samples = [*self._samples[1 - TUNING.named_variants :], found]
                    return program
            self._failed += bool(self._samples)
            self._samples = [*self._samples[1 - TUNING.named_variants :], found]
            return None


FAMILIES: dict[Hashable, GraphFamily] = {}  # in the order of their latest use


def family_of(key: Hashable) -> GraphFamily:
    """The family of a graph; the one that was not asked for longest is forgotten."""
    family = FAMILIES.pop(key, None) or GraphFamily()
    while len(FAMILIES) >= TUNING.graph_families:
        FAMILIES.pop(next(iter(FAMILIES)), None)
    FAMILIES[key] = family
    return family


def shared(graph: Graph, kind: Hashable, make: Callable[[Graph], Program]) -> Program:
    """A program for a graph, which it shares with others of this kind that differ in sizes
    alone."""
    try:
        found = skeleton(graph)
    except Unlike:
        return make(graph)
    family = family_of((kind, found.key))
    return family.program(graph, found, lambda named, sizes: make(named)) or make(graph)
