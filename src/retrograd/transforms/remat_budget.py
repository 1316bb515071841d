"""Where to cut a computation, so that what reverse mode keeps of it fits into a number of bytes.

Cut into pieces of which each is computed again when its turn comes, what is kept while piece j is
gone through backwards is what entered the pieces up to j, and the inside of j. So pieces shrink
from the first to the last: with n equal layers, pieces of P, P-1, P-2, ... layers fit into the
bytes of P layers, if P (P + 1) / 2 >= n.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from retrograd.autodiff import pullback
from retrograd.eager.program_cache import clone_graph
from retrograd.errors import OptionError
from retrograd.ir import Dim, Node, Trait, evaluate, reachable
from retrograd.ops.identity import IdentityOp
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Expand, Permute, Reshape
from retrograd.passes import optimize
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.threads import threads_here
from retrograd.schedule import planning
from retrograd.shared import trim
from retrograd.tracing.scope import wanted

TRIALS = 6  # plans that are made for a budget
PLANNED = 20_000  # nodes of which plans are made
CAPACITY = 256  # functions whose cuts are remembered, for eager loops
_FOUND: dict[Any, list[int] | str] = {}


@dataclass(frozen=True)
class RematSegment:
    """Nodes that follow one another, and whether reverse mode computes them again."""

    nodes: Sequence[Node]
    again: bool


Build = Callable[[Sequence[RematSegment]], list[Node]]


def pieces_within(
    budget: int,
    inside: Sequence[Node],
    outputs: Sequence[Node],
    build: Build,
    sizes: Mapping[str, int],
) -> list[RematSegment]:
    """The nodes in pieces such that the gradient of the outputs, as it is planned, allocates no
    more than the budget, if that is possible. The last piece is not computed again, as it is needed
    first. `build` makes the outputs anew of pieces.

    What is kept is known from the graph; what computing it again, cotangents and the buffers of the
    compiler take is known from a plan. So cuts are looked for with as many bytes less as the plan
    of the last ones has too many.
    """
    known = RematCosts(inside, outputs, sizes)
    graph = clone_graph([*known.entering], outputs)
    key = graph, budget, tuple(known.wanted), tuple(sorted(sizes.items())), threads_here()
    ends = _FOUND.get(key)
    if ends is None:
        ends = _FOUND[key] = _search(budget, known, build)
        trim(_FOUND, CAPACITY)
    if isinstance(ends, str):
        raise OptionError(ends)
    return _pieces(inside, ends)


def _pieces(inside: Sequence[Node], cuts: Sequence[int]) -> list[RematSegment]:
    ends = [0, *cuts, len(inside)]
    return [RematSegment(inside[a:b], b < len(inside)) for a, b in pairwise(ends)]


def _search(budget: int, known: RematCosts, build: Build) -> list[int] | str:
    """Where to cut; or what to say where nothing is enough."""
    tried: dict[tuple[int, ...], int] = {}  # planned bytes by cuts

    def planned(cuts: list[int]) -> int:
        key = tuple(cuts)
        if key not in tried:
            tried[key] = _peak(build(_pieces(known.inside, cuts)), known)
        return tried[key]

    bytes_ = budget
    for _ in range(TRIALS):
        cuts = known.cuts(bytes_)
        if cuts is None:
            break
        if len(known.inside) > PLANNED:
            return cuts  # a plan would take longer than it is worth
        peak = planned(cuts)
        if peak <= budget:
            return cuts
        bytes_ = min(bytes_ - (peak - budget), bytes_ - bytes_ // 50)
        if bytes_ <= 0:
            break
    low, high = 0, sum(known.kept.values()) + sum(known.sizes.values())
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if known.cuts(middle) is not None else (middle, high)
    cuts = known.cuts(high) or []
    least = high if len(known.inside) > PLANNED else planned(cuts)
    if least <= budget:
        return cuts
    return (
        f"checkpoint: the gradient cannot be computed within {budget:,} bytes; the least is about "
        f"{least:,}"
    )


class RematCosts:
    """What there is to keep of nodes in order."""

    def __init__(
        self, inside: Sequence[Node], outputs: Sequence[Node], known: Mapping[str, int]
    ) -> None:
        self.inside = inside
        self.known = known  # values of named sizes
        self.position = {n: i for i, n in enumerate(inside)}
        self.sizes = {n: _bytes(n, known) for n in inside}
        # What is computed outside and read inside, and of what of that the gradient is wanted.
        outside = dict.fromkeys([*(x for n in inside for x in n.inputs), *outputs])
        self.entering = [
            x for x in outside if x not in self.position and Trait.LEAF not in x.prim.traits
        ]
        self.wanted = _wanted(self.entering)
        self.kept: dict[int, int] = {}  # bytes of what derivatives read, by position
        for node in _read_by_derivatives(inside, outputs):
            root = node
            while _is_view(root) and root.inputs:
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
            if not _is_view(node) and self.last[node] < len(inside):
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
            n for n in self.inside[:at] if at <= self.last[n] < len(self.inside) and not _is_view(n)
        }


def _is_view(node: Node) -> bool:
    """Whether a node is another view of the memory of what it is computed from."""
    return isinstance(node.prim, IdentityOp | Reshape | Permute | Expand)


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


def _wanted(entering: Sequence[Node]) -> list[int]:
    """The numbers of those whose gradient somebody around here asks for; of all that have one, if
    nobody does yet."""
    moving: set[Node] = set()
    for node in reachable(entering):
        if wanted(node) or not moving.isdisjoint(node.inputs):
            moving.add(node)
    floating = [i for i, x in enumerate(entering) if x.dtype.is_inexact]
    return [i for i in floating if entering[i] in moving] or floating


def _peak(outputs: Sequence[Node], known: RematCosts) -> int:
    """What a call of the compiled gradient of the outputs allocates, gradients included."""
    ends = [y for y in dict.fromkeys(outputs) if y.dtype.is_inexact]
    cotangents = [input_node(y.type) for y in ends]
    wrt = [known.entering[i] for i in known.wanted]
    found = pullback(ends, cotangents, wrt, set(known.entering))
    results = [*ends, *(g for g in found if g is not None)]
    graph = clone_graph([*known.entering, *cotangents], results)
    plan = planning.KernelPlan(optimize(real_graph(graph)))
    return plan.peak_bytes(known.known, threads=threads_here() if plan.threaded else 1)


def _bytes(node: Node, known: Mapping[str, int]) -> int:
    size = node.type.size
    if isinstance(size, Dim):
        missing = sorted(size.names - known.keys())
        if missing:
            listed = ", ".join([f'"{name}": ...' for name in missing])
            raise OptionError(
                "checkpoint: bytes cannot be counted where sizes are named, as in "
                f"{node.describe()}; say for which sizes the budget is (sizes={{{listed}}}, the "
                'largest that are expected), or use another policy, such as "contractions"'
            )
    return evaluate(size, known) * node.dtype.itemsize
