"""Programs that are compiled while nobody waits for them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Graph, Node, float32, spec
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.runtime.executors import background_compiler, op_kernels, tiered
from retrograd.runtime.executors.background_compiler import BackgroundCompiler
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.runtime.executors.tiered import Patience, TieredProgram
from retrograd.tuning import TUNING

X = np.linspace(-1, 1, 5, dtype=np.float32)


class Slow:
    """Something to compile, which waits until it may."""

    def __init__(self, names: list[str], name: str, error: Exception | None = None) -> None:
        self.names, self.name, self.error = names, name, error
        self.may = threading.Event()
        self.may.set()

    def compile(self) -> None:
        self.may.wait(60)
        self.names.append(self.name)
        if self.error is not None:
            raise self.error


def program(nodes: int = 1) -> TieredProgram:
    y = x = input_node(spec((5,), float32))
    for _ in range(nodes):
        y = el.tanh(y)
    return TieredProgram(Graph([x], [y]))


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The thread of this test."""
    found = BackgroundCompiler()
    monkeypatch.setattr(tiered, "BEHIND", found)
    yield found
    found.finish()


def test_what_ran_once_is_compiled_while_nobody_waits(own: BackgroundCompiler) -> None:
    p = program()
    first = p([X])[0].tobytes()
    own.finish()
    assert p.is_compiled
    assert p([X])[0].tobytes() == first
    assert own._thread is None


def test_products_of_matrices_get_their_best_code_in_the_background(
    own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for the first large product gets it from code that is made in haste."""
    made: list[tuple[int, str]] = []
    compiled = op_kernels._compiled

    def noted(node: Node, kind: str, level: int) -> op_kernels.Code:
        made.append((level, threading.current_thread().name))
        return compiled(node, kind, level)

    monkeypatch.setattr(op_kernels, "BEHIND", own)
    monkeypatch.setattr(op_kernels, "_PROGRAMS", {})
    monkeypatch.setattr(op_kernels, "_compiled", noted)
    here, behind = threading.current_thread().name, "retrograd-compiler"

    def product(n: int) -> bytes:
        x = input_node(spec((n, n), float32))
        a = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
        (y,) = OpByOpExecutor(Graph([x], [DotGeneral((1,), (0,))(x, x)]))([a])
        return y.tobytes()

    product(8)
    monkeypatch.setattr(TUNING, "background_idle_s", 3600.0)
    large = product(256)
    assert made == [(0, here), (1, here)]
    own.finish()
    assert made[2:] == [(2, behind)]
    assert product(256) == large
    assert len(made) == 3


def test_a_product_that_takes_longer_than_the_compiler_waits_for_it(
    own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op_kernels, "BEHIND", own)
    monkeypatch.setattr(op_kernels, "_PROGRAMS", {})
    monkeypatch.setattr(TUNING, "hasty_product_work", 1 << 20)
    x = input_node(spec((256, 256), float32))
    kernel = op_kernels.OpKernel(DotGeneral((1,), (0,))(x, x))
    kernel.program()
    assert [code.level for code in op_kernels._PROGRAMS.values()] == [2]
    assert own._thread is None


def test_what_ran_last_comes_first_and_what_fails_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    b = BackgroundCompiler()
    done: list[str] = []
    gate = Slow(done, "gate")
    gate.may.clear()
    b.ran(gate)
    monkeypatch.setattr(TUNING, "background_idle_s", 0.0)
    while b._waiting:  # it has been taken, and waits for its gate
        pass
    every = [Slow(done, name, ValueError(name) if name == "b" else None) for name in "abc"]
    for x in (*every, every[0]):
        b.ran(x)
    gate.may.set()
    b.finish()
    assert done == ["gate", "a", "c", "b"]


def test_no_more_than_some_wait_and_nothing_lives_for_it() -> None:
    b = BackgroundCompiler()
    done: list[str] = []
    every = [Slow(done, str(i)) for i in range(TUNING.background_programs + 3)]
    for x in every:
        b.ran(x)
    del every[-1], x
    gc.collect()
    b.finish()
    assert done == [str(i) for i in reversed(range(3, TUNING.background_programs + 2))]


def test_it_waits_for_quiet(own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUNING, "background_idle_s", 3600.0)
    p = program()
    p([X])
    assert own._thread is not None
    assert own._thread.is_alive()
    assert not p.is_compiled
    monkeypatch.setattr(TUNING, "background_idle_s", 0.0)
    own.finish()
    assert p.is_compiled


def test_large_and_rare_programs_are_left_to_those_who_run_them(own: BackgroundCompiler) -> None:
    x = input_node(spec((5,), float32))
    large, rare = (
        program(TUNING.waiting_nodes + 1),
        TieredProgram(Graph([x], [el.exp(x)]), patience=Patience.RUNS),
    )
    for p in (large, rare):
        p([X])
        assert not p.is_compiled
    assert own._thread is None


def test_a_thread_that_cannot_be_had(
    own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    p = program()
    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", start)
        first = p([X])[0].tobytes()
    assert own._thread is None
    assert not p.is_compiled
    assert p([X])[0].tobytes() == first
    own.finish()
    assert p.is_compiled


def test_it_is_compiled_by_whoever_is_first(own: BackgroundCompiler) -> None:
    """Some threads run a program while another one compiles it."""
    p, found = program(8), []
    expected = p([X])[0].tobytes()

    def run() -> None:
        found.append({p([X])[0].tobytes() for _ in range(300)})

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    own.finish()
    for t in threads:
        t.join()
    assert found == [{expected}] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_there_is_no_thread_while_the_process_forks(
    own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TUNING, "background_idle_s", 3600.0)
    p = program()
    p([X])
    own.before_fork()
    assert own._thread is None
    p([X])  # waits, but starts nothing
    assert own._thread is None
    own.after_fork()
    assert not p.is_compiled
    p([X])
    assert own._thread is not None
    monkeypatch.setattr(TUNING, "background_idle_s", 0.0)
    own.finish()
    assert p.is_compiled


def run(code: str) -> str:
    """What a process of its own says."""
    env = {**os.environ, background_compiler.VARIABLE: "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_a_process_that_types_forks_and_ends() -> None:
    code = """
import os, time, warnings, threading
warnings.filterwarnings("ignore", "This process.*fork", DeprecationWarning)
import retrograd as rg
from retrograd.runtime.executors import background_compiler as behind
from retrograd.runtime.executors.background_compiler import BEHIND
from retrograd.eager.program_cache import PROGRAMS
x = rg.tensor([0.5, 1.0])
def use():
    return [y.numpy().tolist() for y in (rg.exp(x), x + 1, rg.softmax(x, axis=-1))]
first = use()
if pid := os.fork():
    assert os.waitpid(pid, 0)[1] == 0
else:
    assert use() == first
    BEHIND.finish()
    assert all(p.is_compiled for p in PROGRAMS.values())
    assert use() == first
    os._exit(0)
assert use() == first
BEHIND.finish()
assert all(p.is_compiled for p in PROGRAMS.values())
assert use() == first
print(len(PROGRAMS))
behind.QUIET = 3600.0
(rg.sin(x) * 3).numpy()
assert any(t.name == "retrograd-compiler" for t in threading.enumerate())
"""
    assert run(code) == "3\n"


@pytest.mark.slow
def test_it_can_be_switched_off() -> None:
    code = "import threading, retrograd as rg; "
    code += "from retrograd.runtime.executors import background_compiler; "
    code += "background_compiler.QUIET = 3600.0; rg.exp(rg.ones(3)).numpy(); "
    code += "print([t.name for t in threading.enumerate()])"
    assert "retrograd-compiler" in run(code)
    env = {**os.environ, background_compiler.VARIABLE: "0"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert b"retrograd-compiler" not in out.stdout


def test_nothing_begins_while_somebody_waits(
    own: BackgroundCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TUNING, "background_idle_s", 0.0)
    names: list[str] = []
    with own.held():
        waiting = Slow(names, "a")
        own.ran(waiting)
        time.sleep(5 * TUNING.background_poll_s)
        assert names == []
    own.finish()
    assert names == ["a"]


def test_what_waits_can_be_forgotten(own: BackgroundCompiler) -> None:
    names: list[str] = []
    waiting = Slow(names, "a")
    own.ran(waiting)
    own.forget()
    own.finish()
    assert names == []
    own.ran(waiting)
    own.finish()
    assert names == ["a"]
