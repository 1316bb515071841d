"""The machine against the table of rules it is made of, and its two forms against each other."""

import math
import struct

import numpy as np
import pytest

from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.scalar.machine import (
    BY_NAME,
    CONSTANT,
    OPCODES,
    UNWRITTEN,
    TapeMemory,
    machine,
    portable,
)
from retrograd.scalar.machine.selection import is_native

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
ORDINARY = np.random.default_rng(0).normal(0, 3, 30).tolist()


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


def bits(numbers):
    return [x if x is None else "nan" if math.isnan(x) else struct.pack("<d", x) for x in numbers]


def steps_apart(a, b):
    """Units in the last place between two numbers."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(math.ulp(a), math.ulp(b))


def by_the_rules(o, a, b, g):
    """The same, by running the op's rules as a graph on the reference backend; on arrays, since
    NumPy takes a root where a single exponent is 0.5."""
    names = [input_node(TensorType(float64, (1,)), n) for n in ("a", "b")[: o.arity]]
    cotangent = input_node(TensorType(float64, (1,)), "g")
    y = o.prim(*names)
    found = [d(cotangent, y, *names) if d else None for d in o.derivatives]
    ends = [y, *[f for f in found if f is not None]]
    program = ReferenceProgram(Graph([*names, cotangent], ends))
    numbers = [float(x[0]) for x in program([np.asarray([x]) for x in (*[a, b][: o.arity], g)])]
    rest = iter(numbers[1:])
    return [numbers[0], *[None if f is None else next(rest) for f in found]]


@pytest.mark.parametrize("o", OPCODES, ids=lambda o: o.name)
@pytest.mark.sample(6)
def test_a_row_does_what_the_table_says(o):
    for a in SPECIAL + ORDINARY:
        for b in [0.5, *SPECIAL] if o.arity == 2 else [0.5]:
            expected = by_the_rules(o, a, b, 1.25)
            found = results(machine(), o.code, a, b, 1.25)
            for x, y in zip(found, expected, strict=False):
                if x is None or y is None:
                    assert x is y, (o.name, a, b)
                elif not (math.isfinite(y) and abs(y) < 2.3e-308):  # NumPy's subnormals may be 0
                    limit = 4 if o.name in ("pow", "powc", "tanh", "sigmoid") else 2
                    assert steps_apart(x, y) <= limit, (o.name, a, b, found, expected)


def test_a_square_adds_both_of_its_contributions():
    mul = BY_NAME["mul"].code
    block = block_of([(mul, 0, 0)], [3.0])
    machine()(block, 0, 2, 0)
    block.begin(1)
    block.stamps[1], block.grads[1], block.coming = 1, 1.0, 1
    machine()(block, 1, 0, 1)
    assert block.grads[0] == 6.0
    assert list(block.reached[: block.found]) == [0]


@pytest.mark.skipif(not is_native(), reason="LLVM cannot be had here")
@pytest.mark.parametrize("o", OPCODES, ids=lambda o: o.name)
@pytest.mark.sample(6)
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


def test_rows_are_computed_up_to_the_first_that_is_not_written():
    block = block_of([(BY_NAME["neg"].code, 0, 0), (UNWRITTEN, 0, 0)], [1.0])
    for run in (machine(), portable.run):
        assert run(block, 0, 3, 0) == 2


def test_only_what_a_row_was_computed_from_is_visited():
    add = BY_NAME["add"].code
    block = block_of([(add, 0, 1), (add, 1, 2), (add, 3, 0)], [1.0, 2.0, 3.0])
    machine()(block, 0, 6, 0)
    block.begin(1)
    block.stamps[5], block.grads[5], block.coming = 1, 1.0, 1
    machine()(block, 5, 0, 1)
    assert list(block.stamps[:6]) == [1, 1, 0, 1, 0, 1]
    assert list(block.grads[:6]) == [2.0, 1.0, 0.0, 1.0, 0.0, 1.0]
