"""Whole calls in C: references are counted exactly, and what fails has done nothing."""

from __future__ import annotations

import functools
import gc
import signal
import sys
import threading
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call
from retrograd.runtime.call_route import CallRoute
from retrograd.runtime.fast_call import MISSED

pytestmark = pytest.mark.skipif(
    not fast_call.serves(LazyTensor.handle_class), reason="no C compiler was found at installation"
)


def step(state, x, scale, sizes):
    """Uses all that there is: containers, numbers, None, static leaves, arrays that end here."""
    p, memory, used = state
    moved = {k: v - scale * x for k, v in p.items()}
    count = memory["count"] + 1
    return (moved, {"count": count, "none": None}, [used.sum(), ()]), (
        x.sum(),
        sizes,
        "static",
    )


NAMES = ("first weight", "second weight", "third weight")  # strings that nobody else has
KIND, STATIC = "kind of a call", "part of the result"
ones = rg.jit(lambda: rg.ones(7) + 0)


def arguments(n=3):
    p = {k: rg.tensor(np.full(n, i, np.float32)) for i, k in enumerate(NAMES)}
    memory = {"count": rg.tensor(np.zeros(1)), "none": None}
    return (p, memory, rg.tensor(np.ones(7, np.float32)))


def trained(f, calls, n=3):
    """The state after some calls; what is not passed on comes anew."""
    state, x = arguments(n), np.ones(n, np.float32)
    for _ in range(calls):
        (p, memory, _), _ = f(state, x, 0.5, KIND)
        state = (p, memory, rg.tensor(np.ones(7, np.float32)))
    return state


def test_results_are_those_of_the_function():
    p, memory, _ = trained(rg.jit(step, donate=0), 10)
    assert [t.tolist() for t in p.values()] == [[i - 5] * 3 for i in range(3)]
    assert memory["count"].item() == 10


def served(f, *args):
    """What the native call returns, which is not allowed to miss."""
    (site, *_) = f._sites
    found = site.serve(args, {}, object())
    assert found is not MISSED
    return found


@pytest.mark.slow
@pytest.mark.parametrize("donate", [(), (0,)])
@pytest.mark.sample(1)
def test_references(donate):
    f = rg.jit(step, donate=donate)
    x, scale = np.ones(3, np.float32), 12345.678
    state, gone = trained(f, 4), object()
    (site, *_) = f._sites
    shared = [x, KIND, scale, *NAMES, gone, rg.Tensor, dict, STATIC, x.dtype]

    def many(state, n):
        for _ in range(n):
            (p, memory, _), (_, kind, _) = site.serve(
                ((*state[:2], ones()), x, scale, KIND), {}, gone
            )
            assert kind is KIND
            state = p, memory
        return state

    state = many(state, 10)
    gc.collect()
    before = [sys.getrefcount(o) for o in shared]
    nones = sys.getrefcount(None)
    state = many(state, 5000)
    gc.collect()
    assert [sys.getrefcount(o) for o in shared] == before
    assert abs(sys.getrefcount(None) - nones) < 50
    made = [*state[0].values(), state[1]["count"]]
    # In dict and list, as `t` and as an argument; arrays in a slot and as an argument.
    assert [sys.getrefcount(t) for t in made] == [4] * len(made)
    assert [sys.getrefcount(t._state) for t in made] == [2] * len(made)


@pytest.mark.slow
def test_memory_stays_flat():
    f = rg.jit(step, donate=0)
    state = trained(f, 50)
    del state
    gc.collect()
    tracemalloc.start()
    try:
        trained(f, 100)
        gc.collect()
        objects, (before, _) = len(gc.get_objects()), tracemalloc.get_traced_memory()
        trained(f, 1500)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        assert after - before < 20_000
        assert len(gc.get_objects()) - objects < 20
    finally:
        tracemalloc.stop()


def test_memory_of_others_is_not_overwritten():
    f = rg.jit(lambda x: x * 2, donate=0)
    make = rg.jit(lambda: rg.ones(7) + 0)
    for _ in range(2):
        f(make())
    base = np.ones(9, np.float32)
    # Nobody else has this array, but its memory is that of another.
    t = LazyTensor.handle_class.dehydrated(base[1:8])
    assert f._sites[0].serve((t,), {}, object()) is MISSED
    assert f(t).tolist() == [2] * 7
    assert base.tolist() == [1] * 9


def test_donated_leaves_that_are_no_tensors():
    """Of one signature, in turn: none is changed, and each gives a result of its own."""

    class Own(np.ndarray):
        pass

    f = rg.jit(lambda x: x + 1, donate=0)
    given: list[Any] = [np.float32(3), np.ones((), np.float32), np.ones((), np.float32).view(Own)]
    given += [1.5, 2, np.float64(7)]
    for _ in range(3):
        for x in given:
            assert f(x).item() == x + 1
        for number in (5, 6):
            assert f(rg.tensor(np.float32(number))).item() == number + 1


def test_a_check_that_fails_leaves_everything_as_it_was():
    f = rg.jit(lambda s, i: ({"x": s["x"] * 2, "y": s["x"][i]}, s["n"] + 1), donate=0)
    make = rg.jit(lambda: ({"x": rg.arange(4.0) + 0, "n": rg.ones(3) + 0}))
    f(make(), np.array([1]))
    s, wrong = make(), np.array([9])
    t = s["x"]
    array = t._state
    before = [sys.getrefcount(o) for o in (t, array, wrong, s)]
    for _ in range(100):
        (site,) = f._sites
        assert site.serve((s, wrong), {}, object()) is MISSED
    assert [sys.getrefcount(o) for o in (t, array, wrong, s)] == before
    for _ in range(20):
        with pytest.raises(rg.IndexRangeError):
            f(s, wrong)
    assert t.tolist() == [0, 1, 2, 3]
    del array
    out, _ = f(s, np.array([3]))
    assert (out["x"].tolist(), out["y"].tolist()) == ([0, 2, 4, 6], [3])
    with pytest.raises(rg.DonatedError):
        t.tolist()


def test_programs_that_run_later():
    """Large ones: the lock of the interpreter is not held while they run."""
    n = 200_000
    f = rg.jit(lambda s, i: ([s[0] * 2, s[0][i]], s[1].sum()), donate=0)
    s: Any = [rg.ones(n), rg.ones(3)]
    for k in range(1, 4):
        s = [f(s, np.array([k]))[0][0], rg.ones(3)]
        s = rg.jit(lambda s: [s[0] + 0, s[1] + 0], donate=0)(s)
    place, last = s[0]._state.ctypes.data, s[1]
    with pytest.raises(rg.IndexRangeError):
        f(s, np.array([n]))
    assert s[0]._state.ctypes.data == place
    assert s[0][:2].tolist() == [8, 8]
    assert last.tolist() == [1, 1, 1]


def test_an_exception_while_it_runs(monkeypatch):
    n = 200_000
    f = rg.jit(lambda s: [x * 2 for x in s], donate=0)
    make = rg.jit(lambda: [rg.ones(n) + 0, rg.ones(3) + 0])
    for _ in range(2):
        f(make())
    s = make()
    shaped = type(next(iter(f._traces.values())).program.last)  # type: ignore[attr-defined]

    def interrupted(self, addresses, arrays):
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(shaped, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(s)
    assert [x.tolist()[:2] for x in s] == [[1, 1]] * 2
    assert [x.tolist()[:2] for x in f(make())] == [[2, 2]] * 2


def test_objects_are_like_others():
    f = rg.jit(lambda x: {"a": [x + 1]})
    x = rg.ones(3)
    f(x), f(x)
    made = served(f, x)
    t = made["a"][0]
    assert all(map(gc.is_tracked, (made["a"], t)))
    gone = weakref.ref(t)
    t.grad = None
    made["a"].append(made)  # a cycle, which the collector has to find
    made["a"].append(t)
    del made, t
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_on_or_off_as_before(on):
    f = rg.jit(lambda x: x + 1)
    x = np.ones(3)
    f(x)
    was = gc.isenabled()
    try:
        gc.enable() if on else gc.disable()
        for given in (x, "no array", x.T):
            f._sites[0].serve((given,), {}, None)
            assert gc.isenabled() == on
    finally:
        gc.enable() if was else gc.disable()


def test_what_is_dropped_may_run_python_code():
    """A donated array that no result takes is freed by the call; somebody may be waiting for it."""
    f = rg.jit(lambda x, y: (y + 1, x.sum()), donate=0)
    make = rg.jit(lambda: rg.ones(5) + 0)
    y, seen = rg.ones(2), []
    for _ in range(3):
        x = make()
        ended = weakref.finalize(x._state, lambda: seen.append(f(make(), y)[0].tolist()))
        f(x, y)
        assert not ended.alive
    assert seen == [[2, 2]] * 3


@pytest.mark.slow
@pytest.mark.parametrize("donate", [(), (0,)])
def test_threads(donate):
    """States of their own, of several sizes, through one function; garbage in between."""
    f = rg.jit(step, donate=donate)
    failures = []

    def work(n):
        for _ in range(5):
            p, memory, _ = trained(f, 200, n)
            right = [t.tolist() for t in p.values()] == [[i - 100.0] * n for i in range(3)]
            if not right or memory["count"].item() != 200:
                failures.append(n)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in (3, 3, 4, 5)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def test_without_memory():
    """Whatever allocation fails, there is a result, or an error and nothing done."""
    capi = pytest.importorskip("_testcapi")
    f = rg.jit(step, donate=0)
    state, x = trained(f, 3), np.ones(3, np.float32)
    state = (*state[:2], ones())
    (site, *_) = f._sites
    given, gone = (state, x, 0.5, KIND), object()
    leaves = [*state[0].values(), state[1]["count"], state[2]]
    counted = [*leaves, x, x.dtype, gone, rg.Tensor, *NAMES]
    before, missed = [sys.getrefcount(o) for o in counted], 0
    for start in range(60):
        capi.set_nomemory(start, start + 1)
        try:
            found = site.serve(given, {}, gone)
        finally:
            capi.remove_mem_hooks()
        if found is not MISSED:
            break
        missed += 1
        assert [sys.getrefcount(t._state) for t in leaves] == [2] * len(leaves)
        assert [sys.getrefcount(o) for o in counted] == before
    assert missed > 3
    (p, _, _), _ = found
    assert [t.tolist() for t in p.values()] == [[i - 2.0] * 3 for i in range(3)]
    assert all(t._state is gone for t in leaves)


def test_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setattr(fast_call, "compiled", None)
    f = rg.jit(step, donate=0)
    p, _, _ = trained(f, 5)
    assert not f._sites
    assert [t.tolist() for t in p.values()] == [[i - 2.5] * 3 for i in range(3)]


def test_classes_of_tensors_that_are_not_compiled():
    class Told:
        __slots__ = ("_array", "_state")

    assert not fast_call.serves(Told)
    with pytest.raises(TypeError, match="a class of tensors"):
        CallRoute([fast_call.Take(fast_call.TENSOR, 0, Told)])
    assert fast_call.serves(LazyTensor.handle_class)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals here")
def test_signals_at_any_moment():
    """Whatever call an exception ends, what was donated is whole or gone, and so is all of it."""

    class Ended(Exception):
        pass

    armed = False

    def handle(*_):
        nonlocal armed
        if armed:
            armed = False
            raise Ended

    f = rg.jit(lambda p, x: {k: v + x for k, v in p.items()}, donate=0)
    make = functools.partial(rg.tree.map, rg.tensor, dict.fromkeys(NAMES, np.zeros(3, np.float32)))
    p = f(f(make(), 1.0), 1.0)
    before, ended = signal.signal(signal.SIGALRM, handle), 0
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(100_000):
            try:
                armed = True
                new = f(p, 1.0)
                armed = False
                p = new
            except Ended:
                ended += 1
                try:
                    values = [t.tolist() for t in p.values()]
                except rg.DonatedError:
                    p = make()
                else:
                    assert values == values[:1] * 3
                if ended == 500:
                    break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended
