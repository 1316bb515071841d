"""Ways back through what a compiled function returned."""

import pytest

import retrograd as rg
from tests.scalar.programs import generators, on_values, random_program
from tests.scalar.with_jit import both


def _run(program, leaves):
    values = list(leaves)
    for name, *operands in program.lines:
        values.append(on_values(name, [values[x] if isinstance(x, int) else x for x in operands]))
    return values


def test_a_way_back_goes_on_through_results(Value):
    """From outside of the function to leaves that were passed, closed over, and set inside."""

    def make(cls, jit):
        a, b = cls(0.7), cls(-1.3)

        @jit
        def f(x, c, n):
            before = (x * a + b**2).tanh() * c + x**n
            inner = before * 2
            inner.backward()
            a.data = a.data - 0.1 * a.grad
            return [before, x.relu() * b + a, a.data * 2]

        def step(k):
            a.grad = b.grad = 0.0
            x = cls(0.3 + 0.2 * k)
            r, s, number = f(x, 0.5 + k, 3)
            y = (r * s + r) * b
            y.backward()
            y.backward()
            found = [y.data, r.grad, x.grad, a.grad, b.grad, number]
            y.zero_grad()
            return [*found, x.grad, a.grad]

        return step, [a, b]

    both(Value, make)


def test_a_way_back_counts_with_the_numbers_of_its_call(Value):
    w = Value(2.0)
    f = rg.jit(lambda x: w * w * x)
    first, second = f(3.0), None
    w.data = 10.0
    second = f(1.0)
    first.backward()
    assert (first.data, w.grad) == (12.0, 12.0)
    second.backward()
    assert (second.data, w.grad) == (100.0, 32.0)
    assert first.grad == 1.0
    first.grad = 0.5
    first._backward()
    assert w.grad == 38.0
    assert (rg.jit(lambda x: x + w)(1.0) - 1.0).data == 10.0


@pytest.mark.parametrize("rng", generators(20), ids=str)
def test_random_programs_whose_end_is_outside(Value, rng):
    program = random_program(rng, lines=20, leaves=3)

    def make(cls, jit):
        leaves = [cls(x) for x in program.leaves]

        @jit
        def f():
            return _run(program, leaves)[3:]

        def step(k):
            end = sum(f()[-4:])
            end.backward()
            return end

        return step, leaves

    both(Value, make, calls=2)
