"""What a wrong derivative looks like: a sign, a factor, an axis, a conjugate, a lost part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CLOSE = 1e-5  # relative to the largest element


def likely_cause(found: Array, expected: Array, known: Array | None = None) -> str:
    """The mistake that would give `found` for `expected`, in words that follow a semicolon; empty
    where none of the usual ones does."""
    if known is not None and not known.all():  # of a large array only some elements are known
        found, expected = found[known], expected[known]
    if not np.all(np.isfinite(found)):
        return "; it is not finite"
    if not found.size or not np.all(np.isfinite(expected)):
        return ""
    for said, candidate in _candidates(found, expected):
        if candidate.shape == found.shape and _close(found, candidate):
            return f"; {said}"
    return ""


def _candidates(found: Array, expected: Array) -> Any:
    yield "the sign is wrong", -expected
    if found.dtype.kind == "c" or expected.dtype.kind == "c":
        yield "a conjugate is missing", np.conj(expected)
        yield "a conjugate is missing, and the sign is wrong", -np.conj(expected)
        phase = np.exp(1j * (np.angle(found) - np.angle(expected)))
        if not _close(phase, np.full_like(phase, phase.flat[0])):
            said = "a conjugate is missing or misplaced: magnitudes are right, and phases wrong"
            yield said, phase * expected
    size = float(np.sum(np.abs(expected) ** 2))
    if size > 0:
        factor = complex(np.sum(np.conj(expected) * found) / size)
        if not np.any(found):
            yield "it is zero", 0 * expected
        shown = f"{factor.real:.6g}" if abs(factor.imag) < 1e-9 * abs(factor) else f"{factor:.6g}"
        several = found.size > 1
        if several or abs(factor - round(factor.real * 12) / 12) < 1e-6:
            yield f"it is {shown} times what it should be", factor * expected
    else:
        yield "it should be zero", np.full_like(expected, np.nan)
    axes = range(found.ndim)
    for order in itertools.islice(itertools.permutations(axes), 1, 24):
        yield (
            f"the axes are mixed up: it is right as transposed by {order}",
            expected.transpose(order),
        )
    for count in range(1, found.ndim + 1):
        for flipped in itertools.combinations(axes, count):
            said = f"the order along axis {', '.join(map(str, flipped))} is reversed"
            yield said, np.flip(expected, flipped)
    for axis in axes:
        for by in range(1, min(found.shape[axis], 8)):
            yield f"axis {axis} is shifted by {by}", np.roll(expected, by, axis)
        for kept in (np.sum, np.mean):
            spread = np.broadcast_to(kept(expected, axis, keepdims=True), expected.shape)
            yield f"axis {axis} is summed over", spread
    off = found - expected
    if found.size > 1 and _close(off, np.full_like(off, off.flat[0])):
        yield "a term is missing that is the same in all elements", found


def _close(a: Array, b: Array) -> bool:
    scale = max(float(np.max(np.abs(b), initial=0)), 1e-300)
    return bool(np.max(np.abs(a - b), initial=0) <= CLOSE * scale)
