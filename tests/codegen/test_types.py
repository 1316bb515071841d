"""Values between memory, registers and constants: masks, gathers, conversions."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.codegen import types
from retrograd.codegen.emit.elementwise import ELEMENTWISE as EMIT
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import DType, bool_, int32, int64
from retrograd.ops.elementwise import ELEMENTWISE
from tests.codegen.emit.same_bits import REALS, SIZE, assert_same_bits
from tests.codegen.math.lanes import Functions, Write
from tests.runtime.agreement import sample

WIDTHS = (2, 4, 8, 16, 32)


@pytest.mark.parametrize("source", REALS, ids=str)
@pytest.mark.sample(4)
def test_cast(source: DType) -> None:
    def to(dtype: DType) -> tuple[Write, DType]:
        return lambda at, x: types.convert(at.w, x[0], source, dtype, at.lanes), dtype

    x = sample((SIZE,), source, 1, special=True)
    functions = [to(dtype) for dtype in REALS]
    expected = Functions(source, [source], functions)(x)
    for lanes in (2, 16):
        found = Functions(source, [source], functions, lanes)(x)
        for dtype, y, r in zip(REALS, found, expected, strict=True):
            assert_same_bits(y, r, f"{source} to {dtype}, {lanes} lanes")


@pytest.mark.parametrize("lanes", WIDTHS)
def test_constants(lanes: int) -> None:
    """Shifts by a constant count look into the literal; scalars are spread over the lanes."""
    counts = (0, 1, 31, 32, -1)

    def by(op: str, count: int) -> tuple[Write, DType]:
        return lambda at, x: EMIT[op](at, x[0], at.number(count)), int32

    x = sample((SIZE,), int32, special=True)
    functions = [by(op, count) for op in ("shift_left", "shift_right") for count in counts]
    functions.append((lambda at, x: types.broadcast(at.w, "7", int32, at.lanes), int32))
    expected = [
        ELEMENTWISE[op].reference(x, np.full_like(x, count))
        for op in ("shift_left", "shift_right")
        for count in counts
    ]
    expected.append(np.full_like(x, 7))
    for y, r in zip(Functions(int32, [int32], functions, lanes)(x), expected, strict=True):
        np.testing.assert_array_equal(y, r)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.sample(10)
def test_masks_and_gathers(dtype: DType, lanes: int) -> None:
    """Masked elements are not touched: the pointers used here lie outside of any memory."""
    base = sample((SIZE,), dtype, 3)
    offsets = np.random.default_rng(1).integers(0, SIZE, SIZE)
    mask = sample((SIZE,), bool_, 5)

    def gathered(at: OpBuilder, x: list[str]) -> str:
        wide = types.widened("i64", at.lanes)
        far = at.w.new(f"add {wide} {x[1]}, {types.splat('i64', str(1 << 60), at.lanes)}")
        safe = at.w.new(f"select {at.bool} {x[0]}, {wide} {x[1]}, {wide} {far}")
        return types.gather(at.w, "%p2", safe, dtype, at.lanes, x[0])

    def stored(at: OpBuilder, x: list[str]) -> str:
        """Through memory on the stack, that keeps what is not written over."""
        room = at.w.reserve(types.memory_type(dtype, at.lanes))
        types.store(at.w, types.literal(1, dtype, at.lanes), room, dtype, at.lanes)
        types.store(at.w, x[2], room, dtype, at.lanes, x[0])
        return types.load(at.w, room, dtype, at.lanes)

    def loaded(at: OpBuilder, x: list[str]) -> str:
        room = at.w.reserve(types.memory_type(dtype, at.lanes))
        types.store(at.w, x[2], room, dtype, at.lanes)
        return types.load(at.w, room, dtype, at.lanes, x[0])

    functions = [(f, dtype) for f in (gathered, stored, loaded)]
    found = Functions(dtype, [bool_, int64, dtype], functions, lanes)(mask, offsets, base)
    zero, one = np.zeros_like(base), np.ones_like(base)
    expected = [np.where(mask, base[offsets], zero), np.where(mask, base, one),
                np.where(mask, base, zero)]  # fmt: skip
    for y, r in zip(found, expected, strict=True):
        assert_same_bits(y, r, "masked")
