"""Threads that do anything to what others have recorded: each of them finds what it would alone."""

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import retrograd as rg

THREADS = 4
W = np.array([1.0, 2.0, 3.0])
Work = Callable[["Shared", int], None]
WORKS: list[Work] = []


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Shared:
    """What all threads use: a leaf, what was recorded of it, functions that are compiled."""

    def __init__(self) -> None:
        self.w = rg.tensor(W, requires_grad=True)
        self.c = rg.tensor(2 * W)
        self.y = self.w * 2
        self.z = (self.y * self.y).sum()
        self.compiled = rg.jit(lambda a, b: (a * b + a).sum())
        self.slope = rg.grad(lambda a: (a * a * self.c).sum())
        self.graph = rg.trace(lambda a: (a.sin() * a).sum(), self.w)
        self.layer = rg.nn.Linear(3, 2)


def work(f: Work) -> Work:
    WORKS.append(f)
    return f


def leaf() -> rg.Tensor:
    return rg.tensor(W, requires_grad=True)


def equal(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


@work
def looks(s: Shared, k: int) -> None:
    equal((s.y + k).numpy(), 2 * W + k)
    equal((s.z * k).item(), 56 * k)


@work
def gradients(s: Shared, k: int) -> None:
    equal(s.slope(s.w).numpy(), 4 * W * W)
    equal(rg.autograd.grad(s.z, s.w, retain_graph=True)[0].numpy(), 8 * W)
    equal(rg.jvp(lambda a: (a * a * a).sum(), (s.w,), (s.c,))[1].numpy(), (6 * W**3).sum())


@work
def backward(s: Shared, k: int) -> None:
    x = leaf()
    (x * s.y * s.c).sum().backward(retain_graph=True)
    assert x.grad is not None
    equal(x.grad.numpy(), 4 * W * W)


@work
def backward_twice(s: Shared, k: int) -> None:
    x = leaf()
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None
    equal(x.grad.numpy(), 2 * np.exp(W))


@work
def retained(s: Shared, k: int) -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    equal(y.grad.numpy(), 4 * W)
    equal(x.grad.numpy(), 8 * W)


@work
def without_gradients(s: Shared, k: int) -> None:
    with rg.no_grad():
        equal((s.w * s.c + s.y).sum().item(), 40.0)


@work
def compiled(s: Shared, k: int) -> None:
    equal(s.compiled(s.w, s.c).numpy(), 34.0)
    equal(np.asarray(s.graph(s.w)), (np.sin(W) * W).sum())
    equal(rg.vmap(lambda a: (a * s.c).sum())(rg.stack([s.w, s.w])).numpy(), [28.0, 28.0])


@work
def checkpointed(s: Shared, k: int) -> None:
    x = leaf()
    rg.checkpoint(lambda a: (a * s.c).sum())(x).backward()
    assert x.grad is not None
    equal(x.grad.numpy(), 2 * W)


@work
def taped(s: Shared, k: int) -> None:
    tape = rg.Tape()
    x = tape.leaf(W)
    equal(tape.backward_dense((x * x * s.c).sum())[0], 4 * W * W)


@work
def taped_block(s: Shared, k: int) -> None:
    with rg.Tape() as tape:
        x = tape.leaf(W)
        y = (x * x + s.w).sum()
    equal(tape.backward_dense(y)[0], 2 * W)
    tape.graph()


@work
def scalars(s: Shared, k: int) -> None:
    a = rg.Value(2.0)
    (a * a + k).backward()
    assert a.grad == 4.0


@work
def modules(s: Shared, k: int) -> None:
    x = rg.tensor(W.astype(np.float32))
    equal(rg.grad(lambda m: m(x).sum())(s.layer).bias.numpy(), [1.0, 1.0])


@work
def in_place(s: Shared, k: int) -> None:
    x = rg.tensor(W)
    x += k
    x[0] = 5
    equal(x.numpy(), [5, 2 + k, 3 + k])


@work
def sizes(s: Shared, k: int) -> None:
    n = k % 37 + 1
    equal((rg.ones(n) * 2 + 1).sum().item(), 3 * n)


@work
def long(s: Shared, k: int) -> None:
    x: Any = s.w
    for _ in range(k % 40):
        x = x + s.c * 0.5
    equal(x.numpy(), W + W * (k % 40))


@work
def printed(s: Shared, k: int) -> None:
    assert "56" in str(s.z)
    assert "tensor" in repr(s.w * 2).lower()
    str(rg.trace(lambda a: a * s.c, s.w))


@work
def refused(s: Shared, k: int) -> None:
    with pytest.raises(rg.errors.ShapeError):
        s.w + rg.ones(4)


def run(seed: int, count: int) -> None:
    shared = Shared()

    def thread(k: int) -> None:
        random_of = random.Random(THREADS * seed + k)
        for _ in range(count):
            random_of.choice(WORKS)(shared, random_of.randrange(100))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(thread, range(THREADS)))


def test_threads_find_what_they_would_alone():
    run(0, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_more_threads(seed):
    run(seed, 400)
