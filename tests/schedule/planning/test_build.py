"""From a graph to kernels and buffers: outputs that are inputs, constants, or each other."""

import numpy as np

import retrograd as rg
from retrograd.ir import Graph, Node, float32, spec
from retrograd.ops.elementwise import exp, mul, sin
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan


def given(*shape: int) -> Node:
    return input_node(spec(shape, float32))


def test_outputs_that_are_there_already_are_copied() -> None:
    """Each output is an array of its own."""
    x = given(4)
    c, y = constant(np.arange(3, dtype=np.float32)), sin(x)
    graph = Graph([x], [x, y, y, c, x])
    a = np.arange(4, dtype=np.float32)
    found = Executable(graph)([a])
    for z, right in zip(found, [a, np.sin(a), np.sin(a), np.arange(3), a], strict=True):
        np.testing.assert_allclose(z, right, 1e-6)
    assert len({z.ctypes.data for z in (*found, a)}) == 6


def test_every_buffer_is_written_before_it_is_read() -> None:
    def f(x, y):
        z = rg.softmax(x @ y)
        return rg.cumsum(z @ z, 0).sum(0), rg.scan(lambda c, r: (c + r, c * z[0]), z[0], z)[1]

    plan = KernelPlan(rg.trace(rg.grad(lambda x, y: sum(o.sum() for o in f(x, y))),
                               spec((9, 9), float32), spec((9, 9), float32)))  # fmt: skip
    known = {*plan.inputs, *plan.constants}
    for kernel in plan.kernels:
        own = [b for b in kernel.reads if b.kind in ("temporary", "output")]
        assert known.issuperset(b for b in own if b not in kernel.outs)
        known.update(kernel.outs)
    assert known.issuperset(plan.outputs)


def test_small_constants_are_no_buffers() -> None:
    x = given(4)
    two, many = constant(np.float32(2)), constant(np.arange(4, dtype=np.float32))
    plan = KernelPlan(Graph([x], [mul(mul(x, many), x * 2)]))
    assert [b.node.shape for b in plan.constants] == [(4,)]
    assert two.shape == ()


def test_elementwise_chains_are_one_kernel_and_reductions_end_it() -> None:
    x = given(30, 7)
    y = exp(sin(x * x) + x)
    assert len(KernelPlan(Graph([x], [y])).kernels) == 1
    total = ReduceSum((1,))(y)
    plan = KernelPlan(Graph([x], [sin(total)]))
    assert [k.nests[-1].kind for k in plan.kernels] == ["row", "map"]
    assert [b.type.shape for b in plan.temporaries] == [(30,)]
