"""Where to cut a computation, so that what reverse mode keeps of it fits into a number of bytes.

Cut into pieces of which each is computed again when its turn comes, what is kept while piece j is
gone through backwards is what entered the pieces up to j, and the inside of j. So pieces shrink
from the first to the last: with n equal layers, pieces of P, P-1, P-2, ... layers fit into the
bytes of P layers, if P (P + 1) / 2 >= n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from retrograd.autodiff import pullback
from retrograd.errors import OptionError
from retrograd.ir import Dim, Node
from retrograd.ops.leaf import input_node

# What costs no memory worth counting, and what is another view of memory.
FREE = frozenset(("constant", "iota", "size_of"))
VIEWS = frozenset(
    ("alias", "reshape", "permute", "expand", "stop_gradient", "region_in", "region_out", "keep")
)


@dataclass(frozen=True)
class Piece:
    """Nodes that follow one another, and whether reverse mode computes them again."""

    nodes: Sequence[Node]
    again: bool


def pieces_within(budget: int, inside: Sequence[Node], outputs: Sequence[Node]) -> list[Piece]:
    """The nodes in pieces such that what is kept fits into the budget. The last piece is not
    computed again, as it is needed first."""
    known = _Costs(inside, outputs)
    cuts = known.cuts(budget)
    if cuts is None:
        low, high = budget, sum(known.kept.values()) + sum(known.sizes.values())
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if known.cuts(middle) is not None else (middle, high)
        raise OptionError(
            f"checkpoint: the intermediate results cannot be kept within {budget:,} bytes; the "
            f"least is about {high:,}"
        )
    ends = [0, *cuts, len(inside)]
    return [Piece(inside[a:b], b < len(inside)) for a, b in pairwise(ends)]


class _Costs:
    """What there is to keep of nodes in order."""

    def __init__(self, inside: Sequence[Node], outputs: Sequence[Node]) -> None:
        self.inside = inside
        self.position = {n: i for i, n in enumerate(inside)}
        self.sizes = {n: _bytes(n) for n in inside}
        self.kept: dict[int, int] = {}  # bytes of what derivatives read, by position
        for node in _read_by_derivatives(inside, outputs):
            root = node
            while root.op in VIEWS and root.inputs:
                root = root.inputs[0]
            if root in self.position:
                self.kept[self.position[root]] = self.sizes[root]
        self.last = {n: i for i, n in enumerate(inside)}  # where a node is last read
        for i, node in enumerate(inside):
            for x in node.inputs:
                if x in self.position:
                    self.last[x] = i
        self.last.update(dict.fromkeys([y for y in outputs if y in self.last], len(inside)))
        # Bytes of what is computed before a position and read at or behind it.
        steps = [0] * (len(inside) + 2)
        for i, node in enumerate(inside):
            if node.op not in VIEWS and self.last[node] < len(inside):
                steps[i + 1] += self.sizes[node]
                steps[self.last[node] + 1] -= self.sizes[node]
        self.through = list(accumulate(steps))

    def cuts(self, budget: int) -> list[int] | None:
        """Positions at which to cut, if there are some that are good enough."""
        found: list[int] = []
        start, saved, held = 0, 0, set[Node]()
        while True:
            end, inner = start, 0
            while end < len(self.inside) and saved + inner + self.kept.get(end, 0) <= budget:
                inner += self.kept.get(end, 0)
                end += 1
            if end == len(self.inside):
                return found
            # Of the further half of what is possible the cut through the least, the last of these.
            options = range(end, (start + end) // 2, -1)
            at = min(options, key=self.through.__getitem__, default=start)
            crossing = self._crossing(at) - held
            saved += sum(self.sizes[n] for n in crossing)
            held |= crossing
            if at == start or saved > budget:
                return None
            found.append(at)
            start = at

    def _crossing(self, at: int) -> set[Node]:
        return {
            n
            for n in self.inside[:at]
            if at <= self.last[n] < len(self.inside) and n.op not in VIEWS
        }


def _read_by_derivatives(inside: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Nodes that reverse mode reads: what is kept at most, as a compiler may compute some of it
    from others where it is read."""
    ends = [y for y in dict.fromkeys(outputs) if y.dtype.is_inexact]
    known = set(inside)
    entering = {x: None for n in inside for x in n.inputs if x not in known and x.dtype.is_inexact}
    cotangents = [input_node(y.type) for y in ends]
    start = max((n.id for n in inside), default=0)
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    todo = [g for g in pullback(ends, cotangents, list(entering), list(entering)) if g is not None]
    while todo:
        node = todo.pop()
        if node in known:
            found[node] = None
        elif node not in seen and node.id > start:
            seen.add(node)
            todo.extend(node.inputs)
    return list(found)


def _bytes(node: Node) -> int:
    size = node.type.size
    if isinstance(size, Dim):
        raise OptionError(
            f"checkpoint: bytes cannot be counted where sizes are named, as in {node.describe()}; "
            'use another policy, such as "contractions"'
        )
    return size * node.dtype.itemsize
