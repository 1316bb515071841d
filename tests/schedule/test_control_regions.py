"""Regions: which kernels a loop or a choice runs, how often, and on which memory."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.runtime.executable import Executable
from retrograd.schedule.control_regions import flat, hidden_names, length_of, regions_of
from retrograd.schedule.planning.plan import KernelPlan

N = Dim("N")


def plan(f, *shapes) -> KernelPlan:
    return KernelPlan(rg.trace(f, *[spec(s, float32) for s in shapes]))


def both(c, x):
    return c + rg.exp(x), rg.sin(c)


def test_how_often_blocks_run() -> None:
    def length(f, *shapes):
        p = plan(f, *shapes)
        (region,) = [r for k in p.kernels for r in regions_of(k)]
        return length_of(region), len(region.blocks)

    assert length(lambda c, xs: rg.scan(both, c, xs), (3,), (7, 3)) == (7, 1)
    assert length(lambda c, xs: rg.scan(both, c, xs), (3,), (N, 3)) == (N, 1)
    grow = length(lambda x: rg.while_loop(lambda y: y.sum() < 9, lambda y: y * 2, x), (3,))
    assert grow == (None, 2)
    choice = length(lambda x: rg.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, x), (3,))
    assert choice == (1, 2)


def test_kernels_inside_come_after_the_one_that_runs_them() -> None:
    def nested(x):
        return rg.fori_loop(0, 3, lambda i, y: rg.fori_loop(0, 2, lambda j, z: rg.exp(-z), y), x)

    p = plan(nested, (4,))
    every = list(flat(p.kernels))
    assert len(every) > len(p.kernels)
    place = {id(k): n for n, k in enumerate(every)}
    assert len(place) == len(every)
    for k in every:
        for region in regions_of(k):
            assert all(place[id(inner)] > place[id(k)] for _, inner in region.timed)


def test_what_changes_from_step_to_step_is_a_cursor() -> None:
    """A carry has one into a step and one out of it; what is gone through has one."""
    p = plan(lambda c, xs: rg.scan(both, c, xs), (3,), (7, 3))
    (region,) = [r for k in p.kernels for r in regions_of(k)]
    (carry,) = region.carries
    assert {carry.into, carry.out} <= set(p.cursors)
    assert [r.row.type.shape for r in region.rows] == [(3,), (3,)]
    wholes = [r.whole for r in region.rows]
    assert p.inputs[1] in wholes
    assert wholes[1] in p.outputs or wholes[0] in p.outputs


def test_sizes_that_become_known_on_the_way() -> None:
    def f(x):
        return rg.while_loop(lambda y: y.sum() < 50, lambda y: y * y + 1, x).sum()

    assert hidden_names(plan(f, (3,)).kernels) == []
    found = hidden_names(
        plan(rg.grad(f), (3,)).kernels
    )  # the steps are kept, nobody knows how many
    assert len(found) == 1


@pytest.mark.parametrize("length", [0, 1, 5])
def test_carries_end_where_the_result_is(length: int) -> None:
    """Two memories take turns, whether the number of steps is even or odd."""

    def f(a, b, xs):
        return rg.scan(lambda c, x: ((c[1] + x, c[0]), c[0] * x), (a, b), xs)

    program = Executable(rg.trace(f, *[spec(s, float32) for s in ((2,), (2,), (N, 2))]))
    a, b = np.array([1.0, 2], np.float32), np.array([3.0, -1], np.float32)
    xs = np.arange(2 * length, dtype=np.float32).reshape(length, 2)
    found = program([a, b, xs])
    rows = []
    for x in xs:
        rows.append(a * x)
        a, b = b + x, a
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_array_equal(found[1], b)
    np.testing.assert_array_equal(found[2], np.reshape(rows, (length, 2)))
