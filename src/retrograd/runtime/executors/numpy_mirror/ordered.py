"""What NumPy computes to the bits of compiled code beyond `EXACT`, so that nothing is compiled for
it: what selects one of its operands, whole numbers, sums in the order of a plan's nests, scatters
in the order of their updates, and searches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.index import Scatter
from retrograd.ops.numerics.summation import PARTS, SUMS, in_pairs
from retrograd.ops.reduce import ReduceProd, ReduceSum, Reduction
from retrograd.ops.scatter import ScatterExtremum, ScatterMax
from retrograd.ops.sort import SearchSorted
from retrograd.runtime.backend import Array
from retrograd.runtime.executors.numpy_mirror.facts import once
from retrograd.schedule.loop_nest import LANES
from retrograd.shared import Key, trim

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
# What NumPy does, in elements, before there is code: for operands of some shapes, as they return,
# and for a kind of operation.
ENOUGH, ALL = 1 << 22, 1 << 26
CALL = 1 << 12  # elements that take as long as a call
AT = 32  # elements that take as long as one of which NumPy is told where it goes
FORMULA = 100  # operations of which a portable function is made, see `ops/special/portable.py`
CAPACITY = 4096  # kinds that are remembered; the oldest is forgotten
_DONE: dict[Any, float] = {}  # by kind, and by kind and shapes


def is_whole(node: Node) -> bool:
    """Whether it is an operation of whole numbers that NumPy does."""
    return node.op in WHOLE and not any(x.dtype.is_inexact for x in (node, *node.inputs))


def affords(node: Node, work: float, first: float = ENOUGH) -> bool:
    """Whether NumPy shall do so much work for a node, in elements: until what it has done would
    have paid for code. The first time for some shapes it may be as much as `first`."""
    kind, key = once(node, "done", _kinds)
    work += CALL
    in_all, before = _DONE.get(kind, 0) + work, _DONE.get(key, 0)
    if in_all > ALL or before + work > (ENOUGH if before else first):
        return False
    _DONE[kind], _DONE[key] = in_all, before + work
    trim(_DONE, CAPACITY)
    return True


def give_up(node: Node) -> None:
    """NumPy shall do nothing of the kind any more."""
    _DONE[once(node, "done", _kinds)[0]] = ALL


def _kinds(node: Node) -> tuple[Key, Key]:
    """What is one kind of operation, and one of such operands."""
    kind = Key((node.prim, tuple([(x.dtype, x.type.rank) for x in node.inputs])))
    return kind, Key((kind, tuple([x.type.shape for x in node.inputs])))


def can_reduce(node: Node, work: float) -> bool:
    """Whether `reduced` shall compute a node, for which there is so much work."""
    floats = isinstance(node.prim, ReduceSum | ReduceProd) and node.dtype.name in WIDE
    return floats and affords(node, work)


def can_evaluate(node: Node, work: float) -> bool:
    """Whether NumPy shall compute a function made of correctly rounded operations."""
    return node.dtype.name in WIDE and affords(node, FORMULA * (work + CALL))


def in_order(node: Node, arrays: list[Array], work: float) -> Array | None:
    """The value of a scatter or a search whose inputs have these values, if NumPy has it and shall
    compute it."""
    prim, known = node.prim, node.dtype.name in WIDE or not node.dtype.is_inexact
    if isinstance(prim, Scatter):
        if known and affords(node, work * AT):
            return scattered(prim, *arrays)
    elif isinstance(prim, SearchSorted) and affords(node, work) and _is_sorted(arrays[0]):
        found: Array = prim.reference(*arrays)
        return found
    return None


def scattered(op: Scatter, x: Array, index: Array, updates: Array) -> Array:
    """What updates make of x, one after the other. The extremum of two zeros is the greater or the
    lesser one in the order of bits, which NumPy does not promise."""
    if not isinstance(op, ScatterExtremum) or x.dtype.kind != "f":
        y: Array = op.reference(x, index, updates)
        return y
    there, new = (ordered_bits(a, isinstance(op, ScatterMax)) for a in (x, updates))
    return of_bits(op.reference(there, index, new), x.dtype)


def ordered_bits(x: Array, highest: bool) -> Array:
    """Integers in the order of floats, in which -0.0 is below 0.0, and NaN above or below all."""
    whole = np.iinfo(f"i{x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).view(whole.dtype).reshape(x.shape)
    bits = bits ^ (bits >> (whole.bits - 1) & whole.max)
    return np.where(np.isnan(x), whole.max if highest else whole.min, bits).astype(whole.dtype)


def of_bits(bits: Array, dtype: np.dtype[Any]) -> Array:
    """The floats that such integers stand for."""
    whole = np.iinfo(bits.dtype)
    found: Array = (bits ^ (bits >> (whole.bits - 1) & whole.max)).view(dtype)
    return found


def _is_sorted(rows: Array) -> bool:
    """Whether the place of every value in these rows is determined: NaN at their ends."""
    if rows.dtype.kind not in "biuf":
        return False
    before, after = rows[..., :-1], rows[..., 1:]
    return bool(((before <= after) | (after != after)).all())


def reduced(op: Reduction, x: Array) -> Array:
    """A sum or product of floats, each with one operand at a time, in the order in which compiled
    code takes them: see `schedule/loop_nest.py`."""
    is_sum = isinstance(op, ReduceSum)
    ufunc, neutral = (np.add, -0.0) if is_sum else (np.multiply, 1.0)
    add_up = chained if is_sum else _one_by_one
    kept = [i for i in range(x.ndim) if i not in op.axes]
    shape = tuple([x.shape[i] for i in kept])
    loops = [i for i in kept if x.shape[i] != 1]
    many = [i for i in op.axes if x.shape[i] != 1]
    sizes = [x.shape[i] for i in many]
    terms = x.transpose((*op.axes, *kept)).reshape(*sizes, math.prod(shape))
    if many and not (loops and many[-1] < loops[-1]):
        # A row: element r of it goes to partial result r mod LANES.
        width = sizes.pop()
        lanes = min(LANES, 1 << (width - 1).bit_length())  # the others would stay neutral
        rows, steps = terms, -(-width // lanes)
        terms = np.full((*sizes, steps * lanes, rows.shape[-1]), neutral, x.dtype)
        terms[..., :width, :] = rows
        sizes.append(steps)
        terms = terms.reshape(*sizes, -1)
    terms = np.ascontiguousarray(terms)
    for n in reversed(sizes if is_sum else [math.prod(sizes)]):
        terms = add_up(ufunc, terms.reshape(-1, n, terms.shape[-1]), neutral)
    partial = terms.reshape(-1, math.prod(shape))
    while len(partial) > 1:
        half = len(partial) // 2
        partial = ufunc(partial[:half], partial[half:])
    return partial.reshape(shape)


def _one_by_one(ufunc: Any, x: Array, neutral: float) -> Array:
    """Reduced along the middle one of three axes, along which NumPy goes in order."""
    found: Array = ufunc.reduce(x, 1, initial=x.dtype.type(neutral))
    return found


def chained(ufunc: Any, x: Array, neutral: float) -> Array:
    """Added up along the middle one of three axes, in the order of `ops/numerics/summation.py`."""
    for most in (SUMS.block, PARTS, PARTS):
        missing = -x.shape[1] % most if x.shape[1] > most else 0
        if missing:
            x = np.concatenate((x, np.full_like(x[:, :missing], neutral)), 1)
        size = min(x.shape[1], most)
        parts = _one_by_one(ufunc, x.reshape(-1, size, x.shape[2]), neutral)
        x = parts.reshape(len(x), -1, x.shape[2])
    found: Array = in_pairs(list(x.swapaxes(0, 1)))
    return found
