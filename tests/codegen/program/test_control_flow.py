"""Loops and choices as native code: long, interrupted, on threads, with memory given away."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.schedule.planning.plan import KernelPlan

RNG = np.random.default_rng(3)


def test_a_hundred_thousand_steps():
    """As long to compile as ten, and exact."""
    f = rg.jit(
        lambda x, n: rg.scan(lambda c, _: (c * 3 + 1, None), x, length=n)[0], static_argnames="n"
    )
    expected = 1
    for _ in range(100_000):
        expected = (expected * 3 + 1) % 2**64
    found = f(rg.tensor(1, dtype=rg.uint64), 100_000).item()
    assert found == expected

    def plan(n):
        return KernelPlan(
            rg.trace(lambda x: rg.scan(lambda c, _: (c + 1, None), x, length=n)[0], rg.spec(()))
        )

    assert len(plan(10).every) == len(plan(100_000).every)


def big(h, w, xs):
    """A loop whose kernels are large enough for threads."""

    def step(c, x):
        y = rg.tanh(w @ c + x)
        return y, (rg.exp(-y * y).sum(axis=0), y[0])

    return rg.scan(step, h, xs)


@pytest.mark.slow
def test_threads_and_tiers_change_no_bit():
    args = [RNG.normal(size=s).astype(np.float32) for s in ((300, 200), (300, 300), (4, 300, 200))]

    def loss(h, w, xs):
        last, (a, b) = big(h, w, xs)
        return last.sum() + (a * a).sum() + b.sum()

    graph = rg.trace(rg.value_and_grad(loss, argnums=(0, 1)), *map(rg.tensor, args))
    assert any(group.is_region for group in KernelPlan(graph.optimize()).tile_groups)
    results = []
    for threads in (1, 2, 3):
        with rg.num_threads(threads):
            results.append(Executable(graph, simplify=True)(args))
            results.append(Executable(graph)(args))
    results.append(OpByOpExecutor(graph)(args))
    for found in results[1:]:
        for a, b in zip(found, results[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_donated_carries():
    """An optimizer's steps in a loop whose state is given away."""

    def train(state, xs):
        def step(s, x):
            g = rg.grad(lambda w: ((w * x).sum() - 1) ** 2)(s["w"])
            m = 0.9 * s["m"] + g
            return {"w": s["w"] - 0.01 * m, "m": m}, (g * g).sum()

        return rg.scan(step, state, xs)

    xs = RNG.normal(size=(20, 50)).astype(np.float32)
    start = {k: RNG.normal(size=50).astype(np.float32) for k in "wm"}
    plain, losses = rg.jit(train)({k: rg.tensor(v) for k, v in start.items()}, xs)
    given = {k: rg.tensor(v) for k, v in start.items()}
    found, others = rg.jit(train, donate=("state",))(given, xs)
    np.testing.assert_array_equal(losses.numpy(), others.numpy())
    for k in "wm":
        np.testing.assert_array_equal(found[k].numpy(), plain[k].numpy())
    with rg.backend("reference"):
        slow, _ = train({k: rg.tensor(v) for k, v in start.items()}, xs)
        np.testing.assert_allclose(slow["w"].numpy(), found["w"].numpy(), 1e-4, 1e-5)


@pytest.fixture
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_without_end_can_be_interrupted(usual_handler, threads):
    f = rg.jit(lambda x: rg.while_loop(lambda y: y > 0, lambda y: y * 1.0, x))
    assert f(rg.tensor(-1.0)).item() == -1

    def later():
        time.sleep(0.3)
        _thread.interrupt_main()

    thread = threading.Thread(target=later)
    with rg.num_threads(threads):
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            f(rg.tensor(1.0)).item()
    thread.join()
    assert f(rg.tensor(-2.0)).item() == -2


@pytest.mark.slow
def test_a_long_loop_on_threads_can_be_interrupted(usual_handler):
    w, h = (rg.tensor(RNG.normal(size=(300, 300)).astype(np.float32)) for _ in range(2))
    f = rg.jit(
        lambda h, w, n: rg.scan(lambda c, _: (rg.tanh(w @ c), None), h, length=n)[0],
        static_argnames="n",
    )

    def later():
        time.sleep(0.5)
        _thread.interrupt_main()

    with rg.num_threads(2):
        before = f(h, w, 3).numpy()
        thread = threading.Thread(target=later)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            f(h, w, 100_000).numpy()
        thread.join()
        np.testing.assert_array_equal(f(h, w, 3).numpy(), before)


def test_a_check_that_fails_in_a_loop_on_threads():
    w = rg.tensor(RNG.normal(size=(300, 300)).astype(np.float32))
    f = rg.jit(
        lambda w, i: rg.scan(lambda c, k: (rg.tanh(w @ c) + w[k], None), w, i)[0],
    )
    with rg.num_threads(2):
        good = f(w, rg.tensor([0, 299])).numpy()
        for bad in ([0, 300], [400, 1]):
            with pytest.raises(IndexError, match=f"the index {max(bad)} on axis 0 of size 300"):
                f(w, rg.tensor(bad)).numpy()
        np.testing.assert_array_equal(f(w, rg.tensor([0, 299])).numpy(), good)
