"""Loops, gone through by the host."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd.runtime.executable import Executable
from tests.nvptx.test_executable import X, made


def test_loops_of_a_known_length_are_in_the_graph() -> None:
    def f(x: rg.Tensor) -> rg.Tensor:
        return rg.scan(lambda c, row: (c * 0.5 + row, c.sum()), rg.zeros(4), x)[1]

    program, device, graph = made(f, X)
    for _ in range(3):
        np.testing.assert_array_equal(program([X])[0], Executable(graph, simplify=True)([X])[0])
    assert device.graphs > 0


def test_loops_that_end_by_themselves() -> None:
    def f(x: rg.Tensor) -> rg.Tensor:
        return rg.while_loop(lambda v: v.sum() < 100, lambda v: v * 2, x)

    x = np.ones((3, 4), np.float32)
    program, device, _ = made(f, x)
    np.testing.assert_array_equal(program([x])[0], x * 16)
    assert device.graphs == 0
