"""Kernels: what they read, copies of them, and other buffers in their place."""

import numpy as np

import retrograd as rg
from retrograd.ir import float32, spec
from retrograd.passes import optimize
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel, copied, rename
from retrograd.schedule.planning.plan import KernelPlan
from tests.schedule.evaluation import Memory, run

A, B = (np.arange(6, dtype=np.float32).reshape(2, 3) + k for k in (0, 10))


def two_results() -> tuple[KernelPlan, Kernel]:
    types = [spec((2, 3), float32)] * 2
    plan = KernelPlan(optimize(rg.trace(lambda x, y: (x - y, x + y), *types)))
    (kernel,) = plan.kernels
    return plan, kernel


def ran(kernel: Kernel, memory: Memory) -> None:
    for nest in kernel.nests:
        run(nest, memory)


def memory_of(plan: KernelPlan, *others: Buffer) -> dict[Buffer, np.ndarray]:
    found = dict(zip(plan.inputs, (A, B), strict=True))
    return found | {b: np.full((2, 3), np.nan, np.float32) for b in (*plan.outputs, *others)}


def test_reads_and_results() -> None:
    plan, kernel = two_results()
    assert set(kernel.reads) == set(plan.inputs)
    assert kernel.outs == plan.outputs
    memory = memory_of(plan)
    ran(kernel, memory)
    np.testing.assert_allclose(memory[plan.outputs[0]], A - B, 1e-6)
    np.testing.assert_allclose(memory[plan.outputs[1]], A + B, 1e-6)


def test_a_copy_computes_some_of_the_results_and_shares_nothing() -> None:
    plan, kernel = two_results()
    again = copied(kernel, plan.outputs[1:])
    assert again.outs == plan.outputs[1:]
    values = {v for n in kernel.nests for v in n.body.values}
    assert values.isdisjoint(v for n in again.nests for v in n.body.values)
    fresh = Buffer("temporary", 0, plan.outputs[1].type, plan.outputs[1].node)
    rename(again, {plan.outputs[1]: fresh})
    memory = memory_of(plan, fresh)
    ran(again, memory)
    np.testing.assert_allclose(memory[fresh], A + B, 1e-6)
    assert all(np.isnan(memory[b]).all() for b in plan.outputs)
    ran(kernel, memory)  # which is as it was
    np.testing.assert_allclose(memory[plan.outputs[1]], A + B, 1e-6)


def test_renamed_operands_are_read() -> None:
    plan, kernel = two_results()
    x, y = plan.inputs
    rename(kernel, {x: y, y: x})
    assert set(kernel.reads) == {x, y}
    memory = memory_of(plan)
    ran(kernel, memory)
    np.testing.assert_allclose(memory[plan.outputs[0]], B - A, 1e-6)
