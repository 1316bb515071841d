"""Matrices that are read by columns while their rows lie in memory, as of weights that layers store
as `[out, in]`.

What the lanes need at one step of a contraction lies a row apart, but what they need at the next
steps lies beside it. So a few elements of each row are read at once, and turned over in registers,
which takes a third of the time of gathering.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.ir import DType
from retrograd.tuning import TUNING


def together(dtype: DType, lanes: int) -> int:
    """How many elements of each row are turned at once."""
    return min(TUNING.shuffle_bytes // dtype.itemsize, lanes)


def transpose_in_registers(w: FunctionBuilder, rows: Sequence[str], dtype: DType) -> list[str]:
    """The first elements of rows, one row for each lane, as columns: as many as a piece of a row
    holds. Pieces that are loaded into the places of a vector where they belong need only be turned
    within."""
    lanes, n = len(rows), together(dtype, len(rows))
    scalar = types.register_type(dtype)
    piece, vector = types.widened(scalar, n), types.widened(scalar, lanes)
    joined = []
    for r in range(n):
        pieces = [w.new(f"load {piece}, ptr {row}, align {dtype.itemsize}") for row in rows[r::n]]
        length = n
        while len(pieces) > 1:
            kind, length = types.widened(scalar, length), 2 * length
            pieces = [
                _shuffled(w, kind, a, b, range(length))
                for a, b in zip(pieces[::2], pieces[1::2], strict=True)
            ]
        joined += pieces

    def paired(two: Sequence[str], size: int, half: int) -> str:
        """Of each piece, runs of `size` elements of two vectors in turn, from the first or the
        second half of the piece."""
        places = []
        for start in range(half * n // 2, lanes, n):
            for at in range(start, start + n // 2, size):
                places += [*range(at, at + size), *range(lanes + at, lanes + at + size)]
        return _shuffled(w, vector, two[0], two[1], places)

    if n == 2:
        return [paired(joined, 1, half) for half in (0, 1)]
    low, high = ([paired(joined[i : i + 2], 1, half) for i in (0, 2)] for half in (0, 1))
    return [paired(two, 2, half) for two in (low, high) for half in (0, 1)]


def in_turn(
    w: FunctionBuilder, vectors: Sequence[str], scalar: str, lanes: int, run: int = 1
) -> list[str]:
    """Runs of so many elements of each vector in turn, as many vectors as there were."""
    if len(vectors) == 1:
        return list(vectors)
    kind = types.vector(scalar, lanes)
    if len(vectors) % 2:
        return [_collected(w, vectors, kind, lanes, run, j) for j in range(len(vectors))]
    even, odd = (in_turn(w, vectors[i::2], scalar, lanes, run) for i in (0, 1))
    order = [(i // run % 2) * lanes + i // run // 2 * run + i % run for i in range(2 * lanes)]
    halves = order[:lanes], order[lanes:]
    return [_shuffled(w, kind, a, b, h) for a, b in zip(even, odd, strict=True) for h in halves]


def _collected(
    w: FunctionBuilder, vectors: Sequence[str], kind: str, lanes: int, run: int, number: int
) -> str:
    """One of the vectors that `in_turn` makes."""
    count, first = len(vectors), number * lanes
    wanted = [
        (e // run % count, e // run // count * run + e % run) for e in range(first, first + lanes)
    ]
    found = vectors[0]
    for k, x in enumerate(vectors):
        places = [
            lanes + lane if source == k else (lane if k == 0 else i)
            for i, (source, lane) in enumerate(wanted)
        ]
        found = _shuffled(w, kind, found, x, places)
    return found


def every_second(w: FunctionBuilder, first: str, second: str, kind: str, lanes: int) -> str:
    """Every second element from a pointer on, of two vectors: what lies there, and what ends where
    the last of them is, as no more memory need be there."""
    places = [2 * i if 2 * i < lanes else 2 * i + 1 for i in range(lanes)]
    return _shuffled(w, kind, first, second, places)


def reversed_lanes(w: FunctionBuilder, x: str, kind: str, lanes: int) -> str:
    return _shuffled(w, kind, x, x, list(range(lanes))[::-1])


def _shuffled(w: FunctionBuilder, kind: str, a: str, b: str, places: range | list[int]) -> str:
    listed = ", ".join(f"i32 {i}" for i in places)
    return w.new(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{listed}>")
