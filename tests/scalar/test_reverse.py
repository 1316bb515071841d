"""`backward()` again, from elsewhere, between other things; and what it leaves in memory."""

import sys
import threading

import numpy as np
import pytest


def test_twice_adds_to_leaves_and_not_to_what_is_computed(Value):
    x = Value(3.0)
    h = x * 2
    y = h * h
    y.backward()
    assert (x.grad, h.grad, y.grad) == (24.0, 12.0, 1.0)
    y.backward()
    assert (x.grad, h.grad, y.grad) == (48.0, 12.0, 1.0)


def test_from_two_ends(Value):
    x = Value(3.0)
    h = x * x
    y, z = h * 2, h + x
    y.backward()
    assert (h.grad, z.grad, x.grad) == (2.0, 0.0, 12.0)
    z.backward()
    assert (h.grad, y.grad, z.grad, x.grad) == (1.0, 1.0, 1.0, 19.0)


def test_what_an_end_does_not_depend_on_keeps_its_gradient(Value):
    x, w = Value(2.0), Value(5.0)
    y, z = x * 3, w * 4
    (y + z).backward()
    y.backward()
    assert (z.grad, w.grad, x.grad) == (1.0, 4.0, 6.0)


def test_between_operations(Value):
    x = Value(2.0)
    y = x * x
    y.backward()
    z = y * x + y
    z.backward()
    assert (z.data, y.grad, x.grad) == (12.0, 3.0, 4.0 + 3 * 4.0 + 4.0)
    w = z - y
    w.backward()
    assert (w.data, y.grad, z.grad) == (8.0, 2.0, 1.0)


def test_zero_grad_of_an_end(Value):
    x = Value(2.0)
    h = x * x
    h.backward()
    y = h.tanh() * x
    y.backward()
    y.zero_grad()
    assert (x.grad, h.grad, y.grad) == (0.0, 0.0, 0.0)
    y.backward()
    first = x.grad
    x.zero_grad()
    assert (x.grad, h.grad != 0) == (0.0, True)
    y.backward()
    assert x.grad == first


def test_a_leaf_that_is_set_counts_with_the_number_it_was_used_with(Value):
    x = Value(3.0)
    y = x * x
    x.data = 10.0
    z = x * x
    assert (y.data, z.data) == (9.0, 100.0)
    y.backward()
    assert x.grad == 6.0
    x.data = -1.0
    y.backward()
    assert x.grad == 12.0
    (y + z).backward()
    assert x.grad == 12.0 + 6.0 + 20.0


def test_a_leaf_by_itself(Value):
    x = Value(3.0)
    x.backward()
    x.backward()
    assert x.grad == 2.0
    x.zero_grad()
    assert x.grad == 0.0


def test_gradients_can_be_set(Value):
    x = Value(3.0)
    y = x * 2
    x.grad = 5
    y.grad = 7
    assert (x.grad, y.grad) == (5.0, 7.0)
    y.backward()
    assert (x.grad, y.grad) == (7.0, 1.0)


def test_training_in_the_manner_of_micrograd(Value):
    w = [Value(0.5), Value(-0.25)]
    data = [(0.1, 0.3), (0.7, -0.2), (-0.4, 0.9)]
    losses = []
    for _ in range(60):
        loss = sum(((w[0] * x + w[1] - (3 * x - 1)) ** 2 for x, _ in data), Value(0.0))
        for p in w:
            p.grad = 0
        loss.backward()
        for p in w:
            p.data -= 0.1 * p.grad
        losses.append(loss.data)
    assert losses[-1] < 1e-3 * losses[0]
    assert np.all(np.diff(losses) < 0)


# -- large graphs --------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_chain_of_a_million(Value):
    x = Value(0.5)
    y = x
    for _ in range(500_000):
        y = y * 1.000001
        y = y + 1e-9
    y.backward()
    assert x.grad == pytest.approx(1.000001**500_000, rel=1e-9)
    inner = y
    for _ in range(10):
        inner = inner._prev[0]
    assert inner.grad == pytest.approx(1.000001**5, rel=1e-9)


@pytest.mark.slow
def test_a_random_graph_of_a_million_that_is_held(Value):
    rng = np.random.default_rng(0)
    n = 1_000_000
    left = (rng.random(n) * np.arange(1, n + 1)).astype(np.int64).tolist()
    values = [Value(1.0)]
    slope = [1.0]
    for k, i in enumerate(left):
        values.append(values[i] * 0.5 if k % 2 else values[i] + values[k])
        slope.append(slope[i] * 0.5 if k % 2 else slope[i] + slope[k])
    values[-1].backward()
    assert values[-1].data == pytest.approx(slope[-1], rel=1e-9)
    assert values[0].grad == pytest.approx(slope[-1], rel=1e-9)


# -- threads -------------------------------------------------------------------------------------
def test_threads_that_share_leaves_and_results(Value):
    shared = [Value(0.1 * k) for k in range(1, 6)]
    common = shared[0] * shared[1] + 1
    failures = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(30):
                x = Value(float(rng.normal()))
                y, expected, slope = x * common, x.data * common.data, common.data
                for k in rng.integers(0, 5, 40).tolist():
                    y = y * shared[k] + x
                    expected = expected * shared[k].data + x.data
                    slope = slope * shared[k].data + 1
                y.backward()
                assert y.data == pytest.approx(expected, rel=1e-12)
                assert x.grad == pytest.approx(slope, rel=1e-12)
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures, failures[0]
