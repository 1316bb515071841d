"""What is written in many lanes does what it does in one, to the bit."""

from __future__ import annotations

import pytest

from retrograd.codegen import types
from retrograd.codegen.emit.elementwise import ELEMENTWISE as EMIT
from retrograd.codegen.op_builder import OpBuilder
from retrograd.ir import DType, bool_
from retrograd.ops.elementwise import ELEMENTWISE
from tests.codegen.emit.same_bits import REALS, SIZE, assert_same_bits
from tests.codegen.math.lanes import Functions, Write
from tests.runtime.agreement import sample


def _op(name: str) -> Write:
    op = ELEMENTWISE[name]

    def write(at: OpBuilder, x: list[str]) -> str:
        y = EMIT[name](at, *([x[3], *x[:2]] if name == "select" else x[: op.arity]))
        return types.rounded(at.w, y, op.result or at.dtype, at.lanes)

    return write


@pytest.mark.slow
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.sample(1)
def test_elementwise(dtype: DType) -> None:
    """Every op of the table, on special and on moderate values."""
    # What is not in the emitter's table is a call of the reference, see
    # `passes/lowering/legalize.py`.
    ops = [op for op in ELEMENTWISE.values() if dtype.kind in op.kinds and op.name in EMIT]
    functions = [(_op(op.name), op.result or dtype) for op in ops]
    inputs = (dtype, dtype, dtype, bool_)
    single = Functions(dtype, inputs, functions)
    wide = {lanes: Functions(dtype, inputs, functions, lanes) for lanes in (4, 16)}
    for special in (True, False):
        arrays = [sample((SIZE,), dtype, seed, special) for seed in range(3)]
        arrays.append(sample((SIZE,), bool_))
        expected = single(*arrays)
        for lanes, function in wide.items():
            for op, y, r in zip(ops, function(*arrays), expected, strict=True):
                assert_same_bits(y, r, f"{op.name}, {lanes} lanes")
