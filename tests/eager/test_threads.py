"""Threads: each has its own modes; what they share is computed and compiled safely."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.modes import current_backend, grad_enabled
from tests.functions.programs import random_program

WORKERS = 6


def together(f: Callable[[int], Any], count: int = WORKERS) -> list[Any]:
    """`f(0), f(1), ...`, each in a thread of its own, started at the same moment."""
    barrier = threading.Barrier(count)

    def run(k: int) -> Any:
        barrier.wait()
        return f(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_eager_programs_and_their_gradients():
    def gradients(seed: int) -> list[Any]:
        p = random_program(seed)
        leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
        loss = p.loss(*leaves)
        if loss.requires_grad:
            loss.backward()
        return [loss.tolist(), *[None if x.grad is None else x.grad.tolist() for x in leaves]]

    alone = [gradients(k) for k in range(WORKERS)]
    assert together(gradients) == alone


def test_one_jit_function_compiles_once_for_each_signature():
    @rg.jit
    def f(x):
        return rg.tanh(x).sum()

    results = together(lambda k: [f(rg.ones(1 + i % 3)).item() for i in range(30)])
    assert all(r == results[0] for r in results)
    assert f.cache_stats()["compilations"] == 3


def test_threads_that_compile_functions_calling_each_other():
    f = rg.jit(lambda x, n: x if n == 0 else g(x, n - 1) + 1, static_argnames=("n",))  # type: ignore[has-type]
    g = rg.jit(lambda x, n: x if n == 0 else f(x, n - 1) * 2, static_argnames=("n",))
    results = together(lambda k: (f if k % 2 else g)(rg.ones(2), 4).tolist())
    assert results == [[7.0, 7.0] if k % 2 else [10.0, 10.0] for k in range(WORKERS)]


def test_modes_do_not_leak_into_other_threads():
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with rg.no_grad(), rg.backend("reference"):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    assert grad_enabled()
    assert current_backend() == "llvm"
    x = rg.tensor(2.0, requires_grad=True)
    (x * x).backward()
    leave.set()
    thread.join()
    assert x.grad is not None
    assert x.grad.item() == 4


def test_a_context_may_be_entered_again_and_by_several_threads():
    off = rg.no_grad()
    with off:
        with off:
            assert not grad_enabled()
        assert not grad_enabled()
    assert grad_enabled()

    @rg.no_grad
    def f(k: int) -> bool:
        with off:
            return grad_enabled()

    assert together(f) == [False] * WORKERS
    assert grad_enabled()


def test_modes_are_restored_after_an_error():
    with pytest.raises(rg.ShapeError), rg.no_grad(), rg.backend("reference"):
        rg.ones(2) + rg.ones(3)
    assert grad_enabled()
    assert current_backend() == "llvm"


def test_one_tensor_looked_at_by_many():
    x = rg.tensor(np.arange(1000.0))
    y = rg.sin(x) * 2
    for values in together(lambda k: y.numpy()):
        np.testing.assert_array_equal(values, y.numpy())


def test_tapes_in_threads():
    def work(k: int) -> list[Any]:
        tape = rg.Tape()
        x = tape.leaf(float(k))
        y = x * x
        for _ in range(20):
            y = y + x
        return [len(tape), tape.backward_dense(y)[0].tolist()]

    assert together(work) == [[22, 2.0 * k + 20] for k in range(WORKERS)]


def test_a_generator_in_each_thread():
    alone = [rg.random.Generator(k).normal((4,)).tolist() for k in range(WORKERS)]
    assert together(lambda k: rg.random.Generator(k).normal((4,)).tolist()) == alone
