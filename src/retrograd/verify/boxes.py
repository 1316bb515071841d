"""Proofs for any program: bounds of its constraints on boxes, which are halved."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograd.errors import BackendError
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import concat
from retrograd.graph.graph import trace
from retrograd.verify.bound_propagation.bounds import bounds
from retrograd.verify.bound_propagation.box import Box
from retrograd.verify.network import Array
from retrograd.verify.problem import Problem


class Covered(NamedTuple):
    """How far a proof by boxes has come."""

    leaves: int
    lower: float  # the least bound of what is left; inf where nothing is
    points: list[Array]  # middles of boxes that were not proved


def cover(problem: Problem, method: str, until: float, max_leaves: int) -> Covered:
    """Prove every case of a problem on boxes; `method` is one of `rg.verify.bounds`, or
    "beta-crown", with which boxes are halved, else each region is bounded once."""
    halve = method == "beta-crown"
    lower_of = _lower(problem, "crown" if halve else method, fall_back=halve)
    queue: list[tuple[float, int, int, Array, Array]] = []
    count = leaves = 0
    left, points = math.inf, []
    for k, case in enumerate(problem.cases):
        region = problem.regions[case.region]
        queue.append((-math.inf, count := count + 1, k, region.lower, region.upper))
    while queue:
        parent, _, k, low, high = heapq.heappop(queue)
        if time.monotonic() > until or leaves >= max_leaves:
            left = min(left, parent)
            break
        worst, proved = lower_of(k, low, high)
        if proved:
            leaves += 1
            continue
        middle = np.asarray((low / 2 + high / 2).astype(problem.dtype), np.float64)
        points.append(middle)
        i = int(np.argmax(high - low))
        if not halve or not low[i] < middle[i] < high[i]:
            left = min(left, worst)
            continue
        for side in (0, 1):
            ends = low.copy(), high.copy()
            ends[1 - side][i] = middle[i]
            heapq.heappush(queue, (worst, count := count + 1, k, *ends))
    return Covered(leaves, left, points[-64:])


def _lower(
    problem: Problem, method: str, fall_back: bool
) -> Callable[[int, Array, Array], tuple[float, bool]]:
    """For a case and a box: the largest bound of a constraint, and whether it proves the case."""
    cases = [[(c.coefficients, c.constant, c.strict) for c in x.constraints] for x in problem.cases]
    every = [c for case in cases for c in case]
    starts = np.cumsum([0, *map(len, cases)])
    size = sum(math.prod(s) for s in problem.shapes)
    rows = np.array([c[0] for c in every]).reshape(len(every), size)
    shift = np.array([c[1] for c in every])
    strict = np.array([c[2] for c in every], bool)

    def constraints(*parts: Any) -> Any:
        outputs = problem.flat_outputs(*parts)
        y = concat([y.astype(np.float64) for y in outputs])
        return asarray(rows) @ y + asarray(shift)

    graph = trace(constraints, *problem.types)
    methods = [method, "ibp"] if fall_back else [method]

    def lower(k: int, low: Array, high: Array) -> tuple[float, bool]:
        if starts[k] == starts[k + 1]:
            return -math.inf, False
        boxes = [Box(a, b) for a, b in zip(*(_ends(problem, x) for x in (low, high)), strict=True)]
        while True:
            try:
                found = np.asarray(bounds(graph, *boxes, method=methods[0]).lower)
                break
            except BackendError:
                if len(methods) == 1:
                    raise
                methods.pop(0)  # an op without linear bounds has intervals
        own = found[starts[k] : starts[k + 1]]
        proves = (own > 0) | ((own == 0) & strict[starts[k] : starts[k + 1]])
        return float(own.max()), bool(proves.any())

    return lower


def _ends(problem: Problem, flat: Array) -> list[Array]:
    """The end of a box in the shapes and dtypes of the inputs."""
    found, start = [], 0
    for t in problem.types:
        size = math.prod(map(int, t.shape))
        found.append(flat[start : start + size].reshape(t.shape).astype(t.dtype.dtype))
        start += size
    return found
