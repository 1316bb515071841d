"""Values of symbolic sizes: which of them make no sense for an op, and which share their memory.

A program meets new sizes often where every sample has its own. So what has to be looked at for each
of them is found once, and the memory of small arrays is laid out for many sizes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, Node, Trait, evaluate, nested
from retrograd.ops.assume import Assume
from retrograd.ops.shape import Pad, Slice, SliceSet
from retrograd.tuning import TUNING


class Sizes:
    """What a graph's nodes ask of sizes, those in loops and branches among them, whether they are
    reached or not: nothing is checked there while a program runs. Sizes that become known inside of
    an operation only are the operation's to see to."""

    def __init__(self, graph: Graph) -> None:
        names = frozenset(graph.dim_names)
        nodes: list[Node] = []
        for part in (graph, *nested(graph)) if names else ():
            nodes += [n for n in part.nodes if names.issuperset(_names(n))]
        dims = {d: n for n in reversed(nodes) for d in n.shape if isinstance(d, Dim)}
        self._dims = [(d, n) for d, n in dims.items() if not grows(d)]  # others are not negative
        self._nodes = [
            n for n in nodes if Trait.SIZED in n.prim.traits and _has_dims(n) and not _fits(n)
        ]

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise `ShapeError` where sizes make no sense for an op."""
        for node in self._nodes:
            _check(node, sizes)
        for d, node in self._dims:
            if (n := evaluate(d, sizes)) < 0:
                raise ShapeError(f"the size {d} is {n} with {dict(sizes)}: {node.describe()}")


def grows(size: int | Dim) -> bool:
    """Whether a size is a sum of products of named sizes, so that it is never negative, and never
    less where named sizes are more."""
    if not isinstance(size, Dim):
        return size >= 0
    return all(
        factor > 0 and all(isinstance(atom, str) for atom, _ in monomial)
        for monomial, factor in size.terms
    )


def rounded(sizes: Mapping[str, int]) -> dict[str, int]:
    """Small sizes rounded up by a quarter at most: memory for these is enough for those.

    >>> rounded({"N": 35, "E": 50_000})
    {'N': 40, 'E': 50000}
    """
    found = {}
    for name, n in sizes.items():
        step = 1 << max(n.bit_length() - 3, 0)
        found[name] = -(-n // step) * step if n <= TUNING.common_layout_size else n
    return found


def _fits(node: Node) -> bool:
    """Whether a node makes sense for all sizes: a slice or a padding whose ends are known."""
    (x, *_), prim = node.inputs, node.prim
    known: Iterable[int | Dim]
    if isinstance(prim, Slice | SliceSet):
        ends = zip(prim.starts, prim.stops, x.shape, strict=True)
        known = [d for a, b, n in ends for d in (a, n - a, n - b) if d != n]
    elif isinstance(prim, Pad):
        known = (*prim.low, *prim.high)
    else:
        return False
    return all(map(grows, known))


def _names(node: Node) -> set[str]:
    """The names of the sizes in a node's attributes and in the types it touches."""
    types = [node.type, *(x.type for x in node.inputs)]
    found = {name for t in types for name in t.dim_names}
    return found.union(node.prim.dim_names) if Trait.SIZED in node.prim.traits else found


def _has_dims(node: Node) -> bool:
    """Whether a symbolic size occurs in a node's attributes or in the types it touches."""
    values = [v for a in node.attrs.values() for v in (a if isinstance(a, tuple) else (a,))]
    types = [node.type, *(x.type for x in node.inputs)]
    return any(isinstance(v, Dim) for v in values) or not all(t.is_static for t in types)


def _check(node: Node, sizes: Mapping[str, int]) -> None:
    """Infer the type of a node again with all sizes known."""
    prim = node.prim.bind(sizes)
    try:
        found = prim.infer(*[x.type.bind(sizes) for x in node.inputs])
    except ShapeError as error:
        if isinstance(node.prim, Assume):  # which says all
            raise
        values = ", ".join([f"{name} = {n}" for name, n in sizes.items()])
        raise ShapeError(f"{error}, with {values}: {node.describe()}") from None
    if found != node.type.bind(sizes):
        raise ShapeError(f"with the sizes {dict(sizes)} the result is {found}: {node.describe()}")
