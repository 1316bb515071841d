"""Interrupts between any two instructions: what was under way is as if it had not begun, or done;
what comes after is right, no mode is left on and no lock taken."""

import builtins
import gc
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd import shared
from retrograd.context_setting import _BLOCKS, Setting
from retrograd.eager.modes import current_backend, grad_enabled, is_tracing
from retrograd.eager.trace_buffer import BUFFERS
from retrograd.ir import Provenance, provenance
from retrograd.runtime.executors.background_compiler import BackgroundCompiler
from retrograd.scalar.choices import _CHANGED
from retrograd.scalar.recorder import Value
from retrograd.scalar.tape import ScalarTape, current_trace
from retrograd.scalar.trace import TRACES, tracing
from retrograd.viz.server import Stream
from tests.stress.injection import interrupted

X = np.array([1.0, 2.0])
fresh = itertools.count(3)
MAX, MIN = builtins.max, builtins.min


class Case(NamedTuple):
    """What is interrupted; then what has to hold."""

    run: Callable[[], Any]
    after: Callable[[], None]


def again(f: Callable[[], Any], expected: Any) -> Case:
    """The same again gives what it should."""
    return Case(f, lambda: np.testing.assert_allclose(f(), expected, rtol=1e-6))


def new_operations() -> Case:
    n = next(fresh)
    x = np.arange(float(n))
    return again(lambda: (rg.tanh(rg.tensor(x)) * 2 + n).sum().numpy(), (np.tanh(x) * 2 + n).sum())


def known_operations() -> Case:
    x = rg.tensor(X)
    return again(lambda: ((x * 2 + 1) / 3).numpy(), (X * 2 + 1) / 3)


def a_look() -> Case:
    x = rg.tensor(X)
    y = x * 2
    z = y + x

    def after() -> None:
        assert (z.tolist(), y.tolist(), (z * y).tolist()) == ([3, 6], [2, 4], [6, 24])

    return Case(z.numpy, after)


def backward() -> Case:
    x, u = rg.tensor(X, requires_grad=True), rg.tensor(X + 2, requires_grad=True)
    (x * u).sum().backward()
    loss = (x * x * u).sum()

    def after() -> None:
        assert x.grad is not None
        assert u.grad is not None
        both = x.grad.tolist(), u.grad.tolist()
        assert both in (([3, 4], [1, 2]), ([9, 20], [2, 6]))  # of all leaves, or of none
        x.grad = u.grad = None
        (x * x * u).sum().backward()
        assert (x.grad.tolist(), u.grad.tolist()) == ([6, 16], [1, 4])  # type: ignore[attr-defined]

    return Case(loss.backward, after)


def segments() -> Case:
    x = rg.tensor(X, requires_grad=True)

    def run() -> Any:
        y = x
        for _ in range(600):
            y = y * 1.0
        x.grad = None
        y.sum().backward()
        assert x.grad is not None
        return x.grad.numpy()

    return again(run, [1, 1])


def leaves() -> Case:
    x = rg.tensor(X)

    def after() -> None:
        x.requires_grad_()
        (x * 2).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2, 2]

    return Case(x.requires_grad_, after)


def first_call() -> Case:
    k = float(next(fresh))
    f = rg.jit(lambda x: rg.sin(x) * k + x)
    return again(lambda: f(X).numpy(), np.sin(X) * k + X)


def second_call() -> Case:
    f = rg.jit(lambda x: rg.sin(x) + x)
    f(X)
    f(X)
    return again(lambda: f(X).numpy(), np.sin(X) + X)


tripled = rg.jit(lambda x: x * 3, donate=0)


def donation() -> Case:
    x = rg.tensor(X)

    def after() -> None:
        with suppress(rg.DonatedError):  # or gone, never half of an update
            assert x.tolist() == [1, 2]
        assert tripled(rg.tensor(X)).tolist() == [3, 6]

    return Case(lambda: tripled(x), after)


def optimizer() -> Case:
    layer = rg.nn.Linear(2, 2)
    state = {"weight": np.ones((2, 2), np.float32), "bias": np.zeros(2, np.float32)}
    layer.load_state_dict(state)
    adam = rg.optim.Adam(layer.parameters(), lr=0.1)

    def differentiate() -> None:
        adam.zero_grad()
        layer(np.ones((1, 2), np.float32)).sum().backward()

    differentiate()

    def after() -> None:
        moved = {k: not np.array_equal(x.numpy(), state[k]) for k, x in layer.state_dict().items()}
        assert len(set(moved.values())) == 1  # all parameters, or none
        if not moved["bias"]:
            adam.step()
        differentiate()
        adam.step()
        np.testing.assert_allclose(layer.bias.numpy(), [-0.2, -0.2], rtol=1e-4)

    return Case(adam.step, after)


def no_gradients() -> Case:
    layer = rg.nn.Linear(2, 1)

    def differentiate() -> None:
        layer(np.ones((1, 2), np.float32)).sum().backward()

    differentiate()

    def after() -> None:
        layer.zero_grad()
        differentiate()
        assert layer.bias.grad.tolist() == [1]

    return Case(layer.zero_grad, after)


def value() -> Case:
    a, b = rg.Value(2.0), rg.Value(3.0)

    def after() -> None:
        a.grad = b.grad = 0.0
        (a * b + a * a).backward()
        assert (a.grad, b.grad) == (7, 2)

    return Case(lambda: (a * b + a * a).backward(), after)


def jit_of_values() -> Case:
    k = float(next(fresh))
    f = rg.jit(lambda a, b: max(a * b + k, 0.0))
    a = rg.Value(2.0)
    return again(lambda: f(a, a).data, 4 + k)


def tape() -> Case:
    def run() -> Any:
        t = rg.Tape()
        x = t.leaf(X)
        return t.backward_dense((x * x).sum())[0]

    return again(run, 2 * X)


def gradient() -> Case:
    k = float(next(fresh))
    return again(lambda: rg.grad(lambda x: (x * x * k).sum())(rg.tensor(X)).numpy(), 2 * k * X)


def mapped() -> Case:
    k = float(next(fresh))
    x = rg.tensor(np.stack([X, X + 2]))
    return again(lambda: rg.vmap(lambda x: x.sum() * k)(x).numpy(), [3 * k, 7 * k])


def scanned() -> Case:
    k = float(next(fresh))
    zero, x = rg.tensor(0.0), rg.tensor(X.astype(np.float32))
    return again(lambda: rg.scan(lambda c, x: (c + x * k, c), zero, x)[0].numpy(), 3 * k)


def checkpointed() -> Case:
    def run() -> Any:
        x = rg.tensor(X, requires_grad=True)
        rg.checkpoint(lambda x: rg.exp(x) * x)(x).sum().backward()
        assert x.grad is not None
        return x.grad.numpy()

    return again(run, np.exp(X) * (1 + X))


CASES = [
    new_operations, known_operations, a_look, backward, segments, leaves, first_call, second_call,
    donation, optimizer, no_gradients, value, jit_of_values, tape, gradient, mapped, scanned,
    checkpointed,
]  # fmt: skip


@pytest.fixture(autouse=True)
def unraised(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What comes while an object is freed is reported by Python, and goes no further."""
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    yield
    gc.collect()


def check_whole() -> None:
    """No mode is on, no lock taken, and everything works."""
    assert grad_enabled()
    assert not is_tracing()
    assert current_backend() == "llvm"
    assert (provenance(), _BLOCKS.get()) == (Provenance(), ())
    assert (builtins.max, builtins.min, TRACES, _CHANGED) == (MAX, MIN, [], [])
    locks = [*[one for _, one in shared._LOCKS], *shared._OWN]
    locks += [buffer.lock for ref in list(BUFFERS) if (buffer := ref()) is not None]
    assert not [one for one in locks if one._is_owned()]
    x = rg.tensor(X, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 4]


def sweep(make: Callable[[], Case], samples: int, seed: int) -> None:
    count = interrupted(make().run, -1).count
    choose = random.Random(seed)
    for k in sorted(choose.sample(range(1, count + 1), min(samples, count))):
        case = make()
        where = interrupted(case.run, k).where
        if "Setting.__exit__" in str(where):  # before its first instruction nothing can be caught
            Setting._leave(())
            continue
        try:
            case.after()
            check_whole()
        except BaseException as error:
            error.add_note(f"interrupted at place {k} of {count}: {where}")
            raise


@pytest.mark.parametrize("make", CASES)
@pytest.mark.sample(2)
def test_interrupts(make):
    make().after()  # once, so that most of what follows is known
    sweep(make, 12, 0)


@pytest.mark.slow
@pytest.mark.parametrize("make", CASES)
def test_many_interrupts(make):
    sweep(make, 150, 1)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("make", CASES)
def test_interrupts_nearly_everywhere(make):
    make().after()
    sweep(make, 3000, 2)


class Compiled:
    """A program that is compiled behind the scenes."""

    def compile(self) -> None:
        pass


@pytest.mark.parametrize("held", [BackgroundCompiler, Stream])
def test_what_other_threads_wait_for_is_free_wherever_it_is_interrupted(held):
    made, program = held(), Compiled()

    def act() -> None:
        made.ran(program) if isinstance(made, BackgroundCompiler) else made.publish("log", "")

    count = interrupted(act, -1).count
    for k in range(1, count + 1):
        interrupted(act, k)
        assert not made._lock._is_owned()
    if isinstance(made, BackgroundCompiler):
        made.finish()


@pytest.mark.slow
def test_a_trace_of_values_ends_wherever_it_is_interrupted():
    """At each place, those between the end of a block and the call of what ends it too."""

    def trace() -> None:
        with tracing(trace, ScalarTape, Value._made):
            pass

    count = interrupted(trace, -1).count
    assert count > 50
    for k in range(1, count + 1):
        where = interrupted(trace, k).where
        assert (current_trace(), TRACES, _CHANGED) == (None, [], []), where


@pytest.mark.parametrize("count", [1, 8, 9])
@pytest.mark.sample(1)
def test_several_locks_are_free_wherever_it_is_interrupted(count):
    locks = [threading.RLock() for _ in range(count)]

    def hold() -> None:
        shared.holding(locks, lambda: None)

    for k in range(1, interrupted(hold, -1).count + 1):
        assert interrupted(hold, k).where is not None
        assert not [one for one in locks if one._is_owned()]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_many_threads_compile_and_interrupt_the_main_one():
    """Tables that all threads enter things in, while one of them gets exceptions at any time."""
    stop = threading.Event()

    def work(seed: int) -> int:
        done = 0
        while not stop.is_set():
            k = float(next(fresh))
            x = rg.tensor(np.ones(2 + done % 7), requires_grad=True)
            (rg.exp(x * k * 0.01) * 2).sum().backward()
            assert x.grad is not None
            np.testing.assert_allclose(x.grad.numpy(), 0.02 * k * np.exp(0.01 * k), rtol=1e-5)
            rg.jit(lambda x, k=k: x * k + k)(X)
            done += 1
        return done

    choose = random.Random(3)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(work, k) for k in range(4)]
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                case = choose.choice(CASES[:4])()
                interrupted(case.run, choose.randrange(1, 3000))
                case.after()
        finally:
            stop.set()
        assert all(f.result() > 0 for f in found)
