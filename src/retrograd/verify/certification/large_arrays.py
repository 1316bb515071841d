"""Slopes of operations that reduce, scan, move and order, at very many elements.

An operation of one block of memory, of positions in 32 bits, or of counters in floats, is right for
few elements and wrong for many. Inputs are whole numbers of which every sum is exact, in whatever
order, so that slopes are known to the bit; only those of logarithms are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.backend_registry import compile_graph
from retrograd.ir import Graph, Op
from retrograd.ops import elementwise as el
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.reduce import LogSumExp, ReduceMax, ReduceSum
from retrograd.ops.scan import CumMax, CumSum
from retrograd.ops.sort import Sort
from retrograd.verify.certification import multiprecision
from retrograd.verify.certification.certificate import FAILED, PASSED, Evidence
from retrograd.verify.rule_checks import Array, gradients, placeholders

KIND = "edges"
FEW = 1000  # rows of a table that is read very often


class Large(NamedTuple):
    """An operation, its inputs, which of them (`WRT`) to differentiate the sum of `weights` times
    its result by, and that slope; `rtol` where it is rounded."""

    op: Op
    inputs: Sequence[Array]
    wrt: int
    weights: Array
    slope: Array
    rtol: float = 0.0


def _floats(x: Any) -> Array:
    return np.asarray(x, np.float32)


def _sum(n: int) -> Large:
    return Large(ReduceSum((0,)), [_floats(np.arange(n) % 3)], 0, _floats(2), np.full(n, 2.0))


def _max(n: int) -> Large:
    x = _floats(np.arange(n) % 7)
    x[n - 3] = 9
    slope = np.zeros(n)
    slope[n - 3] = 1
    return Large(ReduceMax((0,)), [x], 0, _floats(1), slope)


def _logsumexp(n: int) -> Large:
    return Large(LogSumExp((0,)), [_floats(np.zeros(n))], 0, _floats(1), np.full(n, 1 / n), 1e-4)


def _cumsum(n: int) -> Large:
    """What is read at the ends and in the middle reaches all elements before it."""
    weights = np.zeros(n)
    weights[[0, n // 2, n - 1]] = [1, 2, 4]
    slope = np.cumsum(weights[::-1])[::-1]
    return Large(CumSum(0), [_floats(np.arange(n) % 2)], 0, _floats(weights), slope)


def _cummax(n: int) -> Large:
    x, weights, slope = np.zeros(n), np.zeros(n), np.zeros(n)
    x[n // 2], weights[n - 1], slope[n // 2] = 1, 3, 3
    return Large(CumMax(0), [_floats(x)], 0, _floats(weights), slope)


def _sort(n: int) -> Large:
    """Ties in their order."""
    x = _floats((np.arange(n) * 7919) % 100_003)
    weights = _floats(np.arange(n) % 5)
    slope = np.empty(n)
    slope[np.argsort(x, kind="stable")] = weights
    return Large(Sort(0), [x], 0, weights, slope)


def _gather(n: int) -> Large:
    at = (np.arange(n) * 7) % FEW
    slope = np.bincount(at, minlength=FEW)
    return Large(Gather(0), [_floats(np.arange(FEW)), at], 0, _floats(np.ones(n)), slope)


def _scatter(n: int) -> Large:
    """The slope by what is added: the weight of the place that each element goes to."""
    at, weights = (np.arange(n) * 7) % FEW, _floats(np.arange(FEW))
    inputs = [_floats(np.zeros(FEW)), at, _floats(np.ones(n))]
    return Large(ScatterAdd(0), inputs, 2, weights, weights[at])


CASES: dict[str, Callable[[int], Large]] = {
    "reduce_sum": _sum,
    "reduce_max": _max,
    "logsumexp": _logsumexp,
    "cumsum": _cumsum,
    "cummax": _cummax,
    "sort": _sort,
    "gather": _gather,
    "scatter_add": _scatter,
}


WRT = dict.fromkeys(CASES, 0) | {"scatter_add": 2}


def large(name: str, backends: Sequence[str], size: int, made: Large | None = None) -> Evidence:
    """The slope of the case of an operation at so many elements on each backend."""
    case = CASES[name](size) if made is None else made
    arrays = [*case.inputs, case.weights]
    *inputs, weights = placeholders(arrays)
    s = multiprecision.total(el.mul(case.op(*inputs), weights))
    (g,) = gradients(s, [inputs[case.wrt]])
    for backend in backends:
        (found,) = compile_graph(Graph([*inputs, weights], [g]), backend)(list(arrays))
        if not np.allclose(np.asarray(found), case.slope, rtol=case.rtol, atol=0):
            said = f"of {size} elements the slopes on {backend} are not what they are known to be"
            return Evidence(KIND, FAILED, size, None, said)
    return Evidence(KIND, PASSED, size * len(backends), None, f"{size} elements")
