"""Gradients of leaves that many threads use: nothing is lost, whichever way they come."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import retrograd as rg

THREADS = 4


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(f: Callable[[int], Any], times: int) -> None:
    barrier = threading.Barrier(THREADS)

    def work(k: int) -> None:
        barrier.wait()
        for j in range(times):
            f(THREADS * j + k)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


doubled = rg.jit(lambda w: (w * 2).sum())
sloped = rg.jit(lambda w: rg.grad(lambda x: (x * x).sum())(w).sum())


def long(w: Any, k: int) -> None:
    y = w * 2.0
    for _ in range(600):
        y = y * 1.0
    y.sum().backward()


def twice(w: Any, k: int) -> None:
    y = (w * 1).sum()
    y.backward(retain_graph=True)
    y.backward()


def by_turns(w: Any, k: int) -> None:
    if k % 3:
        (w * 2).sum().backward()
    else:
        (rg.checkpoint(lambda x: x * 2)(w)).sum().backward()


WAYS: dict[str, tuple[Callable[[Any, int], Any], int]] = {
    "sum": (lambda w, k: (w * 2).sum().backward(), 100),
    "seed": (lambda w, k: (w * 2).backward(rg.ones(2)), 100),
    "twice": (twice, 60),
    "jit": (lambda w, k: doubled(w).backward(), 60),
    "jit that differentiates": (lambda w, k: sloped(w).backward(), 20),
    "segments": (long, 6),
    "by turns": (by_turns, 20),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample(3)
def test_nothing_is_lost(way):
    f, times = WAYS[way]
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    together(lambda k: f(w, k), times)
    assert w.grad is not None
    assert w.grad.tolist() == [2 * THREADS * times] * 2


def test_beside_a_tape_that_listens_and_records():
    """It was asked for nodes, which makes it a listener, and was reset, so that it has buffers: who
    makes nodes of all buffers has its lock, and who makes some tells it."""
    tapes = [rg.Tape() for _ in range(3)]
    kept = []
    for tape in tapes:
        tape.leaf([1.0, 2.0])
        tape.graph()
        tape.reset()
        kept.append(tape.leaf([1.0, 2.0]) * 2)
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    together(lambda k: by_turns(w, k), 60)
    assert w.grad is not None
    assert w.grad.tolist() == [2 * THREADS * 60] * 2
    assert [y.tolist() for y in kept] == [[2.0, 4.0]] * 3


def one_inside_of_another() -> None:
    with rg.Tape() as outer:
        y = outer.leaf([1.0, 2.0]) ** 2
        with rg.Tape() as inner:
            z = inner.leaf([3.0, 4.0]) ** 2
            assert inner.graph()().tolist() == z.tolist()
        found = outer.backward_dense(y * 3, np.ones(2, np.float32))
        assert found[0] is not None
        assert found[0].tolist() == [6.0, 12.0]
        outer.graph()


def one_beside_another(tapes: list[rg.Tape]) -> None:
    for tape in tapes:
        tape.reset()
    y, z = [tape.leaf([1.0, 2.0]) ** 2 for tape in tapes]
    tapes[0].graph()
    tapes[1].graph()
    for tape, result in zip(tapes, (y, z), strict=True):
        found = tape.backward_dense(result, np.ones(2, np.float32))
        assert found[0] is not None
        assert found[0].tolist() == [2.0, 4.0]


def test_many_tapes():
    """Whose locks are taken together when their buffers become nodes."""
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    tapes = [rg.Tape(), rg.Tape()]
    double = rg.checkpoint(lambda x: (x * 2).sum())
    works: list[Callable[[], Any]] = [
        lambda: double(w).backward(),
        one_inside_of_another,
        lambda: one_beside_another(tapes),
        lambda: (w * 2).sum().backward(),
    ]
    together(lambda k: works[k % THREADS](), 200)
    assert w.grad is not None
    assert w.grad.tolist() == [2 * 2 * 200] * 2


@pytest.mark.slow
def test_what_many_computed_from_what_one_recorded():
    w = rg.tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    z = y * 3
    together(lambda k: (z * y / y).sum().backward(retain_graph=True), 30)
    assert w.grad is not None
    assert w.grad.tolist() == [6 * THREADS * 30] * 2


def test_a_leaf_that_shares_memory():
    w = rg.asarray(np.array([1.0, 2.0])).requires_grad_()
    together(lambda k: (w * 2).sum().backward(), 50)
    assert w.grad is not None
    assert w.grad.tolist() == [2 * THREADS * 50] * 2


def test_rows_of_a_table():
    table = rg.nn.Parameter(np.ones((3, 2), np.float32))

    def look_up(k: int) -> None:
        found = rg.nn.functional.embedding(np.array([0, 1]), table, sparse=True)
        (found if k % 2 else table * 1).sum().backward()

    together(look_up, 20)
    half = THREADS * 10
    assert table.grad.numpy().tolist() == [[2 * half] * 2, [2 * half] * 2, [half] * 2]


def test_values():
    v = rg.Value(2.0)
    u = v * 3
    together(lambda k: (u * v + v).backward(), 60)
    assert v.grad == 13 * THREADS * 60


def test_one_steps_while_others_add():
    layer = rg.nn.Linear(3, 2)
    sgd = rg.optim.SGD(layer.parameters(), lr=0.0)
    x = np.ones((4, 3), np.float32)
    total = np.zeros(2, np.float32)

    def work(k: int) -> None:
        if k % THREADS:
            layer(x).sum().backward()
        else:
            sgd.zero_grad()

    together(work, 20)
    sgd.zero_grad()
    together(lambda k: layer(x).sum().backward(), 20)
    total += 4 * THREADS * 20
    assert layer.bias.grad.tolist() == total.tolist()
    sgd.step()
