"""Memory that programs take: predicted, measured, and refused where there is not enough; and calls
that end early, when Ctrl-C is pressed or fewer threads are wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd import memory_limit
from retrograd.errors import MemoryLimitError
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import exp, tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import expand
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.tuning import TUNING
from tests.runtime.fuzz_checks import COUNTS, gather_threads
from tests.runtime.fuzz_graphs import Fuzz
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]


class Measured(Executable):
    """Counts the bytes it allocates."""

    taken = 0
    wanted = 1

    def allocate(self, shape, dtype):  # type: ignore[override]
        self.taken += int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return super().allocate(shape, dtype)

    def threads(self):
        return self.wanted


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.sample(1)
def test_the_predicted_peak_is_what_a_call_allocates(monkeypatch, count):
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)
    monkeypatch.setattr(TUNING, "group_rows", 1)
    monkeypatch.setattr(TUNING, "tile_grain_ns", 1)
    gather_threads()
    scratch = 0
    for seed in sampled(range(40), 8):
        f = Fuzz(seed, symbolic=seed % 4 == 3, rows=seed % 2 == 0)
        program = Measured(real_graph(f.graph(20)))
        program.wanted = count
        scratch += program.recipe.facts.scratch
        for sizes in f.bindings:
            program._shaped.clear()
            if program.graph.dim_names:
                program.last = None
            program.taken = 0
            program(f.arrays(sizes))
            assert program.predicted_peak == program.taken, seed
            assert program.peak_bytes(sizes) == program.taken, seed
    assert scratch


def large(n):
    """A program whose temporary and output cannot be fused away."""
    x = input_node(spec((n,), float32), "x")
    wide = exp(expand(x, (n, n), (0,))).renamed("wide")
    total = expand(ReduceSum((0,))(wide), (n, n), (0,))
    return Graph([x], [matmul(wide, total).renamed("result")])


@pytest.mark.slow
def test_what_is_interpreted_is_refused_as_well():
    for n, sizes in ((10**8, [10**8]), (Dim("N"), [10**7, 10**6])):
        program = OpByOpExecutor(large(n))
        for size in sizes:
            with pytest.raises(MemoryLimitError, match=r"needs .* more than") as caught:
                program([np.ones(size, np.float32)])
            assert "wide" in str(caught.value)
    assert program([np.ones(3, np.float32)])[0].shape == (3, 3)


def test_what_is_dead_when_interpreted_counts_no_more(monkeypatch):
    monkeypatch.setattr(memory_limit, "UNNOTICED", 0)
    x = input_node(spec((1000,), float32), "x")
    y = x
    for _ in range(9):
        y = exp(y)
    program = OpByOpExecutor(Graph([x], [y]))
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 8000)
    assert program([np.zeros(1000, np.float32)])[0].shape == (1000,)
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 7999)
    with pytest.raises(MemoryLimitError):
        OpByOpExecutor(program.graph)([np.zeros(1000, np.float32)])


def test_a_graph_of_absurd_size_is_refused_before_it_runs():
    for n in (10**8, 2**40):
        with pytest.raises(MemoryLimitError, match=r"needs .* more than .* available") as caught:
            Executable(large(n))
        assert isinstance(caught.value, MemoryError)
        assert "result" in str(caught.value)


def test_symbolic_sizes_are_refused_when_they_are_known(monkeypatch):
    monkeypatch.setattr(memory_limit, "UNNOTICED", 1000)
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 2_000_000)
    program = Measured(large(Dim("N")))
    assert program([np.zeros(50, np.float32)])[0].shape == (50, 50)
    program.taken = 0
    with pytest.raises(MemoryLimitError) as caught:
        program([np.zeros(800, np.float32)])
    assert program.taken <= 10_000  # outputs of the sizes before, to see whether these are the same
    assert "with the sizes {'N': 800}" in str(caught.value)
    assert memory_limit.scaled(program.peak_bytes({"N": 800})) in str(caught.value)
    assert "2.56 MB: output" in str(caught.value)
    assert program([np.zeros(50, np.float32)])[0].shape == (50, 50)  # usable after an error


def test_the_number_of_threads_of_the_latest_call_counts(monkeypatch):
    """Not that of the call for which memory was first made."""
    monkeypatch.setattr(TUNING, "parallel_grain_ns", 0)
    gather_threads()
    x = input_node(spec((64, 64), float32))
    program = Executable(Graph([x], [tanh(ReduceSum((1,))(exp(x)))]))
    used = []
    enter = program.run_once

    def noted(frame):
        used.append(frame.threads)
        return enter(frame)

    monkeypatch.setattr(program, "run_once", noted)
    before = rg.num_threads()
    for n in (2, 1, 3, 3, 1):
        with rg.num_threads(n):
            program([np.zeros((64, 64), np.float32)])
    assert used == [2, 1, 3, 3, 1]
    assert rg.num_threads() == before


INTERRUPTED = """
import signal, sys, time
import numpy as np
from retrograd.runtime.executable import Executable
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import tanh
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import matmul
from tests.runtime.test_memory_limit import Measured
signal.signal(signal.SIGINT, signal.default_int_handler)
rows, Measured.wanted = {rows}, {threads}
x, w = (input_node(spec(s, float32)) for s in ((rows, 1600), (1600, 1600)))
y = x
for _ in range(400):
    y = tanh(matmul(y, w))
program = Measured(Graph([x, w], [y]))
a = np.eye(1600, dtype=np.float32)
print("running", flush=True)
start = time.monotonic()
try:
    program([a, a])
    print("ran to its end")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process of its own")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", ["1600", 'Dim("N")'], ids=["static", "symbolic"])
@pytest.mark.sample(1)
def test_ctrl_c_ends_a_long_program(rows, threads):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(rows=rows, threads=threads)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"src{os.pathsep}.", "RETROGRAD_CACHE_DIR": "off"},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "running\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert process.wait(30) == 0
