"""The compiled recorder does what the one in Python does, and keeps its memory in order."""

import contextvars
import copy
import functools
import gc
import inspect
import itertools
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.accelerate import NAMES, is_compiled
from retrograd.eager import trace_buffer
from retrograd.eager.fast_path import FUNCTIONS, compiled
from tests import sampling
from tests.accelerate import recordings
from tests.sampling import sampled

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
needs_both = pytest.mark.skipif(compiled is None, reason="there is no compiled recorder here")
PYTHON = """import sys; sys.modules['retrograd.accelerate._tensor'] = None
import retrograd.eager.fast_path as r; assert r.compiled is None
"""


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_source_has_its_name():
    assert {p.stem for p in (ROOT / "src/retrograd/accelerate").glob("*.c")} == set(NAMES)
    assert is_compiled("tensor") == (compiled is not None)
    assert not is_compiled("nothing")


@pytest.mark.slow
@needs_both
def test_both_recorders_give_the_same_bits_errors_trace_nodes_and_programs():
    """Random programs, loops, long chains, failures: what was computed, and how."""
    here = recordings.report()
    there = python(
        f"{PYTHON}from tests import sampling; sampling.is_sampling = {sampling.is_sampling}\n"
        "from tests.accelerate.recordings import report; print(report())",
        "-W",
        "error",
    )
    assert there.stderr == ""
    assert there.stdout.splitlines() == here.splitlines()
    assert len(here.splitlines()) > 50


@pytest.mark.slow
@needs_both
def test_tests_of_recording_pass_in_python():
    eager = (
        "lazy_tensor", "backward", "trace_cache", "call_cache", "quick_dispatch", "trace_buffer",
        "segments", "segment_backward", "memory",
    )  # fmt: skip
    files = ["tests/functions/tensor/test_inplace.py", *[f"tests/eager/test_{f}.py" for f in eager]]
    names = "not torch and not 200000 and not never_repeats and not give_the_bits_of"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--recorder", "python", "-p", "no:cacheprovider",
         "-p", "no:xdist", "-k", names, *["--sample", "-m", "not slow"] * sampling.is_sampling,
         *sampled(files, 2, "files")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


# -- functions -------------------------------------------------------------------------------------
def test_functions_can_be_looked_at_copied_and_pickled():
    for f, n in ((rg.tanh, 1), (rg.add, 2)):
        assert isinstance(f, FUNCTIONS)
        assert f.__doc__
        assert len(inspect.signature(f).parameters) == n
        assert copy.deepcopy(f) is f
        assert pickle.loads(pickle.dumps(f)) is f
        assert weakref.ref(f)() is f
        assert f.__name__ in repr(f)
    assert rg.Tensor.tanh is rg.tanh
    x = rg.tensor([0.5])
    bound: Any = x.tanh
    assert bound.__self__ is x
    assert bound().tolist() == rg.tanh(x).tolist()
    assert next(map(rg.tanh, [x])).tolist() == rg.tanh(x).tolist()


def test_functions_refuse_what_they_cannot_take():
    x = rg.tensor([0.5])
    for call in (
        lambda: rg.tanh(),  # type: ignore[call-arg]
        lambda: rg.tanh(x, x),  # type: ignore[call-arg]
        lambda: rg.add(x),  # type: ignore[call-arg]
        lambda: rg.add(x, x, x),  # type: ignore[call-arg]
        lambda: rg.tanh(y=x),  # type: ignore[call-arg]
        lambda: rg.add(x, x1=x),  # type: ignore[call-arg]
        lambda: pow(x, 2, 3),  # type: ignore[call-overload]
        lambda: -object(),  # type: ignore[operator]
        lambda: x + object(),
        lambda: object() + x,
    ):
        with pytest.raises(TypeError):
            call()


def test_a_function_is_a_constant_of_compiled_functions():
    f = rg.jit(lambda x, g: g(x))
    x = rg.tensor([0.25, 0.5])
    assert f(x, rg.tanh).tolist() == rg.tanh(x).tolist()
    assert f(x, rg.exp).tolist() == rg.exp(x).tolist()
    assert rg.jit(rg.tanh)(x).tolist() == rg.tanh(x).tolist()


def test_a_subclass_may_define_operators():
    class Louder(rg.Tensor):
        __slots__ = ()

        def __add__(self, other: Any) -> Any:
            return super().__add__(other) * 10

        def __radd__(self, other: Any) -> Any:
            return super().__radd__(other) * 100

    x, y = Louder(rg.tensor([1.0]).node), rg.tensor([2.0])
    for _ in range(3):
        assert (x + y).tolist() == [30]
        assert (y + x).tolist() == [300]
        assert (2 + x).tolist() == [300]
        assert (x - y).tolist() == [-1]
        assert (x + 1).tolist() == [20]
        assert type(x - y) is rg.Tensor


# -- modes, threads, garbage -----------------------------------------------------------------------
def test_gradients_are_on_or_off_as_the_context_says():
    x = rg.tensor([2.0], requires_grad=True)

    def made() -> bool:
        y = x * 3.5 + x
        z = y.requires_grad
        y.numpy()  # so that the next is recorded from the start, and looked up
        return z

    with rg.no_grad():
        off = contextvars.copy_context()
    for _ in range(3):
        assert made()
        assert not off.run(made)
        with rg.no_grad():
            assert not made()
    y = off.run(lambda: x * 3.5)
    (y * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [7]


def test_threads_may_share_tensors_that_are_not_yet_computed():
    x = rg.tensor(np.linspace(0, 1, 8), dtype=rg.float64, requires_grad=True)
    shared = [rg.exp(x) * (k + 0.25) for k in range(4)]
    found: dict[int, list[Any]] = {}

    def work(k: int) -> None:
        found[k] = []
        for i in range(200):
            y = shared[(k + i) % 4]
            for _ in range(5):
                y = y * 1.25 + (k + 0.5)
            found[k].append(y.sum().item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    e = np.exp(np.linspace(0, 1, 8))
    for k, values in found.items():
        for i, value in enumerate(values):
            y = e * ((k + i) % 4 + 0.25)
            for _ in range(5):
                y = y * 1.25 + (k + 0.5)
            assert value == pytest.approx(y.sum(), rel=1e-12)


LINES = """
shared = [rg.exp(x) * (k + 0.25) for k in range(4)]

def work(k):
    barrier.wait()
    for i in range(4):
        c = k + 0.5 + i / 16
        y = shared[(k + i) % 4]
        for _ in range(5):
            y = y * 1.25 + c
        w = rg.tensor([0.5, 1.5], dtype=rg.float64, requires_grad=True)
        (rg.exp(w) * shared[k] * c).sum(axis=0).backward()
        found.append((k, i, y.sum().item(), w.grad.tolist()))
"""


@pytest.mark.parametrize("times", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_threads_may_record_for_the_first_time_what_others_do(times):
    """Lines that were never run, so that all that is remembered of them is made meanwhile."""
    e = np.exp([0.5, 1.5])
    before = sys.getswitchinterval()
    for n in range(times):
        x = rg.tensor([0.5, 1.5], dtype=rg.float64, requires_grad=n % 2 == 1)
        found: list[Any] = []
        names: dict[str, Any] = {"rg": rg, "x": x, "found": found}
        names["barrier"] = threading.Barrier(4)
        exec(compile(LINES, f"<lines {times} {n}>", "exec"), names)
        threads = [threading.Thread(target=names["work"], args=(k,)) for k in range(4)]
        sys.setswitchinterval(1e-6)
        try:
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            sys.setswitchinterval(before)
        assert len(found) == 16  # no thread failed
        for k, i, total, gradient in found:
            c = k + 0.5 + i / 16
            y = e * ((k + i) % 4 + 0.25)
            for _ in range(5):
                y = y * 1.25 + c
            assert total == pytest.approx(y.sum(), rel=1e-12)
            np.testing.assert_allclose(gradient, e * e * (k + 0.25) * c, rtol=1e-12)


@pytest.mark.slow
def test_garbage_is_collected_while_something_is_recorded():
    """Collections run code of others at any allocation: here code that records and looks."""
    x = rg.tensor([0.5, 1.5], requires_grad=True)
    looked, busy = [], [False]

    def collected(phase: str, info: object) -> None:
        if phase == "stop" and not busy[0]:
            busy[0] = True
            # In a context of its own: Python 3.11 crashes if a collection within `ContextVar.set`
            # leads to another `set` in the same context.
            other = contextvars.copy_context()
            looked.append(other.run(lambda: (x * 1.5 + 0.3).sum().item()))
            busy[0] = False

    def step() -> tuple[Any, Any]:
        y = x
        for k in range(20):
            y = rg.tanh(y * 1.1 + 0.1 * k) - x / 3
        x.grad = None
        y.sum().backward()
        assert x.grad is not None
        return y.tolist(), x.grad.tolist()

    expected = step()
    before = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(7)
    try:
        for _ in range(20):
            assert step() == expected
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
    assert len(looked) > 20
    assert set(looked) == {looked[0]}


@needs_both  # the one in Python keeps tensors until the next look
def test_who_is_told_that_a_tensor_is_gone_may_look_at_others():
    x = rg.tensor([0.5, 1.5])
    found = []

    def look(z: Any, _: object) -> None:
        found.append(z.tolist())

    for k in range(50):
        y = x * 2.5
        z = y + k
        ref = weakref.ref(y, functools.partial(look, z))
        del y
        assert ref() is None
    assert found == [[1.25 + k, 3.75 + k] for k in range(50)]


@pytest.mark.usefixtures("recorded_first")
@needs_both  # the one in Python keeps tensors until the next look
def test_tensors_held_by_deep_structures_are_freed_one_by_one():
    """Freeing what is nested deep is put off: such tensors are not held, and not yet freed."""
    x = rg.tensor([0.5, 1.5])
    first = x * 2.5
    place, found, refs = first._buffer, [], []
    nested: Any = None
    for _ in range(400):
        y = x * 2.5
        nested = (nested, y)
        refs.append(weakref.ref(y, lambda _: found.append(place.live_handles()[0] is first)))
    del nested, y
    assert found == [True] * 400
    assert (x * 3).tolist() == [1.5, 4.5]


# -- memory ----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_long_chains_are_freed_without_recursion():
    x = rg.tensor([1.0])
    first = last = x * 1.5
    for _ in range(60_000):
        new = object.__new__(rg.Tensor)
        last._grad = new
        last = new
    del first, last, new
    many = [x * 1.5 for _ in range(60_000)]
    del many
    assert (x * 1.5).tolist() == [1.5]


@needs_both  # the one in Python keeps tensors until the next look
def test_cycles_of_tensors_are_collected():
    gc.collect()
    x = rg.tensor([1.0], requires_grad=True)
    y = x * 2.5
    x.grad, y.grad = y, x
    refs = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [r() for r in refs] == [None, None]


def counted() -> list[int]:
    mortal = () if sys.version_info >= (3, 12) else (None, True, False)
    return [sys.getrefcount(o) for o in (*mortal, rg.Tensor, rg.tanh, type(rg.tanh))]


def many_steps(n: int) -> None:
    x = rg.tensor([0.5, 1.5], requires_grad=True)
    w = rg.tensor([0.25, 1.25])
    for _ in range(n):
        y = x
        for _ in range(5):
            y = rg.tanh(y * 1.1 - w) / 2 + (-y) ** 2 + abs(3 - y)
            y = rg.maximum(y.sin(), w)
        x.grad = None
        y.sum().backward()
        assert x.grad is not None
        x.grad.numpy()
        for bad in (lambda: x + "a", lambda: x + rg.ones(3), lambda: rg.tanh("a")):
            with pytest.raises((TypeError, rg.RetrogradError)):
                bad()


@pytest.mark.slow
def test_nothing_leaks():
    tracemalloc.start()
    found = []
    for n in (30, 30, 300):
        many_steps(n)
        gc.collect()
        found.append((tracemalloc.get_traced_memory()[0], counted()))
    tracemalloc.stop()
    (_, _), (memory, before), (more, after) = found
    assert more - memory < 20_000  # 300 steps make 9,000 tensors of 100 bytes
    assert all(abs(a - b) < 20 for a, b in zip(before, after, strict=True))


@pytest.mark.usefixtures("recorded_first")
@needs_both
def test_a_buffer_does_not_keep_handles():
    x = rg.tensor([0.5, 1.5])
    y = x * 2.5
    p = y._buffer
    before = p.made()
    for _ in range(10):
        y + 1.5
    assert [h is y for h in p.live_handles()] == [True]
    z = [y + k for k in range(5)]
    assert all(a is b for a, b in zip(p.live_handles(), [y, *z], strict=True))
    del z[1:4]
    assert all(a is b for a, b in zip(p.live_handles(), [y, *z], strict=True))
    assert (p.made() - before, p.recorded()) == (15, [])


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-X", "dev"), ("-X", "dev", "-W", "error")])
@pytest.mark.parametrize("recorder", ["", PYTHON])
@pytest.mark.sample(2)
def test_the_interpreter_ends_cleanly(options, recorder):
    code = """if True:
        import retrograd as rg
        x = rg.tensor([1.0], requires_grad=True)
        y = rg.tanh(x * 2) + 1
        y.sum().backward()
        z = x.grad * 3
        x.grad = x
    """
    done = python(recorder + code, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_both
def test_what_is_not_meant_for_users_fails_by_exceptions():
    """Not by a crash: fields may be missing or hold anything."""
    x = rg.tensor([0.5])
    for base in (compiled.HandleBase, compiled.TraceNodeBase, compiled.TraceBufferBase):
        base()
    made = object.__new__(rg.Tensor)
    for name, value in itertools.product(
        ("_state", "_buffer"), (None, 1, "a", trace_buffer.NOWHERE)
    ):
        for field in ("_state", "_buffer", "_requires_grad"):
            setattr(made, field, None)
        setattr(made, name, value)
        for call in (
            lambda: made + 1, lambda: made * x, lambda: x * made, lambda: -made,
            lambda: rg.sum(made, axis=0), lambda: rg.where(made, x, x),
            lambda: rg.concat([made, x]),
        ):  # fmt: skip
            with pytest.raises(Exception):  # noqa: B017, PT011 - any but a crash
                call()
    with pytest.raises(RuntimeError, match="already"):
        compiled.install(
            rg.Tensor, trace_buffer.TraceBuffer, object, type, type, None, bool, {}, {}
        )
    with pytest.raises(TypeError):
        compiled.TraceBufferBase().add(1)
