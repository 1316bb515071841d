"""The instructions of the twin in C are those of the definition in Python, word by word."""

import ctypes

import numpy as np
import pytest

import retrograd as rg
from retrograd.scalar import compiled_program, instructions, trace_rows
from retrograd.scalar.machine.vector_machine import kinds
from retrograd.scalar.trace_rows import Columns
from tests.scalar.programs import generators, on_values, random_program

pytestmark = pytest.mark.skipif(
    instructions._instructions is None, reason="the accelerators were not built"
)


@pytest.fixture(autouse=True)
def compared(monkeypatch):
    """Whatever is laid out here is laid out both ways."""
    seen = []

    def both(columns, events, wanted):
        made = [f(columns, events, wanted) for f in (instructions.by_c, instructions.by_python)]
        assert made[0].slots == made[1].slots
        np.testing.assert_array_equal(made[0].given, made[1].given)
        np.testing.assert_array_equal(made[0].slot, made[1].slot)
        assert read(made[0].table) == read(made[1].table)
        seen.append(len(columns.code))
        return made[0]

    monkeypatch.setattr(compiled_program, "laid_out", both)
    yield
    assert seen


def read(table):
    """Instructions with what is in their lists."""
    names = {number: name for name, number in kinds().items()}
    found = []
    for kind, n, out, a, b, init, size, more in table.tolist():
        name = names[kind]
        each = size if name in ("dot", "dot.back") else 1
        lists = [listed(a, n * each), listed(b, n * each), listed(init, n)]
        found.append((name, n, out, *lists, size, more))
    return found


def listed(word, n):
    if abs(word) < 1 << 32:
        return word
    return list((ctypes.c_int32 * n).from_address(word))


@pytest.mark.parametrize("rng", generators(40), ids=str)
@pytest.mark.sample(10)
def test_random_programs(Value, rng):
    lines = random_program(rng, lines=30, leaves=4)
    leaves = [Value(x) for x in lines.leaves]
    ends = rng.integers(4, 34, 3).tolist()

    @rg.jit
    def f(scale):
        values = list(leaves)
        for k, (name, *operands) in enumerate(lines.lines):
            operands = [values[x] if isinstance(x, int) else x for x in operands]
            values.append(on_values(name, operands))
            if k + 4 in ends:
                values[-1].backward()
                leaves[k % 4].data -= 1e-3 * scale * leaves[k % 4].grad
        total = sum(values[4:]) + sum(a * b for a, b in zip(values, values[3:], strict=False))
        total.backward()
        for x in leaves:
            x.data = x.data - 1e-6 * x.grad
            x.grad = 0.0
        return total, sum(x.data for x in leaves), max(values[5].data, scale)

    f(2.0)


def test_a_perceptron_with_moments(Value):
    rng = np.random.default_rng(3)
    w = [[Value(x) for x in r] for r in rng.normal(0, 1, (9, 11)).tolist()]
    m = [[Value(0.0) for _ in r] for r in w]

    @rg.jit
    def f(rate):
        h = [sum(a * b for a, b in zip(r, w[0], strict=True)).tanh() for r in w]
        y = sum(a * b for a, b in zip(h, w[1], strict=False)) ** 2
        y.backward()
        for row, means in zip(w, m, strict=True):
            for p, mean in zip(row, means, strict=True):
                mean.data = 0.9 * mean.data + 0.1 * p.grad**2
                p.data -= rate * p.grad / (mean.data**0.5 + 1e-8)
                p.grad = 0.0
        return y.data

    assert f(0.01) > f(0.01)


def test_what_a_way_back_comes_to(monkeypatch):
    rng = np.random.default_rng(0)
    code = np.array([1, 1, 0, *rng.choice([4, 6, 9, 10, 103, 102], 60)], np.uint8)
    below = np.maximum(np.arange(63), 1)
    a, b = ((rng.random(63) * below).astype(np.int32) for _ in range(2))
    columns = Columns(code, a, b, np.zeros(63))
    by_c = [trace_rows.reached(columns, k).tolist() for k in range(63)]
    monkeypatch.setattr(trace_rows, "_instructions", None)
    assert [trace_rows.reached(columns, k).tolist() for k in range(63)] == by_c
    with pytest.raises(ValueError, match="do not come before"):
        instructions.by_c(Columns(code[:4], a[:4] + 9, b[:4], np.zeros(4)), [], [3])
    compiled_program.laid_out(Columns(code[:3], a[:3] * 0, b[:3] * 0, np.zeros(3)), [], [])
