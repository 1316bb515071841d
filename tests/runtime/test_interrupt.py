"""Ctrl-C, and signals in general, during long native calls."""

import _thread
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd import num_threads
from retrograd.codegen.launch_layout import STOPPED
from retrograd.errors import DonatedError
from retrograd.ir import Graph, Node, spec
from retrograd.ops.elementwise import tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand
from retrograd.runtime import executable as program_module
from retrograd.runtime.executable import Executable
from retrograd.runtime.interrupt import interruptible
from retrograd.tuning import TUNING
from tests.runtime.thread_programs import PATIENCE, Programs, programs, wait_for

ROOT = Path(__file__).parents[2]


def held(p: Programs, block: np.ndarray, stop: np.ndarray) -> int:
    """Run the program that waits for `block[1]`, which signals may end."""
    return interruptible(lambda: p.team.run(p.code["hold"], block.ctypes.data, 2), stop.ctypes.data)


class Endless:
    """The program that runs until it is stopped: its block, and what it says about itself."""

    def __init__(self) -> None:
        self.block = np.zeros(2, np.int64)

    def run(self, threads: int = 2) -> int:
        p = programs()
        block = self.block.ctypes.data
        return interruptible(lambda: p.team.run(p.code["endless"], block, threads), block)

    def then(self, *acts: object) -> threading.Thread:
        """Once it runs, do this from another thread, one after the other."""

        def work() -> None:
            wait_for(self.block, 1, 1)
            for act in acts:
                act()  # type: ignore[operator]
                time.sleep(0.05)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    @property
    def over(self) -> bool:
        return int(self.block[1]) == 2


@pytest.fixture(autouse=True)
def usual_handler():
    """Python's own, whatever runs the tests has installed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    programs().gather(4)
    yield
    signal.signal(signal.SIGINT, before)
    assert programs().wrong("meet", 100, 4) == 0  # the team works on


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_interrupt_stops_the_program(threads):
    program = Endless()
    other = program.then(_thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        program.run(threads)
    assert program.over
    other.join()


@pytest.mark.slow
def test_interrupts_while_it_stops_are_dropped():
    p, block, stop = programs(), np.zeros(2, np.int64), np.zeros(1, np.int64)

    def twice() -> None:
        wait_for(block, 0, 2)
        _thread.interrupt_main()
        wait_for(stop, 0, 1)  # which this program does not look at
        _thread.interrupt_main()
        time.sleep(0.3)
        block[1] = 1

    other = threading.Thread(target=twice)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        held(p, block, stop)
    assert int(block[1]) == 1
    other.join()


def test_a_handler_that_raises_nothing_lets_the_program_end():
    block, stop, noted = np.zeros(2, np.int64), np.zeros(1, np.int64), []

    def handler(number: int, frame: object) -> None:
        noted.append(number)
        block[1] = 1

    signal.signal(signal.SIGINT, handler)

    def interrupt() -> None:
        wait_for(block, 0, 2)
        _thread.interrupt_main()

    other = threading.Thread(target=interrupt)
    other.start()
    p = programs()
    result = held(p, block, stop)
    assert (result, noted, int(stop[0])) == (2, [signal.SIGINT], 0)
    other.join()


@pytest.mark.parametrize("kind", [TimeoutError, RuntimeError])
def test_whatever_a_handler_raises_goes_on(kind):
    def handler(number: int, frame: object) -> None:
        raise kind("enough")

    signal.signal(signal.SIGINT, handler)
    program = Endless()
    other = program.then(_thread.interrupt_main)
    with pytest.raises(kind, match="enough"):
        program.run()
    assert program.over
    other.join()


def test_results_and_failures_of_the_call():
    stop = np.ones(1, np.int64)
    assert interruptible(lambda: 3, stop.ctypes.data) == 3
    assert int(stop[0]) == 0

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        interruptible(fail, stop.ctypes.data)


def test_without_a_thread_to_start_the_call_is_made_at_once(monkeypatch):
    def refuse(*what: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    stop = np.zeros(1, np.int64)
    here = threading.get_ident()
    assert interruptible(lambda: threading.get_ident() == here, stop.ctypes.data) is True


def test_other_threads_make_the_call_themselves():
    found, stop = [], np.zeros(1, np.int64)

    def work() -> None:
        here = threading.get_ident()
        found.append(interruptible(lambda: threading.get_ident() == here, stop.ctypes.data))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]


# -- programs that overwrite what they are given ---------------------------------------------------
SIZE = 1 << 18


def updates() -> Executable:
    """Long work, whose result then scales two donated arrays, `a` and `b`."""
    x, a, b = (input_node(spec((SIZE,)), name) for name in "xab")
    y: Node = x
    for _ in range(150):
        y = tanh(y)
    scale = expand(ReduceSum((0,))(y), (SIZE,), (0,))
    program = Executable(Graph([x, a, b], [a + scale, b - scale]), donate=(1, 2))
    assert program.donated == {0: 1, 1: 2}
    assert program.last is not None
    assert program.last.long
    return program


def arrays() -> list[np.ndarray]:
    return [np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_program_has_overwritten_nothing(monkeypatch, threads):
    def at_once(call, stop):
        ctypes.c_int64.from_address(stop).value = 1
        assert call() == STOPPED
        raise KeyboardInterrupt

    monkeypatch.setattr(program_module, "interruptible", at_once)
    given = arrays()
    with num_threads(threads), pytest.raises(KeyboardInterrupt):
        updates().consume(given)
    assert len(given) == 3
    assert not given[1].any()
    assert not given[2].any()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_what_has_begun_to_overwrite_goes_on_to_its_end(monkeypatch, threads):
    given = arrays()
    _, a, b = views = [x[:] for x in given]
    done = threading.Event()

    def too_late(call, stop):
        def watch() -> None:
            while not done.is_set() and a[0] == 0 and b[-1] == 0:
                pass
            ctypes.c_int64.from_address(stop).value = 1

        other = threading.Thread(target=watch)
        other.start()
        assert call() == 0
        done.set()
        other.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(program_module, "interruptible", too_late)
    program = updates()
    monkeypatch.setattr(program.last, "quick", lambda arrays: program.last.slow(arrays))
    with num_threads(threads), pytest.raises(KeyboardInterrupt):
        program.consume(given)
    assert not given  # whoever gave the arrays is not to use them again
    assert len(views) == 3
    assert (a == a[0]).all()
    assert (b == -a).all()
    assert a[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_donated_tensors_after_an_interrupt(monkeypatch, late):
    def interrupted(call, stop):
        ctypes.c_int64.from_address(stop).value = int(not late)
        call()
        raise KeyboardInterrupt

    def step(state, x):
        for _ in range(150):
            x = rg.tanh(x)
        return state + x.sum(), x.sum()

    f = rg.jit(step, donate="state")
    x = rg.ones((SIZE,))
    expected = f(rg.zeros((SIZE,)), x)[0].numpy()
    for _ in range(2):  # the second time by the shorter way
        state = rg.zeros((SIZE,))
        state.numpy()
        with monkeypatch.context() as patch:
            patch.setattr(program_module, "interruptible", interrupted)
            with pytest.raises(KeyboardInterrupt):
                f(state, x)
        if late:
            with pytest.raises(DonatedError):
                state.numpy()
        else:
            assert not state.numpy().any()
            state = f(state, x)[0]
            np.testing.assert_array_equal(state.numpy(), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("last", [False, True])  # whether something is overwritten after the loop
@pytest.mark.parametrize("size", [100, 20_000])  # the steps of the second are shared by threads
@pytest.mark.sample(3)
def test_a_long_loop_over_donated_memory_stops(monkeypatch, size, threads, last):
    """And what it was given is as it was, by the long way and by the short one."""
    steps = 10_000_000 if size == 100 else 100_000  # which would take a second and more

    def interrupted(call, stop):
        other = threading.Timer(0.02, lambda: setattr(word, "value", 1))
        word = ctypes.c_int64.from_address(stop)
        other.start()
        assert call() == STOPPED
        other.join()
        raise KeyboardInterrupt

    def g(y):
        z = rg.scan(lambda y, _: (rg.tanh(y + 0.5), None), rg.sort(y), length=steps)[0]
        return y + z if last else z

    f = rg.jit(g, donate="y")
    start = np.linspace(0, 1, size, dtype=np.float32)
    with num_threads(threads):
        for _ in range(2):
            y = rg.tensor(start)
            with monkeypatch.context() as patch:
                patch.setattr(program_module, "interruptible", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    f(y)
            np.testing.assert_array_equal(y.numpy(), start)


def loop_program(size: int, steps: int) -> Executable:
    """A loop whose result could be written over a donated array, which is read before."""

    def f(y):
        return rg.scan(lambda y, _: (rg.tanh(y + 0.5), None), rg.sort(y), length=steps)[0]

    graph = rg.trace(f, spec((size,)))
    return Executable(graph, donate=(0,))


def test_loops_that_are_brief_or_over_very_large_arrays_overwrite_what_they_are_given(monkeypatch):
    assert loop_program(100, 100).donated == {0: 0}
    assert loop_program(100, 1_000_000).donated == {}
    monkeypatch.setattr(TUNING, "large_output_bytes", 399)
    assert loop_program(100, 1_000_000).donated == {0: 0}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process of its own")
@pytest.mark.slow
def test_ctrl_c_of_a_whole_process():
    code = """
from tests.runtime.test_interrupt import *
program = Endless()
program.then(lambda: print("running", flush=True))
try:
    program.run()
except KeyboardInterrupt:
    assert program.over
    assert programs().wrong("meet", 100, 2) == 0
    print("stopped", flush=True)
    for _ in range(6000):  # a signal just before a sleep begins does not end it
        time.sleep(0.01)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"src{os.pathsep}."},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "running\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == -signal.SIGINT  # as a process without threads would
