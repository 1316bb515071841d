"""What a graph tells of its compiled program."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime.denormals import tells
from retrograd.runtime.executable import Executable

ROWS = rg.Dim("N")


def layer(x, w):
    return rg.softmax(rg.relu(x @ w) @ w.T)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [4, 3000])
def test_compiled_bytes_are_those_of_a_call(rows, threads):
    with rg.num_threads(threads):
        graph = rg.trace(layer, rg.spec((rows, 64), rg.float32), rg.spec((64, 96), rg.float32))
        program = Executable(graph, simplify=True)
        assert graph.stats().compiled_bytes == program.predicted_peak
        assert "compiled peak" in str(graph.stats())


def test_compiled_bytes_need_sizes():
    graph = rg.trace(layer, rg.spec((ROWS, 64), rg.float32), rg.spec((64, 96), rg.float32))
    assert graph.stats().compiled_bytes is None
    assert "compiled peak" not in str(graph.stats())
    program = Executable(graph, simplify=True)
    assert graph.stats({"N": 20}).compiled_bytes == program.peak_bytes({"N": 20})


def test_explain_tells_kernels_and_times():
    graph = rg.trace(layer, rg.spec((3000, 64), rg.float32), rg.spec((64, 96), rg.float32))
    text = graph.explain()
    assert "row by row: " in text
    assert "stored: an output" in text
    assert "took" not in text
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("f") for s in ((3000, 64), (64, 96))]
    lines = graph.explain(*arrays).splitlines()
    assert sum("took" in line for line in lines) == int(lines[0].split()[0])


@pytest.mark.skipif(not tells(), reason="this processor does not tell")
def test_explain_says_which_kernels_met_subnormal_numbers():
    graph = rg.trace(lambda x: rg.tanh(x) @ x, rg.spec((40, 40), rg.float32))
    x = np.ones((40, 40), np.float32)
    assert "ubnormal" not in graph.explain(x)
    x[3, 4] = 1e-40
    text = graph.explain(x)
    assert "; met subnormal numbers" in text
    assert text.splitlines()[-1].endswith("`with rg.flush_subnormals():` has them count as zero.")
