"""The llvm backend against the reference, with guards around all the memory it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.ir import DType, Graph, as_dtype
from retrograd.runtime.backend import Array, Program
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.runtime.paired_program import on_real

GUARD = 256  # bytes in front of and behind each array
MARK = 0xA5  # what the guards hold; and fresh memory, so that reading it is noticed
ULPS = 32  # by default: libm and the order of summation differ


class GuardedProgram(Executable):
    """Allocates outputs and arenas between guards, and can tell whether these were touched."""

    def __init__(self, graph: Graph) -> None:
        self.blocks: list[Array] = []
        super().__init__(graph)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:  # type: ignore[override]
        size = int(np.prod(shape)) * dtype.itemsize
        block = np.full(size + 2 * GUARD, MARK, np.uint8)
        self.blocks.append(block)
        return block[GUARD : GUARD + size].view(dtype).reshape(shape)

    def check_guards(self) -> None:
        for block in self.blocks:
            assert (block[:GUARD] == MARK).all(), "memory in front of an array was written"
            assert (block[-GUARD:] == MARK).all(), "memory behind an array was written"


def assert_same(
    graph: Graph,
    arrays: Sequence[Array],
    ulps: float = ULPS,
    program: Program | None = None,
    scale: float = 0.0,
) -> None:
    """Both backends give the same: integers and booleans to the bit, floats within some ulps of the
    largest element (or of `scale`, where large numbers cancel on the way); shapes, dtypes, NaN and
    infinities agree; inputs and guards are untouched."""
    program = program or on_real(graph, GuardedProgram)
    before = [a.copy() for a in arrays]
    expected = ReferenceProgram(graph)(arrays)
    for _ in range(2):  # the second call reuses the arena
        found = program(arrays)
        for k, (y, r) in enumerate(zip(found, expected, strict=True)):
            assert_close(y, r, ulps, scale, f"output {k}, {graph.outputs[k].describe()}")
            assert y.flags.c_contiguous
            assert y.flags.writeable
    inner = getattr(program, "inner", program)
    if isinstance(inner, GuardedProgram):
        inner.check_guards()
    for a, b in zip(arrays, before, strict=True):
        assert a.tobytes() == b.tobytes(), "an input was changed"


def parts(z: Array) -> Array:
    """Complex numbers as their real and imaginary parts, along a last axis of 2."""
    return np.stack([z.real, z.imag], -1)


def assert_close(y: Array, r: Array, ulps: float, scale: float, what: str) -> None:
    """`y` is `r`, up to `ulps` of rounding where it is floating."""
    assert y.dtype == r.dtype, what
    assert y.shape == r.shape, what
    dtype = as_dtype(r.dtype)
    if dtype.is_complex:
        assert_close(parts(y), parts(r), ulps, scale, what)
        return
    if not dtype.is_float:
        np.testing.assert_array_equal(y, r, err_msg=what)
        return
    wide, right = y.astype(np.float64), r.astype(np.float64)
    finite = np.isfinite(right)
    np.testing.assert_array_equal(np.isfinite(wide), finite, err_msg=what)
    np.testing.assert_array_equal(wide[~finite], right[~finite], err_msg=what)
    if finite.any():
        largest = np.abs(right[finite]).max()
        size = np.maximum(np.abs(right[finite]), max(0.05 * largest, scale))
        bound = ulps * epsilon(dtype) * size + smallest(dtype)
        error = np.abs(wide[finite] - right[finite])
        worst = int(np.argmax(error - bound))
        assert (error <= bound).all(), (
            f"{what}: {wide[finite][worst]} instead of {right[finite][worst]}, "
            f"{error[worst] / (epsilon(dtype) * size[worst]):.1f} ulp"
        )


def epsilon(dtype: DType) -> float:
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(dtype.name, 2.0**-52)


def smallest(dtype: DType) -> float:
    """The least positive number, with room for a few roundings of subnormals."""
    return {"float16": 2.0**-22, "bfloat16": 2.0**-124, "float32": 2.0**-140}.get(
        dtype.name, 2.0**-1060
    )


def sample(shape: Sequence[Any], dtype: DType, seed: int = 0, special: bool = False) -> Array:
    """Random elements of any dtype; with `special` also zeros, infinities, NaN and extremes."""
    r = np.random.default_rng((seed, *shape))
    shape = tuple(shape)
    if dtype.kind == "bool":
        return np.asarray(r.integers(0, 2, shape)).astype(np.bool_)
    if dtype.is_integer:
        info = np.iinfo(dtype.dtype)
        x = np.asarray(r.integers(max(info.min, -9), 10, shape)).astype(dtype.dtype)
        values: list[Any] = [info.min, info.max, 0, 1]
    else:
        x = np.asarray(2 * r.normal(size=shape)).astype(dtype.dtype)
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e4, -300.0]
    if special and x.size:
        flat = x.reshape(-1)
        with np.errstate(all="ignore"):
            flat[r.random(flat.size) < 0.3] = 0
            for i in range(0, flat.size, 2):
                flat[i] = dtype.dtype.type(values[r.integers(len(values))])
    return x
