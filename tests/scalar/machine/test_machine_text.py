"""The machine as LLVM's text and the one in Python: the same bits."""

import math
import struct

import numpy as np
import pytest

from retrograd.scalar.machine import (
    OPCODES,
    machine,
    portable,
)
from retrograd.scalar.machine.selection import is_native
from tests.scalar.machine.blocks import SPECIAL, block_of, results

ORDINARY = np.random.default_rng(0).normal(0, 3, 30).tolist()


def bits(numbers):
    return [x if x is None else "nan" if math.isnan(x) else struct.pack("<d", x) for x in numbers]


@pytest.mark.skipif(not is_native(), reason="LLVM cannot be had here")
@pytest.mark.parametrize("o", OPCODES, ids=lambda o: o.name)
@pytest.mark.sample(4)
def test_native_code_and_python_agree_to_the_bit(o):
    for a in SPECIAL + ORDINARY:
        for b in SPECIAL + ORDINARY[:5] if o.arity == 2 else [0.5]:
            for g in (1.0, 0.0, -2.5, math.inf):
                native, python = (
                    results(run, o.code, a, b, g) for run in (machine(), portable.run)
                )
                assert bits(native) == bits(python), (o.name, a, b, g, native, python)


def test_native_code_and_python_agree_on_random_graphs():
    rng = np.random.default_rng(1)
    codes = [o.code for o in OPCODES]
    rows = [(int(rng.choice(codes)), *map(int, rng.integers(0, 5 + k, 2))) for k in range(200)]
    values = rng.normal(0, 1, 5).tolist()
    blocks = [block_of(rows, values) for _ in range(2)]
    found = []
    for run, block in zip((machine(), portable.run), blocks, strict=True):
        run(block, 0, 205, 0)
        for epoch, top in ((1, 204), (2, 150)):
            block.begin(epoch)
            block.stamps[top], block.grads[top], block.coming = epoch, 1.0, 1
            run(block, top, 0, 1)
        found.append((bits(block.values), list(block.reached[: block.found]), bits(block.grads)))
    assert found[0] == found[1]
