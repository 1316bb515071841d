"""What NumPy computes to the bits of compiled code beyond `EXACT`, so that nothing is compiled for
it: what selects one of its operands, whole numbers, and sums in the order of a plan's nests.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np

from retrograd.backends.backend import Array
from retrograd.backends.kernel.nest import LANES
from retrograd.ir import Node
from retrograd.ops.reduce import ReduceProd, ReduceSum, Reduction

# The result is an operand, and it is said which, of zeros and NaN too. Where subnormal numbers are
# flushed, what equals a zero differs from one way to compare to another.
SELECTING = frozenset((
    "max", "min", "clamp", "relu", "sign", "reduce_max", "reduce_min", "argmax", "argmin",
))  # fmt: skip
# Of whole numbers, which wrap, there is no other result.
WHOLE = frozenset((
    "floor_div", "mod", "pow", "reduce_sum", "reduce_prod", "cumsum", "cumprod", "cummax", "cummin",
))  # fmt: skip

WIDE = ("float32", "float64")  # dtypes in which sums are kept as they are added up
ENOUGH = 1 << 20  # elements that NumPy reduces before there is code for it
CALL = 1 << 12  # elements that take as long as a call
FORMULA, FORMULA_CALL = 100, 400  # the same of such a function: its operations, and elements
CAPACITY = 1024  # kinds that are remembered; the oldest is forgotten
_DONE: OrderedDict[Any, float] = OrderedDict()  # by kind, in elements


def is_whole(node: Node) -> bool:
    """Whether it is an operation of whole numbers that NumPy does."""
    return node.op in WHOLE and not any(x.dtype.is_inexact for x in (node, *node.inputs))


def can_reduce(node: Node, work: float) -> bool:
    """Whether `reduced` shall compute a node, for which there is so much work: until it has done so
    much of the kind that code would have paid."""
    if not isinstance(node.prim, ReduceSum | ReduceProd) or node.dtype.name not in WIDE:
        return False
    return _can_wait((node.prim, node.dtype, node.inputs[0].type.rank), work + CALL)


def can_evaluate(node: Node, work: float) -> bool:
    """The same of a function that is made of correctly rounded operations (`ops/portable.py`)."""
    if node.dtype.name not in WIDE:
        return False
    return _can_wait((node.op, node.dtype), FORMULA * (work + FORMULA_CALL))


def _can_wait(key: Any, work: float) -> bool:
    """Whether NumPy shall do so much work of a kind."""
    done = _DONE.get(key, 0)
    if done < ENOUGH:
        _DONE[key] = done + work
        while len(_DONE) > CAPACITY:
            _DONE.popitem(last=False)
    return done < ENOUGH


def reduced(op: Reduction, x: Array) -> Array:
    """A sum or product of floats, each with one operand at a time, in the order in which compiled
    code takes them: see `kernel/nest.py`."""
    ufunc, neutral = (np.add, -0.0) if isinstance(op, ReduceSum) else (np.multiply, 1.0)
    kept = [i for i in range(x.ndim) if i not in op.axes]
    shape = tuple([x.shape[i] for i in kept])
    loops = [i for i in kept if x.shape[i] != 1]
    many = [i for i in op.axes if x.shape[i] != 1]
    if not many or (loops and many[-1] < loops[-1]):  # a column: one after the other
        columns = x.transpose((*op.axes, *kept)).reshape(-1, math.prod(shape))
        return _one_by_one(ufunc, np.ascontiguousarray(columns), 0, neutral).reshape(shape)
    # A row: element r of it goes to partial result r mod LANES.
    width = x.shape[many[-1]]
    lanes = min(LANES, 1 << (width - 1).bit_length())  # the others would stay neutral
    rows = x.transpose((*kept, *op.axes)).reshape(math.prod(shape), -1, width)
    if width % lanes:
        filled = np.full((*rows.shape[:2], width + -width % lanes), neutral, x.dtype)
        filled[..., :width] = rows
        rows = filled
    blocks = np.ascontiguousarray(rows).reshape(len(rows), -1, lanes)
    partial = _one_by_one(ufunc, blocks, 1, neutral)
    while partial.shape[1] > 1:
        half = partial.shape[1] // 2
        partial = ufunc(partial[:, :half], partial[:, half:])
    return partial.reshape(shape)


def _one_by_one(ufunc: Any, x: Array, axis: int, neutral: float) -> Array:
    """Reduced along an axis that is not the fastest in memory, along which NumPy goes in order."""
    found: Array = ufunc.reduce(x, axis, initial=x.dtype.type(neutral))
    return found
