"""Plans: when temporaries live, what a call allocates, which inputs are overwritten."""

import pytest

import retrograd as rg
from retrograd.errors import ShapeError
from retrograd.ir import Dim, Graph, float32, int64, spec
from retrograd.ops.index import Gather
from retrograd.ops.leaf import input_node
from retrograd.passes import optimize
from retrograd.schedule.buffer import ALIGNMENT
from retrograd.schedule.planning.plan import KernelPlan, lifetimes, may_end

N = Dim("N")


def chain(x):
    """Each result is read by the next step alone."""
    for _ in range(4):
        x = rg.cumsum(x, 0)
    return x


def test_temporaries_live_from_the_first_write_to_the_last_read() -> None:
    plan = KernelPlan(rg.trace(lambda x: chain(x) + rg.cumsum(x, 0), spec((5, 3), float32)))
    timed = list(enumerate(plan.kernels))
    times = lifetimes(timed, lambda b: b.kind == "temporary")
    assert times
    for buffer, (first, last) in times.items():
        used = [t for t, k in timed if buffer in k.outs or buffer in k.reads]
        assert (first[0], last[0]) == (min(used), max(used))
    assert list(times) == sorted(times, key=lambda b: times[b][0])


def test_memory_of_a_chain_is_that_of_two_steps() -> None:
    plan = KernelPlan(rg.trace(chain, spec((N,), float32)))
    for n in (16, 1000):
        size = -(-4 * n // ALIGNMENT) * ALIGNMENT
        assert plan.layout({"N": n}).arena <= 2 * max(size, 2 * n * 4)
        arrays = plan.arrays({"N": n})
        assert [size for size, what in arrays if what.startswith("output")] == [4 * n]
        assert plan.peak_bytes({"N": n}) >= plan.layout({"N": n}).arena + 4 * n


def test_each_thread_has_its_own_scratch() -> None:
    plan = KernelPlan(
        rg.trace(lambda x, y: rg.softmax(x @ y) @ y, *[spec((600, 600), float32)] * 2)
    )
    assert plan.threaded
    one, three = (plan.peak_bytes({}, threads=k) for k in (1, 3))
    assert three - one == 2 * plan.scratch.arena > 0


def test_sizes_that_make_no_sense_have_no_layout() -> None:
    plan = KernelPlan(rg.trace(lambda x: x[: N - 3], spec((N,), float32)))
    assert plan.layout({"N": 3}).arena >= 0
    with pytest.raises(ShapeError):
        plan.layout({"N": 2})


def test_a_donated_input_is_the_output_of_its_type() -> None:
    types = [spec((7,), float32), spec((8,), float32)]
    graph = rg.trace(lambda x, y: (y * 2.0, x + 1.0), *types)
    plan = KernelPlan(graph, donate=(0, 1))
    assert plan.donated == {0: 1, 1: 0}
    assert [b.kind for b in plan.outputs] == ["input", "input"]
    assert KernelPlan(graph).donated == {}


def test_what_may_end_a_run() -> None:
    x, i = input_node(spec((4,), float32)), input_node(spec((3,), int64))
    plan = KernelPlan(Graph([x, i], [Gather(0)(x, i)]))
    assert plan.checks
    assert all(may_end(n) for n in plan.checks)
    assert not KernelPlan(optimize(rg.trace(lambda x: x * 2.0, spec((4,), float32)))).checks


def test_a_light_plan_cuts_nothing() -> None:
    graph = rg.trace(lambda x, y: rg.exp(x @ y), *[spec((600, 600), float32)] * 2)
    assert not KernelPlan(graph, light=True).threaded
    assert KernelPlan(graph).threaded
