"""The machine against the table of rules it is made of, and its two forms against each other."""

import math

import numpy as np
import pytest

from retrograd.ir import Graph, TensorType, float64
from retrograd.ops.leaf import input_node
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.scalar.machine import (
    BY_NAME,
    OPCODES,
    machine,
)
from tests.scalar.machine.blocks import SPECIAL, block_of, results

ORDINARY = np.random.default_rng(0).normal(0, 3, 30).tolist()


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
@pytest.mark.sample(4)
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


def test_only_what_a_row_was_computed_from_is_visited():
    add = BY_NAME["add"].code
    block = block_of([(add, 0, 1), (add, 1, 2), (add, 3, 0)], [1.0, 2.0, 3.0])
    machine()(block, 0, 6, 0)
    block.begin(1)
    block.stamps[5], block.grads[5], block.coming = 1, 1.0, 1
    machine()(block, 5, 0, 1)
    assert list(block.stamps[:6]) == [1, 1, 0, 1, 0, 1]
    assert list(block.grads[:6]) == [2.0, 1.0, 0.0, 1.0, 0.0, 1.0]
