"""Kernels that are alike, which are written once, and those that only look alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.codegen.kernel_key import KernelKey, UnknownMeaning
from retrograd.codegen.program.module import ModuleEmitter
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import div
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import expand
from retrograd.passes.lowering.complex import real_graph
from retrograd.runtime.compiler import engine
from retrograd.runtime.executable import Executable
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.loop_nest import Store
from retrograd.schedule.mapping import mapping
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.ssa import ScalarBlock
from tests.runtime.agreement import assert_same, sample
from tests.runtime.fuzz_graphs import Fuzz


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sample(5)
def test_kernels_that_are_alike_are_written_alike(monkeypatch, seed):
    """The text of a module is the same whether they are recognised before or after writing."""
    f = Fuzz(seed, symbolic=seed % 3 == 2, rows=seed % 2 == 0)
    graph = real_graph(f.graph(30))
    texts = []
    for hide in (False, True):
        with monkeypatch.context() as patch:
            if hide:
                patch.setattr(KernelKey, "_nest", unknown)
            module = ModuleEmitter(KernelPlan(graph), engine().machine)
            texts.append(module.text())
    assert texts[0] == texts[1]


def unknown(*given):
    raise UnknownMeaning


def test_numbers_that_are_equal_are_not_always_alike():
    numbers = [np.float32(v) for v in (0.0, -0.0, 1.0, np.nan)]
    inputs = [input_node(spec((4,)), f"x{k}") for k in range(4)]
    outputs = [
        div(x, expand(constant(v), (4,), (0,))) for x, v in zip(inputs, numbers, strict=True)
    ]
    program = Executable(Graph(inputs, outputs))
    assert len(program.plan.kernels) == program.functions == 4
    assert_same(program.graph, [sample((4,), float32)] * 4, 8, program)


def with_attribute(attribute: Any) -> KernelKey:
    """Of `y = f(x)`, where the instruction says so much more."""
    x, y = (input_node(spec((4,))) for _ in range(2))
    given, out = Buffer("input", 0, x.type, x), Buffer("output", 0, y.type, y)
    body = ScalarBlock()
    value = body.make("f", (body.load(given, body.loop(0), float32),), float32, attribute)
    return KernelKey(Kernel([y], [mapping([4], body, [Store(out, body.loop(0), value)])], [out]))


def test_attributes_that_are_equal_and_written_otherwise() -> None:
    """Buffers have numbers in the order of the key; what has no known meaning has no key."""
    values = [1, True, 1.0, "1", (1,), np.float32(1), np.float64(1), None, Dim("N")]
    keys = [with_attribute(v).key for v in values]
    assert None not in keys
    assert len({*keys}) == len(values)
    assert keys == [with_attribute(v).key for v in values]
    found = with_attribute(1).buffers
    assert [(b.kind, n) for b, n in found.items()] == [("input", 0), ("output", 1)]
    assert with_attribute(object()).key is None
