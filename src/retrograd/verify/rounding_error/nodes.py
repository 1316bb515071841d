"""What is said of a node: how many digits it loses, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd import viz
from retrograd.ir import Graph, Node, Trait, apply, full, interpret
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast, Elementwise
from retrograd.ops.index import ScatterAdd
from retrograd.ops.linalg.matrix import MatrixOp
from retrograd.ops.matmul import BilinearOp
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.scan import CumSum, LinearScan
from retrograd.ops.windows import Fold
from retrograd.tuning import TUNING
from retrograd.verify.rounding_error.first_order import wide_value
from retrograd.verify.rounding_error.formats import Array, format_of
from retrograd.verify.rounding_error.stochastic import Spread
from retrograd.verify.rounding_error.straight_line import StraightLine


@dataclass(frozen=True)
class NodeError:
    """The rounding error at a node of the graph, over all steps of a loop that it stands in.

    - `share`: of the bound of the output that it adds most to, the part by its own roundings;
    - `digits`: decimal digits of its value that rounding leaves, elements in the norm in which
      outputs feel them;
    - `lost`: digits that it has fewer than the best known of its operands;
    - `through`: the part of an output's error that passes through it;
    - `condition`: the condition number, by which relative errors of operands grow, in norm, and
      `worst_condition` that of the worst element;
    - `kind`: "cancellation", "accumulation", "conditioning", "rounding", "exact", "overflow",
      "invalid", "underflow", "subnormal" or "unstable": an integer or a boolean that rounding
      changes.
    """

    node: Node
    id: int
    op: str
    kind: str
    share: float
    digits: float
    lost: float
    through: float
    condition: float
    worst_condition: float
    times: int
    count: int = 0  # elements that overflowed, became subnormal, changed
    spread: Array | None = None  # the sampled standard deviation, of what is computed once

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def scope(self) -> str:
        return self.node.scope

    @property
    def source(self) -> str:
        """File, line and text of the program, or empty."""
        return str(self.node.source) if self.node.source else ""

    @property
    def line(self) -> str:
        """The line of the program, or what else is known of the place."""
        at = self.node.source
        if not at:
            return self.name or self.scope or f"%{self.id}"
        text = at.text or f"{at.file}:{at.line}"
        return f"{self.scope}: {text}" if self.scope else text

    @property
    def weight(self) -> float:
        """What the order of nodes goes by: digits lost, as far as an output feels it."""
        if self.kind in ("overflow", "invalid"):
            return 1e3 + self.count
        return self.lost * self.through + 0.1 * self.share

    def record(self, cells: int = 0) -> dict[str, Any]:
        """What the page of a graph tells, with a heat map of so many cells."""
        found = {
            "lost": self.lost, "digits": self.digits, "share": self.share,
            "condition": self.condition, "kind": self.kind, "count": self.count,
        }  # fmt: skip
        if self.spread is None or not self.spread.size:
            return found
        return {**found, "spread": viz.summary(self.spread, cells)}

    @property
    def is_felt(self) -> bool:
        """Whether it costs an output digits, or adds to a bound, so that it is worth telling."""
        return self.weight >= TUNING.rounding_felt or self.kind in ("unstable", "underflow")

    def __str__(self) -> str:
        found = [f"{self.op} ({self.kind})"]
        if self.lost >= 0.05:
            found.append(f"loses {self.lost:.1f} digits")
        if self.share >= 0.005:
            found.append(f"{100 * self.share:.0f} % of the bound")
        return ", ".join([*found, self.source or self.line])


def node_errors(
    graph: Graph,
    run: StraightLine,
    spread: Mapping[Node, Spread],
    shares: Mapping[Node, float],
    through: Mapping[Node, float],
    felt: Mapping[Node, float],
) -> list[NodeError]:
    """What is known of the nodes of a graph, from those of its run; worst first. `felt` are their
    relative errors as outputs feel them, where an output depends on them."""
    place = {n: i for i, n in enumerate(graph.nodes)}
    groups: dict[Node, list[Node]] = {}
    for node in run.graph.body:
        groups.setdefault(run.home[node], []).append(node)
    relative = {n: felt.get(n, relative_error(spread[n], n)) for n in run.graph.nodes}
    found = []
    for home, nodes in groups.items():
        seen = [_Seen(n, run, spread, relative, felt) for n in nodes]
        worst = max(seen, key=lambda s: s.lost)
        share = min(1.0, sum(shares.get(n, 0.0) for n in nodes))
        flag = next((k for k in FLAGS if any(s.flag == k for s in seen)), "")
        condition, most = worst.condition()
        kind = _kind(worst.node, worst.lost, share, condition, len(nodes))
        if flag in FLAGS[:3] or (flag and kind in ("rounding", "exact") and worst.lost < 0.5):
            kind = flag  # small numbers among larger ones are not what a node loses digits by
        flagged = sum(s.count for s in seen if s.flag == flag)
        passed = min(1.0, max(through.get(n, 0.0) for n in nodes))
        std = spread[nodes[0]].std if len(nodes) == 1 else None
        e = NodeError(
            home, place.get(home, -1), home.op, kind, share, min(s.digits for s in seen),
            worst.lost, passed, condition, most, len(nodes), flagged, std,
        )  # fmt: skip
        found.append(e)
    return sorted(found, key=lambda e: -e.weight)


FLAGS = ("invalid", "overflow", "unstable", "underflow", "subnormal")


def adds_many(node: Node) -> bool:
    """Whether an operation is a sum of many terms."""
    prim = node.prim
    kinds = (ReduceSum, BilinearOp, CumSum, ScatterAdd, Fold, LinearScan)
    return isinstance(prim, kinds)


def _kind(node: Node, lost: float, share: float, condition: float, times: int) -> str:
    sums = adds_many(node)
    cancels = sums or node.prim in (el.add, el.sub)
    if cancels and lost >= TUNING.rounding_lost_digits and condition >= 2:
        return "cancellation"
    if share < TUNING.rounding_share and lost < TUNING.rounding_lost_digits:
        return "rounding" if share else "exact"
    if sums or (cancels and times > 1):
        return "accumulation"
    if lost >= TUNING.rounding_lost_digits or isinstance(node.prim, MatrixOp):
        return "conditioning"
    return "rounding"


class _Seen:
    """One node of the run."""

    def __init__(
        self,
        node: Node,
        run: StraightLine,
        spread: Mapping[Node, Spread],
        relative: Mapping[Node, float],
        felt: Mapping[Node, float],
    ) -> None:
        self.node = node
        self.value = np.asarray(run.values[node])
        self.given = [np.asarray(run.values[x]) for x in node.inputs]
        self.flag, self.count = "", 0
        self.lost, self.digits = 0.0, math.inf
        if not node.dtype.is_inexact:
            changed = spread[node].changed > 0
            self.count = int(changed.sum())
            self.flag = "unstable" if self.count else ""
            return
        f = format_of(node.dtype)
        self.digits = min(f.decimals, -math.log10(relative[node])) if relative[node] else f.decimals
        self.digits = max(0.0, self.digits)
        # Operands that nothing is felt of, such as factors beside their matrix, tell nothing.
        known = [x for x in node.inputs if x in felt or node not in felt or not x.inputs]
        best = [relative[x] for x in known if x.dtype.is_inexact]
        # What one rounding makes is not lost: it is what a float has.
        before = max([f.u / math.sqrt(3.0), *best])
        moves = Trait.DETERMINED in node.prim.traits  # another choice of elements loses none
        if relative[node] > before and not moves:
            self.lost = min(f.decimals, math.log10(relative[node] / before))
        self._flag(f.tiny)

    def _flag(self, tiny: float) -> None:
        y = self.value.astype(np.float64)
        xs = [x.astype(np.float64) for x in self.given if x.shape == y.shape]
        finite = all(np.isfinite(x).all() for x in map(_plain, self.given))
        for kind, where in (
            ("invalid", np.isnan(y) if not any(np.isnan(x).any() for x in xs) else ()),
            ("overflow", np.isinf(y) if finite else ()),
            ("underflow", self._lost_to_zero(y, xs)),
            ("subnormal", self._made_small(y, xs, tiny)),
        ):
            count = int(np.count_nonzero(where))
            if count:
                self.flag, self.count = kind, count
                return

    def _made_small(self, y: Array, xs: Sequence[Array], tiny: float) -> Any:
        """Where a result is subnormal of operands that are not."""
        if not xs or not isinstance(self.node.prim, Elementwise | Cast):
            return ()
        normal = np.all([np.abs(x) >= tiny for x in xs], axis=0)
        return (y != 0) & (np.abs(y) < tiny) & normal

    def _lost_to_zero(self, y: Array, xs: Sequence[Array]) -> Any:
        """Where a result is zero that is not zero."""
        prim = self.node.prim
        if prim in (el.exp, el.exp2, el.sigmoid, el.sech2, el.softplus):
            return (y == 0) & np.isfinite(xs[0])
        if len(xs) == 2 and {Trait.PRODUCT, Trait.DIVISION} & prim.traits:
            whole = np.isfinite(xs[0]) & np.isfinite(xs[1])
            other = (xs[1] != 0) | (Trait.DIVISION in prim.traits)
            return (y == 0) & (xs[0] != 0) & other & whole & (prim is not el.mod)
        return ()

    def condition(self) -> tuple[float, float]:
        """The condition number in norm, and of the worst element."""
        slopes = relative_slopes(self.node, self.given, self.value)
        if slopes is None:
            return 1.0, 1.0
        y = np.abs(np.asarray(self.value, np.float64))
        with np.errstate(all="ignore"):
            each = np.where(slopes == 0, 0.0, slopes / y)
        total = float(y.sum())
        size = float(slopes.sum())
        in_norm = size / total if total else (math.inf if size else 1.0)
        worst = float(np.max(each, initial=0.0))
        return _or_infinite(in_norm), _or_infinite(worst)


def _or_infinite(x: float) -> float:
    return math.inf if math.isnan(x) else x


def _plain(x: Any) -> Array:
    x = np.asarray(x)
    return x if x.dtype.kind in "biuf" else x.astype(np.float64)


def relative_slopes(node: Node, given: Sequence[Any], value: Any) -> Array | None:
    """`sum |x_i dy/dx_i|` for each element of y, for sums and elementwise operations."""
    wide = [np.abs(np.asarray(x, np.float64)) for x in given]
    if isinstance(node.prim, ReduceSum | CumSum):
        return np.asarray(node.prim.reference(wide[0]))
    if isinstance(node.prim, BilinearOp):
        return np.asarray(2 * apply(node, wide))
    if not isinstance(node.prim, Elementwise) or not node.dtype.is_float:
        return None
    if node.prim in (el.add, el.sub):
        return np.asarray(wide[0] + wide[1])
    parts = node.prim.vjp(full(1, node.type), node, *node.inputs)
    known = dict(zip(node.inputs, given, strict=True))
    pairs = [(x, p) for x, p in zip(node.inputs, parts, strict=True) if p is not None]
    inputs = list(dict.fromkeys([node, *known]))
    arrays = [np.asarray(value if x is node else known[x]) for x in inputs]
    arrays = [a if a.dtype.kind in "biu" else a.astype(np.float64) for a in arrays]
    with np.errstate(all="ignore"):
        slopes = interpret(Graph(inputs, [p for _, p in pairs]), arrays, wide_value)
        terms = [
            np.abs(np.asarray(known[x], np.float64) * s)
            for (x, _), s in zip(pairs, slopes, strict=True)
        ]
    total: Array = sum(terms, np.zeros(node.shape))
    return np.where(np.isfinite(total), total, 0.0)


def relative_error(spread: Spread, node: Node) -> float:
    """The standard deviation of a value relative to it, in norm; 1 is the most."""
    if not node.dtype.is_inexact or not spread.std.size:
        return 0.0
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.nansum(np.square(_finite(spread.mean)))))
        off = float(np.sqrt(np.nansum(np.square(_finite(spread.std)))))
    return 0.0 if off == 0 else min(1.0, off / size) if size else 1.0


def _finite(x: Array) -> Array:
    return np.where(np.isfinite(x), x, 0.0)
