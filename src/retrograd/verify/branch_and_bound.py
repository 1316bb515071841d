"""Branch and bound for networks of ReLUs: a property is proved of ever smaller cases.

A case whose bound is not positive is divided: at a ReLU whose argument has either sign, into
negative and positive, or, where there are few inputs, at an input. The bounds of many cases are
improved together (`dual_ascent.py`, beta-CROWN: Wang et al., NeurIPS 2021). Which ReLU is found in
two steps (filtered smart branching: De Palma et al., 2021): a score, how much of the bound the
relaxation of a ReLU costs (BaBSR: Bunel et al., JMLR 2020), picks a few, of which the one with the
best bounds of both halves is taken. Since each ReLU is decided at most once on a path, and a box is
halved without end, nothing is left that is proved by no case, but by time.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograd.tuning import TUNING
from retrograd.verify.dual_ascent import Dual, ascend, initial
from retrograd.verify.dual_bound import Lower, ValueBounds, backward, propagate
from retrograd.verify.linear_program import solve
from retrograd.verify.network import Array, Relu, ReluNetwork
from retrograd.verify.problem import Problem

CANDIDATES = 4  # ReLUs that are tried


@dataclass(eq=False)
class TreeNode:
    """One case of a proof: a split and its two halves, or the leaf that proves it."""

    split: tuple[str, int, Any] | None = None  # ("relu", value, index), ("input", index, point)
    children: tuple[TreeNode, ...] = ()
    slopes: dict[int, Any] | None = None  # with which bounds are made anew here
    leaf: ProvedLeaf | None = None


@dataclass(eq=False)
class ProvedLeaf:
    """Choices that prove a case, and the linear function of the input that they give."""

    dual: Dual  # of one case
    coefficients: Array
    constant: float


@dataclass(eq=False)
class OpenCases:
    """Cases that are open, bounded together."""

    case: Array  # of the property
    bounds: ValueBounds
    signs: dict[int, Array]
    dual: Dual
    lower: Array  # bounds of the objective
    found: Lower
    nodes: list[TreeNode]
    exact: Array  # whether the linear program of the case was solved

    def take(self, which: Array) -> OpenCases:
        return OpenCases(
            self.case[which],
            self.bounds.take(which),
            {v: s[which] for v, s in self.signs.items()},
            self.dual.take(which),
            self.lower[which],
            self.found.take(which),
            [self.nodes[i] for i in which],
            self.exact[which],
        )


@dataclass
class Proof:
    """How far a proof has come."""

    trees: list[TreeNode]  # of each case of the property
    slopes: list[dict[int, Any]]  # of each region, with which its bounds are made
    proved: Array  # which cases
    lower: Array  # the least bound of what is open, for each case
    leaves: int = 0
    points: list[Array] = field(default_factory=list)  # inputs that may be counterexamples

    @property
    def done(self) -> bool:
        return bool(self.proved.all())


class BranchAndBound:
    """The proof of one problem, whose program is a network."""

    def __init__(self, problem: Problem, steps: int, split: str) -> None:
        self.net: ReluNetwork = problem.network
        self.problem = problem
        self.steps = steps
        by_input = split == "input" or (split == "auto" and self.net.inputs <= TUNING.proof_inputs)
        self.by_input = by_input or not self.net.relus
        self.values = sorted({self.net.source(k) for k in self.net.relus})
        most = max((len(c.constraints) for c in problem.cases), default=0) or 1
        outputs, cases = self.net.sizes[-1], len(problem.cases)
        self.rows = np.zeros((cases, most, outputs))
        self.constants, self.mask = np.zeros((cases, most)), np.zeros((cases, most))
        for i, case in enumerate(problem.cases):
            for j, c in enumerate(case.constraints):
                self.rows[i, j], self.constants[i, j] = c.coefficients, c.constant
                self.mask[i, j] = 1.0
        self.count = 0  # for the order of cases with equal bounds
        self.queue: list[tuple[float, int, OpenCases]] = []
        self.proof = Proof(
            [TreeNode() for _ in problem.cases], [], np.zeros(cases, bool), np.zeros(cases)
        )
        self.open = np.zeros(cases, np.int64)
        self.stuck = np.full(cases, math.inf)

    def start(self) -> None:
        """Bounds of every region, and of every case without splits."""
        low = np.stack([r.lower for r in self.problem.regions])
        high = np.stack([r.upper for r in self.problem.regions])
        roots = []
        for k in range(len(low)):
            ball = self.problem.regions[k].ball
            round_ = ball and (ball[0][None], np.array([ball[1]]))
            bounds, slopes = propagate(self.net, low[k : k + 1], high[k : k + 1], ball=round_)
            roots.append(bounds)
            self.proof.slopes.append(slopes)
        cases = len(self.problem.cases)
        for first in range(0, cases, TUNING.proof_batch):
            which = np.arange(first, min(first + TUNING.proof_batch, cases))
            at = [self.problem.cases[k].region for k in which]
            bounds = ValueBounds.stacked([roots[k] for k in at])
            signs = {v: np.zeros_like(bounds.lower[v]) for v in self.values}
            dual = initial(self.net, bounds, self.rows.shape[1])
            dual.weights = self.mask[which] / np.maximum(self.mask[which].sum(1, keepdims=True), 1)
            self.open[which] += 1
            self.bound(which, bounds, signs, dual, [self.proof.trees[k] for k in which])

    def bound(
        self, case: Array, bounds: ValueBounds, signs: dict[int, Array], dual: Dual,
        nodes: list[TreeNode],
    ) -> None:  # fmt: skip
        """Improve the bounds of cases; what is proved becomes a leaf, the rest waits."""
        rows, constants = self.rows[case], self.constants[case]
        dual = ascend(
            self.net, bounds, rows, constants, signs, dual, self.steps, self.mask[case]
        ).rounded()
        found, lower = self.evaluate(case, bounds, signs, dual)
        exact = np.zeros(len(case), bool)
        self.settle(OpenCases(case, bounds, signs, dual, lower, found, nodes, exact))

    def settle(self, work: OpenCases) -> None:
        """What is proved becomes a leaf, the rest waits, but for what holds by less than roundings:
        a linear function that is positive without them, which divisions hardly make better."""
        case, lower, nodes = work.case, work.lower, work.nodes
        exact = work.exact | np.array([not any(s[i].any() for s in work.signs.values())
                                       for i in range(len(case))])  # fmt: skip
        hopeless = exact & ~self.undecided(work).any(1) & (lower + work.found.slack[:, 0] > 0)
        proved = lower > 0
        for i in np.flatnonzero(proved):
            nodes[i].leaf = _leaf(work, int(i))
            self.proof.leaves += 1
            self.open[case[i]] -= 1
        for i in np.flatnonzero(~proved & hopeless):
            self.stuck[case[i]] = min(self.stuck[case[i]], lower[i])
        for i in np.flatnonzero(~proved & ~hopeless):
            one = work.take(np.array([i]))
            self.count += 1
            heapq.heappush(self.queue, (float(lower[i]), self.count, one))

    def evaluate(
        self, case: Array, bounds: ValueBounds, signs: dict[int, Array], dual: Dual
    ) -> tuple[Lower, Array]:
        """The bounds that choices give, with care for roundings."""
        weights = dual.weights * self.mask[case]
        rows = np.einsum("cm,cmn->cn", weights, self.rows[case])[:, None, :]
        shift = (weights * self.constants[case]).sum(1)
        betas = {v: dual.betas[v] * signs[v] for v in self.values}
        found = backward(self.net, len(self.net.steps), rows, bounds, dual.slopes, betas)
        size = np.abs(weights * self.constants[case]).sum(1)
        extent = np.einsum("cm,cmn->cn", weights, np.abs(self.rows[case]))
        off = (extent * bounds.most(len(self.net.steps))).sum(1) + size
        # Twice: the checker's own bounds of arguments differ from these by roundings.
        slack = 2 * (found.slack + ((self.rows.shape[1] + 4) * 2.0**-51 * off)[:, None])
        found = Lower(found.coefficients, found.constant + shift[:, None], slack, found.at)
        return found, found.minimum(bounds)[:, 0]

    def run(self, until: float, nodes: int) -> Proof:
        """Divide the worst cases, until all are proved, or time is up."""
        while self.queue and time.monotonic() < until and self.proof.leaves < nodes:
            count = min(len(self.queue), TUNING.proof_batch // 2)
            taken = [heapq.heappop(self.queue)[2] for _ in range(count)]
            self.divide(_stacked(taken))
            if self.proof.points:
                break
        self.proof.proved = self.open == 0
        self.proof.lower = np.where(self.proof.proved, 0.0, self.stuck)
        for lower, _, work in self.queue:
            k = int(work.case[0])
            self.proof.lower[k] = min(self.proof.lower[k], lower)
        return self.proof

    def divide(self, work: OpenCases) -> None:
        """Each case into two, which are bounded."""
        self.collect_points(work)
        undecided = self.undecided(work)
        by_relu = undecided.any(1) & (not self.by_input)
        decided = ~undecided.any(1) & ~work.exact
        for which, divide in (
            (by_relu, self.at_relus),
            (decided, self.solve),
            (~by_relu & ~decided, self.at_inputs),
        ):
            chosen = np.flatnonzero(which)
            if len(chosen):
                divide(work.take(chosen))

    def solve(self, work: OpenCases) -> None:
        """Cases without a ReLU that is open: their best multiples, by linear programming."""
        rows, shifts = self.arguments(work)
        weights = work.dual.weights * self.mask[work.case]
        cost = np.einsum("cm,cmn->cn", weights, self.rows[work.case])
        last, _ = self.composed(work)
        low, high = work.bounds.lower[0], work.bounds.upper[0]
        signs = np.concatenate([work.signs[v] for v in self.values], 1)
        x, y = solve(
            np.einsum("cn,cnk->ck", cost, last), rows * signs[:, :, None],
            np.where(signs == 0, 1.0, shifts * signs), low, high,
        )  # fmt: skip
        self.proof.points += self.unsafe(work, x)
        ends = np.cumsum([self.net.sizes[v] for v in self.values])[:-1]
        parts = zip(self.values, np.split(y * np.abs(signs), ends, axis=1), strict=True)
        dual = Dual(work.dual.slopes, dict(parts), work.dual.weights).rounded()
        found, lower = self.evaluate(work.case, work.bounds, work.signs, dual)
        better = lower > work.lower
        keep = work.dual.take(slice(None))
        arrays = [
            np.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b)
            for a, b in zip(dual.arrays(), keep.arrays(), strict=True)
        ]
        dual = keep.like(arrays)
        found, lower = self.evaluate(work.case, work.bounds, work.signs, dual)
        exact = np.ones(len(work.case), bool)
        self.settle(
            OpenCases(work.case, work.bounds, work.signs, dual, lower, found, work.nodes, exact)
        )

    def composed(self, work: OpenCases) -> tuple[Array, Array]:
        """The output as a linear function of the input, where no ReLU is open."""
        return self._composed(work)[len(self.net.steps)]

    def arguments(self, work: OpenCases) -> tuple[Array, Array]:
        """The arguments of all ReLUs, as linear functions of the input."""
        maps = self._composed(work)
        parts = [maps[v] for v in self.values]
        return np.concatenate([a for a, _ in parts], 1), np.concatenate([b for _, b in parts], 1)

    def _composed(self, work: OpenCases) -> list[tuple[Array, Array]]:
        cases, n = len(work.case), self.net.inputs
        found = [(np.broadcast_to(np.eye(n), (cases, n, n)), np.zeros((cases, n)))]
        for step in self.net.steps:
            if isinstance(step, Relu):
                a, b = found[step.source]
                on = (work.bounds.lower[step.source] >= 0) & (work.bounds.upper[step.source] > 0)
                found.append((a * on[:, :, None], b * on))
                continue
            size = len(step.bias)
            a, b = np.zeros((cases, size, n)), np.broadcast_to(step.bias, (cases, size))
            for v, w in step.terms:
                a = a + w @ found[v][0]
                b = b + found[v][1] @ w.T
            found.append((a, b))
        return found

    def collect_points(self, work: OpenCases) -> None:
        """The inputs where the linear bounds are least; those that look unsafe."""
        a = work.found.coefficients[:, 0]
        x = np.where(a > 0, work.bounds.lower[0], work.bounds.upper[0])
        if work.bounds.ball is not None:
            centre, radius = work.bounds.ball
            size = np.linalg.norm(a, axis=1, keepdims=True) + 1e-300
            x = np.clip(
                centre - radius[:, None] * a / size, work.bounds.lower[0], work.bounds.upper[0]
            )
        self.proof.points += self.unsafe(work, x)

    def unsafe(self, work: OpenCases, x: Array) -> list[Array]:
        """Those of some inputs, one for each case, that look unsafe."""
        y = self.net(x)
        sides = np.einsum("cmn,cn->cm", self.rows[work.case], y) + self.constants[work.case]
        worst = np.where(self.mask[work.case] > 0, sides, -np.inf).max(1)
        return [x[i] for i in np.flatnonzero(worst <= 1e-6 * (1 + np.abs(y).max(1)))]

    def undecided(self, work: OpenCases) -> Array:
        """[cases, all arguments of ReLUs]: which may have either sign."""
        parts = [
            (work.bounds.lower[v] < 0) & (work.bounds.upper[v] > 0) & (work.signs[v] == 0)
            for v in self.values
        ]
        return np.concatenate(parts, 1) if parts else np.zeros((len(work.case), 0), bool)

    def scores(self, work: OpenCases) -> Array:
        """What the relaxation of each ReLU costs the bound, [cases, all arguments]."""
        parts = {v: np.zeros_like(work.bounds.lower[v]) for v in self.values}
        for k in self.net.relus:
            v = self.net.source(k)
            a = work.found.at.get(k)
            if a is None:
                continue
            low, high = work.bounds.lower[v], work.bounds.upper[v]
            is_open = (low < 0) & (high > 0)
            gap = np.where(is_open, -low * high / np.where(is_open, high - low, 1.0), 0.0)
            parts[v] += np.abs(a[:, 0]) * gap
        return np.concatenate([parts[v] for v in self.values], 1)

    def at_relus(self, work: OpenCases) -> None:
        """Divide at the ReLU whose halves have the best bounds, of those with the best scores."""
        scores = np.where(self.undecided(work), self.scores(work) + 1e-300, -1.0)
        count = min(CANDIDATES, scores.shape[1])
        top = np.argsort(-scores, axis=1)[:, :count]
        best, value = top[:, 0].copy(), np.full(len(work.case), -np.inf)
        if count > 1:
            for column in top.T:
                valid = scores[np.arange(len(column)), column] > 0
                sides = [self.halved(work, column, sign) for sign in (-1, 1)]
                least = np.minimum(
                    *(self.evaluate(work.case, b, s, work.dual)[1] for b, s in sides)
                )
                least = np.where(valid, least, -np.inf)
                best = np.where(least > value, column, best)
                value = np.maximum(value, least)
        halves = [self.halved(work, best, sign) for sign in (-1, 1)]
        children = []
        for i, node in enumerate(work.nodes):
            v, j = self.place(int(best[i]))
            node.split = ("relu", v, j)
            node.children = (TreeNode(), TreeNode())
            children.append(node.children)
        self.open[:] += np.bincount(work.case, minlength=len(self.open))
        self.bound(
            np.concatenate([work.case, work.case]),
            ValueBounds.stacked([b for b, _ in halves]),
            {v: np.concatenate([s[v] for _, s in halves]) for v in self.values},
            Dual.stacked([work.dual, work.dual]),
            [c[0] for c in children] + [c[1] for c in children],
        )

    def place(self, index: int) -> tuple[int, int]:
        """Which argument of a ReLU one of all is: its value and its place in it."""
        for v in self.values:
            if index < self.net.sizes[v]:
                return v, index
            index -= self.net.sizes[v]
        raise AssertionError("more than there are")

    def halved(self, work: OpenCases, at: Array, sign: int) -> tuple[ValueBounds, dict[int, Array]]:
        """Bounds and signs, where the arguments at these places have a sign."""
        was = work.bounds
        bounds = ValueBounds(list(was.lower), list(was.upper), was.errors, was.ball)
        signs = dict(work.signs)
        for v in self.values:
            for part in (bounds.lower, bounds.upper, signs):
                part[v] = part[v].copy()
        for i, index in enumerate(at):
            v, j = self.place(int(index))
            signs[v][i, j] = sign
            if sign > 0:
                bounds.lower[v][i, j] = max(bounds.lower[v][i, j], 0.0)
            else:
                bounds.upper[v][i, j] = min(bounds.upper[v][i, j], 0.0)
        return bounds, signs

    def at_inputs(self, work: OpenCases) -> None:
        """Divide at the input along which the bound varies most, in the middle."""
        low, high = work.bounds.lower[0], work.bounds.upper[0]
        spread = self.sensitivity(work) * (high - low)
        spread = spread + 1e-9 * (high - low) * (1 + spread.max(1, keepdims=True))
        index = spread.argmax(1)
        row = np.arange(len(index))
        middle = low[row, index] / 2 + high[row, index] / 2
        left, right = high.copy(), low.copy()
        left[row, index] = middle
        right[row, index] = middle
        children = []
        for i, node in enumerate(work.nodes):
            if not low[i, index[i]] < middle[i] < high[i, index[i]]:
                k = work.case[i]  # a point: nothing is left to divide
                self.stuck[k] = min(self.stuck[k], work.lower[i])
                continue
            node.split = ("input", int(index[i]), float(middle[i]))
            node.children = (TreeNode(), TreeNode())
            children.append((i, node.children))
        kept = np.array([i for i, _ in children], np.int64)
        if not len(kept):
            return
        known = work.bounds.take(kept)
        lower = np.concatenate([low[kept], right[kept]])
        upper = np.concatenate([left[kept], high[kept]])
        both = ValueBounds.stacked([known, known])
        bounds, slopes = propagate(self.net, lower, upper, known=both, ball=both.ball)
        nodes = [c[0] for _, c in children] + [c[1] for _, c in children]
        for i, node in enumerate(nodes):
            node.slopes = {v: {k: s[i] for k, s in own.items()} for v, own in slopes.items()}
        case = work.case[kept]
        self.open[:] += np.bincount(case, minlength=len(self.open))
        signs = {v: np.concatenate([s[kept], s[kept]]) for v, s in work.signs.items()}
        dual = work.dual.take(kept)
        self.bound(np.concatenate([case, case]), bounds, signs, Dual.stacked([dual, dual]), nodes)

    def sensitivity(self, work: OpenCases) -> Array:
        """How much each input matters: through all weights, in magnitude, and in the bound."""
        direct = np.abs(work.found.coefficients[:, 0])
        rows = np.abs(np.einsum("cm,cmn->cn", work.dual.weights, self.rows[work.case]))
        values: dict[int, Array] = {len(self.net.steps): rows}
        for k in range(len(self.net.steps), 0, -1):
            a = values.pop(k, None)
            if a is None:
                continue
            step = self.net.steps[k - 1]
            if isinstance(step, Relu):
                low, high = work.bounds.lower[step.source], work.bounds.upper[step.source]
                # What a relaxation costs grows with the width of its argument.
                part = a * np.where(low >= 0, 0.0, np.where(high <= 0, 0.0, 1.0))
                values[step.source] = values.get(step.source, 0.0) + part
                continue
            for v, w in step.terms:
                values[v] = values.get(v, 0.0) + a @ np.abs(w)
        return direct + np.asarray(values.get(0, 0.0))


def _leaf(work: OpenCases, i: int) -> ProvedLeaf:
    lowest = work.found.constant[i, 0] - work.found.slack[i, 0]
    return ProvedLeaf(
        work.dual.take(i),
        work.found.coefficients[i, 0],
        float(np.nextafter(lowest, -np.inf)),
    )


def _stacked(parts: Sequence[OpenCases]) -> OpenCases:
    """All open cases of several."""
    if len(parts) == 1:
        return parts[0]
    return OpenCases(
        np.concatenate([p.case for p in parts]),
        ValueBounds.stacked([p.bounds for p in parts]),
        {v: np.concatenate([p.signs[v] for p in parts]) for v in parts[0].signs},
        Dual.stacked([p.dual for p in parts]),
        np.concatenate([p.lower for p in parts]),
        Lower.stacked([p.found for p in parts]),
        [n for p in parts for n in p.nodes],
        np.concatenate([p.exact for p in parts]),
    )
