"""Blocks of rows, and what a machine makes of them."""

import math

from retrograd.scalar.machine import (
    CONSTANT,
    TapeMemory,
)

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -3.0,
    1e-310,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
]


def block_of(rows, values):
    """A block of constants and then operations on them."""
    block = TapeMemory()
    n = len(values) + len(rows)
    block.reserve(n)
    for i, x in enumerate(values):
        block.code[i], block.values[i] = CONSTANT, x
    for i, (code, a, b) in enumerate(rows, len(values)):
        block.code[i], block.a[i], block.b[i] = code, a, b
    return block


def results(run, code, a, b, g):
    """Value and both contributions of one row."""
    block = block_of([(code, 0, 1)], [a, b])
    assert run(block, 0, 3, 0) == 3
    block.begin(7)
    block.stamps[2], block.grads[2], block.coming = 7, g, 1
    assert run(block, 2, 0, 1) == 0
    found = [block.grads[i] if block.stamps[i] == 7 else None for i in (0, 1)]
    return [block.values[2], *found]
