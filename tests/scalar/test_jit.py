"""Functions of Values under `jit`: the same numbers as without, call after call."""

import builtins
import math
import random
import threading

import numpy as np
import pytest

import retrograd as rg
from retrograd.micrograd import MLP
from tests.scalar.programs import generators, on_values, random_program
from tests.scalar.with_jit import both


def test_a_training_step_over_closed_over_leaves(Value):
    def make(cls, jit):
        w, b = cls(0.5), cls(0.1)

        @jit
        def step(lr):
            loss = sum((w * x + b - (3 * x - 1)) ** 2 for x in (0.1, 0.7, -0.4, 0.9))
            w.grad = b.grad = 0
            loss.backward()
            w.data -= lr * w.grad
            b.data -= lr * b.grad
            return loss

        return lambda k: step(0.1 / (k + 1)), [w, b]

    losses = both(Value, make)[:, 0]
    assert losses[-1] < losses[0]


def test_leaves_as_arguments(Value):
    def make(cls, jit):
        p = [cls(0.3), cls(-0.7)]

        @jit
        def step(p, xs):
            loss = sum((p[0] * x).tanh() * p[1] for x in xs["x"])
            loss.backward()
            for a in p:
                a.data = a.data - 0.1 * a.grad
            return loss.data

        return lambda k: step(p, {"x": [cls(0.1 * k), cls(0.5), 0.25 * k]}), p

    both(Value, make)


def test_arguments_that_are_new_in_each_call(Value):
    f = rg.jit(lambda x, y: (x * y + x).data)
    assert [f(Value(k), Value(2.0)) for k in (1.0, 2.0)] == [3.0, 6.0]
    assert f.cache_stats()["compilations"] == 1
    x = Value(3.0)
    assert f(x, x) == 12.0  # the same leaf twice is another structure
    assert f.cache_stats()["compilations"] == 2


def test_gradients_add_up_until_they_are_set(Value):
    def make(cls, jit):
        w, v = cls(2.0), cls(5.0)

        @jit
        def step(x):
            y = w * w * x
            y.backward()
            (y + v * w).backward()
            return y.grad, w.grad

        return lambda k: step(1.0 + k), [w, v]

    both(Value, make)


def test_several_steps_in_one_call(Value):
    def make(cls, jit):
        w = cls(2.0)

        @jit
        def steps(lr):
            for _ in range(5):
                loss = (w - 1.0) ** 2 + (w * 0.5).sin()
                w.grad = 0.0
                loss.backward()
                w.data -= lr * w.grad
            return loss.data, w.data

        return lambda k: steps(0.1), [w]

    both(Value, make)


@pytest.mark.parametrize("rng", generators(40), ids=str)
@pytest.mark.sample(10)
def test_random_programs(Value, rng):
    program = random_program(rng, lines=25, leaves=4)
    ends = sorted({int(i) for i in rng.integers(4, 29, 2)})
    inner = int(rng.integers(4, ends[-1] + 1))

    def make(cls, jit):
        leaves = [cls(x) for x in program.leaves]

        @jit
        def f(scale):
            values = _run(program, leaves)
            for i in ends:
                values[i].backward()
            gradient = values[inner].grad
            for x in leaves:
                x.data = x.data + 1e-3 * scale * x.data
            return values[ends[0]] * 1.0, values[-1].data, gradient

        return lambda k: f(float(k)), leaves

    both(Value, make, calls=3)


def _run(program, leaves):
    values = list(leaves)
    for name, *operands in program.lines:
        values.append(on_values(name, [values[x] if isinstance(x, int) else x for x in operands]))
    return values


def test_sums_and_products_in_all_shapes(Value):
    rng = np.random.default_rng(0)

    def make(cls, jit):
        rows = [[cls(x) for x in row] for row in rng.normal(0, 1, (5, 19)).tolist()]
        rng.bit_generator.state = np.random.default_rng(0).bit_generator.state
        flat = [x for row in rows for x in row]

        @jit
        def f(c):
            h = [sum(a * b for a, b in zip(r, rows[0], strict=True)) for r in rows]
            long = sum((a * b for a, b in zip(flat[:40], flat[7:47], strict=True)), flat[3])
            plain = sum(flat[::3]) + c
            squares = sum(x * x for x in flat[:9]) + sum(x * x for x in flat[:9])
            shared = flat[0] * flat[1]
            tree = ((shared + flat[2]) + (flat[3] * c + shared)) + (flat[4] + flat[5] * flat[5])
            two = flat[6] * flat[7] + flat[8]
            y = sum(h) * long.tanh() + plain * squares - tree / (two + 100.0)
            y.backward()
            return y, shared.grad, two.data

        return lambda k: f(0.5 * k), flat

    both(Value, make, calls=2)


def test_softmax_with_the_greatest_number(Value):
    """`max` of numbers that jit does not know."""

    def make(cls, jit):
        x = [cls(0.3), cls(-1.0), cls(2.0)]

        @jit
        def f(scale):
            z = [scale * v for v in x]
            top, low = max(v.data for v in z), min(z[0].data, z[1].data)
            e = [(v - top).exp() for v in z]
            loss = -(e[0] / sum(e)).log()
            loss.backward()
            return loss, top, low, max(3, 4)

        return lambda k: f(k - 1.5), x

    both(Value, make)
    assert builtins.max is max
    assert max.__module__ == "builtins"
    assert type(max).__name__ == "builtin_function_or_method"


def test_comparisons_can_be_counted(Value):
    def make(cls, jit):
        w = cls(0.5)
        data = [(0.2, 1), (-0.7, -1), (0.9, -1)]

        @jit
        def accuracy(shift):
            scores = [w * x + shift for x, _ in data]
            right = [(y > 0) == (s.data > 0) for s, (_, y) in zip(scores, data, strict=True)]
            return sum(right) / len(right)

        return lambda k: accuracy(0.3 * k - 0.2), [w]

    both(Value, make)


def test_a_number_cannot_decide(Value):
    w = Value(1.0)

    @rg.jit
    def f():
        return w * 2 if w.data > 0 else w

    with pytest.raises(rg.TraceError, match="cannot decide"):
        f()
    with pytest.raises(rg.TraceError, match="functions other than"):
        rg.jit(lambda: math.exp(w.data))()
    assert (w.data, w.grad) == (1.0, 0.0)
    assert (w * 3).data == 3.0


def test_integers_are_part_of_the_structure(Value):
    table = [Value(1.0), Value(2.0), Value(3.0)]
    f = rg.jit(lambda tokens, x: (sum(table[t] for t in tokens) * x).data)
    assert [f([0, 1], 2.0), f([2, 2, 1], 1.0), f([0, 1], 3.0)] == [6.0, 8.0, 9.0]
    assert f.cache_stats() == {"calls": 3, "compilations": 2, "signatures": 2}


def test_jit_in_jit_and_constants_in_results(Value):
    w = Value(2.0)
    inner = rg.jit(lambda x: w * x)
    outer = rg.jit(lambda x: {"y": (inner(x) + 1).data, "n": 3, "w": w})
    found = outer(4.0)
    assert (found["y"], found["n"]) == (9.0, 3)
    assert found["w"] is w


def test_an_error_inside_leaves_everything_as_it_was(Value):
    w = Value(2.0)

    def f():
        w.data = w.data + 1
        raise KeyError("x")

    with pytest.raises(KeyError):
        rg.jit(f)()
    assert w.data == 2.0
    assert (w * 2).data == 4.0


def test_from_several_threads(Value):
    w = Value(1.0)
    f = rg.jit(lambda x: (w * x).data)
    failures = []

    def work(k):
        for i in range(50):
            y = Value(float(i)) * w + 1.0  # recorded beside
            if f(float(k)) != k or y.data != i + 1.0:
                failures.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert f.cache_stats()["compilations"] == 1


def test_arrays_are_not_for_these(Value):
    w = Value(2.0)
    with pytest.raises(rg.DTypeError):
        rg.jit(lambda x, w: w * 2)(np.ones(3), w)


def test_micrograd_demo(Value):
    """Two moons in small, the loss of the demo, its step and its accuracy."""

    def make(cls, jit):
        random.seed(1)
        model = MLP(2, [6, 6, 1])
        rng = random.Random(0)
        points = [[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(10)]
        labels = [1 if x * y > 0 else -1 for x, y in points]

        @jit
        def step(rate):
            scores = [model(p) for p in points]
            losses = [(1 + -y * s).relu() for y, s in zip(labels, scores, strict=True)]
            loss = sum(losses) * (1.0 / len(losses))
            loss = loss + 1e-4 * sum(p * p for p in model.parameters())
            right = [(y > 0) == (s.data > 0) for y, s in zip(labels, scores, strict=True)]
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= rate * p.grad
            return loss, sum(right) / len(right)

        return lambda k: step(1.0 - 0.01 * k), model.parameters()

    both(rg.Value, make, calls=6)


def test_what_answers_any_name_is_not_looked_into(Value):
    """Objects that make attributes of any name are closed over like others."""

    class Anything:
        __slots__ = ()

        def __getattr__(self, name):
            return self

    held = Anything()
    assert rg.jit(lambda x: x if held is None else 2 * x)(3.0).item() == 6
