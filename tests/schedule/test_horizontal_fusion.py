"""Nodes that share work go into one nest, and those that share nothing do not."""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.ops.elementwise import exp, mul, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Permute
from retrograd.passes import optimize
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.horizontal_fusion import FusedMap, buffers_read
from retrograd.schedule.planning.plan import KernelPlan
from tests.schedule.evaluation import run


def kernels(f: Any, *shapes: Any) -> list[int]:
    """How many results each kernel has."""
    plan = KernelPlan(optimize(rg.trace(f, *[spec(s, float32) for s in shapes])))
    return sorted(len(k.outs) for k in plan.kernels)


def test_what_shares_a_load_or_a_result_is_one_kernel() -> None:
    for shape in ((5, 3), (Dim("N"), 3)):
        assert kernels(lambda x, y: (x + y, x * y, rg.exp(x)), shape, shape) == [3]
    assert kernels(lambda x, y: (rg.exp(x), rg.exp(y)), (5,), (5,)) == [1, 1]
    assert kernels(lambda x, y: (rg.exp(x), rg.exp(y)), (5,), (6,)) == [1, 1]


def test_what_reads_a_result_at_other_places_comes_after_it() -> None:
    x = input_node(spec((3, 3), float32))
    y = exp(x)
    z, own = mul(Permute((1, 0))(y), x), sin(y)
    stored = {n: Buffer("temporary", k, n.type, n) for k, n in enumerate((x, y, z, own))}
    group = FusedMap((3, 3), stored, 0)
    assert group.try_add(y, buffers_read(y, stored), {})
    assert not group.try_add(z, buffers_read(z, stored), {})
    assert group.try_add(own, buffers_read(own, stored), {})
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    memory = {stored[n]: np.zeros((3, 3), np.float32) for n in (y, z, own)} | {stored[x]: a}
    run(group.nest(), memory)
    np.testing.assert_allclose(memory[stored[y]], np.exp(a), 1e-6)
    np.testing.assert_allclose(memory[stored[own]], np.sin(np.exp(a)), 1e-5)
    assert not memory[stored[z]].any()


def test_a_kernel_in_between_is_not_passed() -> None:
    """What is needed is made by a later kernel than the group."""
    x, w = (input_node(spec((4,), float32)) for _ in range(2))
    y, z = exp(x), mul(x, w)
    stored = {n: Buffer("temporary", k, n.type, n) for k, n in enumerate((x, w, y, z))}
    group = FusedMap((4,), stored, 2)
    assert group.try_add(y, {stored[x]}, {})
    assert not group.try_add(z, {stored[x], stored[w]}, {stored[w]: 3})
    assert group.try_add(z, {stored[x], stored[w]}, {stored[w]: 1})


def test_buffers_behind_what_is_not_stored() -> None:
    x, w = (input_node(spec((4,), float32)) for _ in range(2))
    y = exp(x)
    z = mul(sin(y), w)
    inputs = {n: Buffer("input", k, n.type, n) for k, n in enumerate((x, w))}
    assert buffers_read(z, inputs) == set(inputs.values())
    own = Buffer("temporary", 0, y.type, y)
    assert buffers_read(z, inputs | {y: own}) == {own, inputs[w]}


def test_equal_parts_of_a_concat_are_computed_in_one_nest() -> None:
    """Each writes its own places, and what they share is computed once."""

    def parts(x: Any, y: Any) -> Any:
        shared = rg.exp(x) * y
        return rg.concat([shared, rg.sin(shared), x], axis=-1), shared + 1

    for shape in ((3, 20), (Dim("N"), 20), (3, Dim("N"))):
        plan = KernelPlan(optimize(rg.trace(parts, *[spec(shape, float32)] * 2)))
        (kernel,) = plan.kernels
        (nest,) = kernel.nests
        assert len(nest.stores) == 5  # what is shared, three parts, the sum
        assert len(nest.loops) == 2
    x, y = (np.random.default_rng(k).normal(size=(3, 20)).astype(np.float32) for k in range(2))
    for axis in (0, 1):
        f = lambda x, y, axis=axis: rg.concat([rg.exp(x), y, x * y], axis=axis)
        expected = np.concatenate([np.exp(x), y, x * y], axis=axis)
        np.testing.assert_allclose(rg.jit(f)(x, y).numpy(), expected, rtol=1e-6)
    thin = optimize(rg.trace(lambda x, y: rg.concat([x, y], -1), *[spec((9, 2), float32)] * 2))
    assert len(KernelPlan(thin).kernels[0].nests[0].stores) == 1
