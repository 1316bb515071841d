"""The module of a whole plan: what is alike is written once."""

from __future__ import annotations

import re

import pytest

import retrograd as rg
from retrograd.codegen.program.module import ModuleEmitter
from retrograd.ir import Dim, Graph
from retrograd.runtime.compiler import engine
from retrograd.schedule.planning.plan import KernelPlan
from tests.codegen.program.layers import layers


def lines(graph: Graph) -> int:
    return ModuleEmitter(KernelPlan(graph), engine().machine).text().count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [32, 4096, Dim("N")], ids=["small", "threaded", "symbolic"])
@pytest.mark.sample(1)
def test_what_is_compiled_does_not_grow_with_equal_layers(rows):
    """They share kernels, and the function that runs these is a table."""
    few, many = layers(20, rows), layers(80, rows)
    assert len(KernelPlan(many).kernels) > 3 * len(KernelPlan(few).kernels)
    assert lines(many) < 1.1 * lines(few)


def test_positions_behind_a_guard_are_not_written_as_vectors():
    """Masked loads take the guard and the first position; the others would be read by nothing."""

    def shifted(x):
        left = rg.pad(x, ((0, 0), (1, 1)))[:, :24]
        return left + rg.pad(x, ((0, 0), (0, 2)))[:, 2:]

    graph = rg.trace(shifted, rg.ones((3, 24)))
    kernel = ModuleEmitter(KernelPlan(graph), engine().machine).text().split("\n}\n")[0]
    kernel = kernel[kernel.index("define internal i64 @k") :]
    written = re.findall(r"(?m)^  (%[\w.]+) = (?!call)", kernel)
    assert written
    used = re.findall(r"%[\w.]+", kernel)
    assert [name for name in written if used.count(name) == 1] == []
