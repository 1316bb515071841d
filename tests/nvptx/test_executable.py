"""Programs of a device: control flow, graphs of launches, arrays that stay there, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.nvptx.executable import DeviceProgram
from retrograd.runtime.executable import Executable
from tests.nvptx.interpreted_device import InterpretedDevice, interpreted

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def made(
    f: Callable[..., Any], *arrays: np.ndarray
) -> tuple[DeviceProgram, InterpretedDevice, Graph]:
    graph, device = rg.trace(f, *arrays), InterpretedDevice()
    return DeviceProgram(graph, device), device, graph


def test_commands_are_one_graph_the_second_time() -> None:
    program, device, graph = made(lambda x: rg.softmax(x @ x.T), X)
    expected = Executable(graph, simplify=True)([X])[0]
    launches = []
    for _ in range(4):
        before = device.launches
        np.testing.assert_array_equal(program([X])[0], expected)
        launches.append(device.launches - before)
    assert device.graphs >= 2
    assert launches[-1] == 0  # they are run by the graph
    other = program([X + 1])[0]
    np.testing.assert_array_equal(other, Executable(graph, simplify=True)([X + 1])[0])


def test_an_index_out_of_range() -> None:
    index = np.array([0, 3, 2])
    program, _, graph = made(lambda x, i: x[i], X, index)
    with pytest.raises(rg.IndexRangeError) as here:
        program([X, index])
    with pytest.raises(rg.IndexRangeError) as there:
        Executable(graph, simplify=True)([X, index])
    assert str(here.value) == str(there.value)
    index[1] = -1
    np.testing.assert_array_equal(program([X, index])[0], X[index])


def test_more_memory_than_there_is() -> None:
    graph = rg.trace(lambda x: (x[:, None] * x).sum(1), np.ones(20000, np.float32))
    program = DeviceProgram(graph, InterpretedDevice(memory=1 << 20))
    text = r"a call needs .* available on an interpreter"
    big = rg.trace(lambda x: x[:, None] * x, np.ones(20000, np.float32))
    with pytest.raises(rg.MemoryLimitError, match=text):
        DeviceProgram(big, program.device)([np.ones(20000, np.float32)])


def test_named_sizes() -> None:
    graph = rg.trace(lambda x: x / x.sum(), rg.spec((rg.Dim("n"),)))
    program = interpreted(graph)
    for n in (1, 5, 300):
        x = np.arange(1, n + 1, dtype=np.float32)
        np.testing.assert_allclose(program([x])[0], x / x.sum(), rtol=1e-6)


def test_empty_arrays() -> None:
    program, _, _ = made(lambda x: (x * 2, x.sum(0), x.sum(1)), np.ones((0, 3), np.float32))
    found = program([np.ones((0, 3), np.float32)])
    assert [y.shape for y in found] == [(0, 3), (3,), (0,)]
    np.testing.assert_array_equal(found[1], np.zeros(3))


@pytest.mark.slow
def test_losses_of_training_have_the_bits_of_a_processor() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 8)).astype(np.float32), rng.integers(0, 4, 16)
    weights = [rng.normal(0, 0.4, s).astype(np.float32) for s in ((8, 32), (32, 4))]

    def step(a: Any, b: Any, x: Any, y: Any) -> Any:
        def loss(a: Any, b: Any) -> Any:
            return rg.nn.functional.cross_entropy(rg.relu(x @ a) @ b, y)

        value, grads = rg.value_and_grad(loss, (0, 1))(a, b)
        return value, a - 0.1 * grads[0], b - 0.1 * grads[1]

    graph = rg.trace(step, *weights, x, y)
    losses = []
    for program in (interpreted(graph), Executable(graph, simplify=True)):
        (a, b), found = weights, []
        for _ in range(4):
            value, a, b = program([a, b, x, y])
            found.append(float(value))
        losses.append(found)
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
