"""`Value` in C beside the one in Python: the same bits, the same history, the same programs."""

import itertools

import pytest

import retrograd as rg
from retrograd.scalar import RECORDERS
from tests.scalar.programs import generators, on_values, random_program

pytestmark = pytest.mark.skipif("compiled" not in RECORDERS, reason="the extensions were not built")


def numbers(cls, lines, twice):
    values = lines.run(cls, on_values)
    values[-1].backward()
    if twice:
        values[len(values) // 2].backward()
        (values[-1] * 2 + values[-2]).backward()
    return [(v.data, v.grad) for v in values]


@pytest.mark.parametrize("rng", generators(20), ids=str)
@pytest.mark.sample(5)
def test_random_programs_have_the_same_bits(rng):
    lines = random_program(rng, lines=40, leaves=4)
    for twice in (False, True):
        python, compiled = (numbers(cls, lines, twice) for cls in RECORDERS.values())
        assert [tuple(map(repr, x)) for x in python] == [tuple(map(repr, x)) for x in compiled]


def test_the_history_of_a_result_is_the_same():
    def shape(v):
        return v._op, round(v.data, 12), [shape(p) for p in v._prev]

    def made(cls):
        a, b = cls(2.0, label="a"), cls(-3.0)
        return shape(((a * b + 10.0).relu() / a) ** 2)

    python, compiled = map(made, RECORDERS.values())
    assert python == compiled


def test_compiled_functions_give_the_same_bits():
    found = []
    for cls in RECORDERS.values():
        w = [cls(0.1 * k - 0.3) for k in range(8)]

        @rg.jit
        def step(x, w=w):
            y = sum((p * x).tanh() * q for p, q in itertools.pairwise(w))
            y.backward()
            for p in w:
                p.data -= 0.1 * p.grad
                p.grad = 0.0
            return y.data

        found.append([repr(step(0.5 + k)) for k in range(3)] + [repr(p.data) for p in w])
    assert found[0] == found[1]
