"""Records of gather, ravel_index, scatter and contraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import (
    TensorType,
    bool_,
    complex128,
    float32,
    float64,
    int64,
)
from retrograd.ops.index import Gather, RavelIndex, ScatterAdd
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.scatter import ScatterMax, ScatterMin, ScatterMul, ScatterSet
from retrograd.verify.records.common import NUMBERS, SIZES, M, N, b1, f64, i64
from retrograd.verify.records.elementwise import wrap
from retrograd.verify.records.record import (
    INTEGERS,
    Array,
    Failure,
    Record,
    Sample,
    Symbolic,
    draw,
    rng_for,
)

GATHERS: list[tuple[tuple[int, int], tuple[int, ...], tuple[int, ...]]] = [
    ((0, 0), (5,), (3,)),
    ((1, 0), (2, 4, 3), (2, 2)),
    ((0, 0), (5, 2), ()),
    ((1, 1), (2, 4), (2, 3)),
    ((2, 1), (2, 3, 4, 2), (2, 5)),
    ((2, 2), (2, 2, 3), (2, 2)),
    ((0, 0), (3,), (0,)),
    ((1, 0), (0, 3), (2,)),
    ((0, 0), (0, 3), (0,)),
]


def index_samples(name: str) -> Iterator[Sample]:
    rng = rng_for(name)
    for k, ((axis, shared), shape, index_shape) in enumerate(GATHERS):
        for dtype in (*NUMBERS, bool_) if k == 0 else (float64,):
            if dtype.is_complex and name in ("scatter_mul", "scatter_max", "scatter_min"):
                continue
            for counts in INTEGERS if k == 0 and dtype is float64 else (int64,):
                low = 0 if counts.kind == "uint" else -shape[axis]
                index = rng.integers(low, max(shape[axis], low + 1), index_shape)
                x = draw(rng, shape, dtype)
                inputs: tuple[Any, ...] = (x, np.asarray(index, counts.dtype))
                if name == "gather":
                    yield Sample(Gather(axis, shared), inputs, dtype is float64)
                elif dtype is not bool_ or name == "scatter_set":
                    result = shape[:axis] + index_shape[shared:] + shape[axis + 1 :]
                    updates = draw(rng, result, dtype)
                    if dtype is float64 and name in ("scatter_max", "scatter_min"):
                        # Apart, so that there are no kinks near.
                        drawn = rng.permutation(x.size + updates.size) * 0.25 - 2
                        x = drawn[: x.size].reshape(shape)
                        updates = drawn[x.size :].reshape(result)
                    one = (x, inputs[1], updates)
                    yield Sample(SCATTERS[name](axis, shared), one, dtype is float64)


def places(op: Any, x: Array, index: Array) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of an index of what is read or written, and the index of it in `x`."""
    own = index.ndim - op.shared
    shape = x.shape[: op.axis] + index.shape[op.shared :] + x.shape[op.axis + 1 :]
    for i in np.ndindex(shape):
        s, p = i[: op.shared], i[op.shared : op.axis]
        k, q = i[op.axis : op.axis + own], i[op.axis + own :]
        at = int(index[s + k])
        yield i, (*s, *p, at % x.shape[op.axis], *q)


def gathered(op: Any, x: Array, index: Array) -> Array:
    own = index.shape[op.shared :]
    y = np.empty(x.shape[: op.axis] + own + x.shape[op.axis + 1 :], x.dtype)
    for i, at in places(op, x, index):
        y[i] = x[at]
    return y


SCATTERS: dict[str, Any] = {
    "scatter_add": ScatterAdd,
    "scatter_set": ScatterSet,
    "scatter_mul": ScatterMul,
    "scatter_max": ScatterMax,
    "scatter_min": ScatterMin,
}
MEET: dict[str, Callable[[Any, Any], Any]] = {
    "scatter_add": lambda old, new: old + new,
    "scatter_set": lambda old, new: new,
    "scatter_mul": lambda old, new: old * new,
    "scatter_max": lambda old, new: max(old, new),
    "scatter_min": lambda old, new: min(old, new),
}


def scattered(op: Any, x: Array, index: Array, updates: Array) -> Array:
    if op.name == "scatter_add" and x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        wide = scattered(op, x.astype(np.float64), index, updates.astype(np.float64))
        return wide.astype(x.dtype)  # rounded once
    y = x.copy()
    for i, at in places(op, x, index):
        with np.errstate(over="ignore"):
            y[at] = MEET[op.name](y[at], updates[i])
    return y


GATHER = Record(
    "gather",
    partial(index_samples, "gather"),
    gathered,
    (0,),
    failures=(
        Failure(Gather(0), (f64(3), f64(2)), DTypeError),
        Failure(Gather(0), (f64(3), TensorType(bool_, (2,))), DTypeError),
        Failure(Gather(1), (f64(3), i64(2)), ShapeError),
        Failure(Gather(-1), (f64(3), i64(2)), ShapeError),
        Failure(Gather(0), (f64(), i64(2)), ShapeError),
        Failure(Gather(0, 1), (f64(3, 2), i64(3)), ShapeError),
        Failure(Gather(1, 1), (f64(3, 2), i64(2)), ShapeError),
        Failure(Gather(1, 1), (f64(3, 2), i64()), ShapeError),
    ),
    symbolic=(
        Symbolic(Gather(0), (f64(N + 2, 2), i64(M)), SIZES, below=2),
        Symbolic(Gather(1, 1), (f64(N, M), i64(N, 3)), SIZES),
    ),
)


def ravel_samples() -> Iterator[Sample]:
    rng = rng_for("ravel_index")
    for k, (sizes, shape) in enumerate(
        [((3, 4), (5,)), ((2, 5, 3), (2, 3)), ((6,), ()), ((4, 1), (0,)), ((0, 3), (0, 2))]
    ):
        for counts in INTEGERS if k == 0 else (int64,):
            low = [0 if counts.kind == "uint" else -n for n in sizes]
            inputs = [
                np.asarray(rng.integers(a, max(n, a + 1), shape), counts.dtype)
                for a, n in zip(low, sizes, strict=True)
            ]
            yield Sample(RavelIndex(sizes, 1), tuple(inputs), False)


def ravelled(op: Any, *arrays: Array) -> Array:
    y = np.zeros(arrays[0].shape, np.int64)
    for i in np.ndindex(y.shape):
        for index, n in zip(arrays, op.sizes, strict=True):
            y[i] = y[i] * n + int(index[i]) % n
    return y


RAVEL = Record(
    "ravel_index",
    ravel_samples,
    ravelled,
    (),
    failures=(
        Failure(RavelIndex((3, 4)), (i64(2),), ShapeError),
        Failure(RavelIndex(()), (), ShapeError),
        Failure(RavelIndex((3, 4)), (i64(2), i64(3)), ShapeError),
        Failure(RavelIndex((3, 4)), (i64(2), f64(2)), DTypeError),
    ),
    symbolic=(Symbolic(RavelIndex((N + 2, 2)), (i64(M), i64(M)), SIZES, below=2),),
)


def scatter(name: str) -> Record:
    kind = SCATTERS[name]
    bad = () if name == "scatter_set" else (Failure(kind(0), (b1(3), i64(2), b1(2)), DTypeError),)
    return Record(
        name,
        partial(index_samples, name),
        scattered,
        (0, 2),
        failures=(
            Failure(kind(0), (f64(3), f64(2), f64(2)), DTypeError),
            Failure(kind(0), (f64(3), i64(2), TensorType(float32, (2,))), DTypeError),
            Failure(kind(0), (f64(3), i64(2), f64(3)), ShapeError),
            Failure(kind(1), (f64(3), i64(2), f64(3)), ShapeError),
            *bad,
        ),
        symbolic=(
            Symbolic(kind(0), (f64(N + 2, 2), i64(M), f64(M, 2)), SIZES, below=2),
            Symbolic(kind(1, 1), (f64(N, M), i64(N, 3), f64(N, 3)), SIZES),
        ),
    )


DOTS: list[tuple[Any, list[tuple[int, ...]]]] = [
    (DotGeneral((1,), (0,)), [(2, 3), (3, 4)]),
    (DotGeneral((2,), (1,), (0,), (0,)), [(2, 3, 4), (2, 4, 2)]),
    (DotGeneral((0, 2), (1, 0)), [(2, 3, 4), (4, 2, 3)]),
    (DotGeneral((3, 0), (0, 2), (2,), (1,)), [(2, 1, 3, 2), (2, 3, 2)]),
    (DotGeneral((0,), (0,)), [(3,), (3,)]),
    (DotGeneral((), ()), [(2,), (3,)]),
    (DotGeneral((), ()), [(), ()]),
    (DotGeneral((), (), (0,), (0,)), [(3,), (3,)]),
    (DotGeneral((), (), (0, 1), (1, 0)), [(2, 3), (3, 2, 2)]),
    (DotGeneral((1,), (0,)), [(2, 0), (0, 3)]),
    (DotGeneral((1,), (0,)), [(0, 3), (3, 2)]),
    (DotGeneral((1, 2), (3, 1), (3,), (0,)), [(1, 2, 3, 2), (2, 3, 2, 2)]),
]


def contracted(op: Any, a: Array, b: Array) -> Array:
    """By einsum, in the dtype itself, float32 for half precision, or Python integers."""
    letters = iter("abcdefghijkl")
    left = ["" for _ in a.shape]
    right = ["" for _ in b.shape]
    for i, j in zip((*op.a_batch, *op.a_contract), (*op.b_batch, *op.b_contract), strict=True):
        left[i] = right[j] = next(letters)
    left = [x or next(letters) for x in left]
    right = [x or next(letters) for x in right]
    batch = [left[i] for i in op.a_batch]
    rest = [x for x in left if x not in right] + [x for x in right if x not in left]
    formula = f"{''.join(left)},{''.join(right)}->{''.join(batch + rest)}"
    if np.issubdtype(a.dtype, np.integer):
        exact = np.einsum(formula, a.astype(object), b.astype(object))
        flat = [wrap(v, a.dtype) for v in np.asarray(exact, object).ravel()]
        return np.array(flat, a.dtype).reshape(np.shape(exact))
    wide = a.dtype if a.dtype.itemsize > 2 else np.dtype(np.float32)
    return np.asarray(np.einsum(formula, a.astype(wide), b.astype(wide)), wide).astype(a.dtype)


def dot_samples() -> Iterator[Sample]:
    rng = rng_for("dot_general")
    for k, (op, shapes) in enumerate(DOTS):
        for dtype in NUMBERS if k < 2 else (float64,):
            arrays = tuple(draw(rng, s, dtype) for s in shapes)
            yield Sample(op, arrays, dtype in (float64, complex128))


DOT = Record(
    "dot_general",
    dot_samples,
    contracted,
    (0, 1),
    failures=(
        Failure(DotGeneral((1,), (0,)), (f64(2, 3), f64(4, 2)), ShapeError),
        Failure(DotGeneral((1,), (0,)), (f64(2, 3), TensorType(float32, (3, 2))), DTypeError),
        Failure(DotGeneral((1,), (0,)), (TensorType(bool_, (2, 2)),) * 2, DTypeError),
        Failure(DotGeneral((2,), (0,)), (f64(2, 3), f64(3, 2)), ShapeError),
        Failure(DotGeneral((-1,), (0,)), (f64(2, 3), f64(3, 2)), ShapeError),
        Failure(DotGeneral((1, 1), (0, 1)), (f64(2, 3), f64(3, 3)), ShapeError),
        Failure(DotGeneral((1,), ()), (f64(2, 3), f64(3, 3)), ShapeError),
        Failure(DotGeneral((1,), (), (), (0,)), (f64(2, 3), f64(3, 3)), ShapeError),
    ),
    symbolic=(
        Symbolic(DotGeneral((1,), (0,)), (f64(N, M), f64(M, 2)), SIZES),
        Symbolic(DotGeneral((2,), (1,), (0,), (0,)), (f64(N, 2, M), f64(N, M, 3)), SIZES),
    ),
)


def records() -> list[Record]:
    return [GATHER, RAVEL, *map(scatter, SCATTERS), DOT]
