"""Loop nests: one loop for what lies side by side, and nothing that nobody needs."""

import numpy as np

from retrograd.ir import Dim, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import CheckNest, LoopNest, Store, live, loops_over, mapping
from retrograd.schedule.ssa import ScalarBlock
from tests.schedule.evaluation import run

N = Dim("N")


def buffer(kind: str, *shape: int | Dim) -> Buffer:
    x = input_node(spec(shape, float32))
    return Buffer(kind, 0, x.type, x)


def test_axes_of_one_element_have_no_loop() -> None:
    body = ScalarBlock()
    loops, index = loops_over(body, (1, 4, 1, N))
    assert loops == [4, N]
    assert [v.op for v in index] == ["size", "loop", "size", "loop"]


def doubled(turned: bool, shape: tuple[int | Dim, ...] = (3, 4)) -> tuple[LoopNest, Buffer, Buffer]:
    """`y = x + x`, or of the transpose of x."""
    x, y = buffer("input", *(shape[::-1] if turned else shape)), buffer("output", *shape)
    body = ScalarBlock()
    loops, index = loops_over(body, shape)
    offset = body.offset(index, shape)
    place = body.offset(index[::-1], shape[::-1]) if turned else offset
    value = body.load(x, place, float32)
    total = body.make("add", (value, value), float32)
    return mapping(loops, body, [Store(y, offset, total)]), x, y


def test_what_lies_side_by_side_takes_one_loop() -> None:
    for turned in (False, True):
        nest, x, y = doubled(turned)
        a = np.arange(12, dtype=np.float32).reshape(x.type.shape)
        found = np.zeros((3, 4), np.float32)
        run(nest, {x: a, y: found})
        np.testing.assert_array_equal(found, 2 * (a.T if turned else a))
        assert nest.loops == ([3, 4] if turned else [12])
        assert (nest.kept, nest.vec) == (len(nest.loops), len(nest.loops) - 1)
    assert doubled(False, (N, 4))[0].loops == [N * 4]


def test_rows_of_a_part_of_a_larger_array_stay_apart() -> None:
    """The position counts more than the iterations."""
    x, y = buffer("input", 3, 4), buffer("output", 5, 4)
    body = ScalarBlock()
    loops, index = loops_over(body, (3, 2))
    place = body.offset((body.add(index[0], body.size(1)), index[1]), (5, 4))
    nest = mapping(
        loops, body, [Store(y, place, body.load(x, body.offset(index, (3, 4)), float32))]
    )
    a, found = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((5, 4), np.float32)
    run(nest, {x: a, y: found})
    wanted = np.zeros((5, 4))
    wanted[1:4, :2] = a[:, :2]
    np.testing.assert_array_equal(found, wanted)


def test_values_that_nothing_is_made_of_are_not_alive() -> None:
    nest, x, _ = doubled(True)
    extra = nest.body.make("exp", (nest.body.load(x, nest.body.size(0), float32),), float32)
    assert extra in nest.body.values
    alive = live(nest)
    assert extra not in alive
    assert all(a in alive[:k] for k, v in enumerate(alive) for a in v.args)


def test_iterations_in_any_order() -> None:
    nest, _, _ = doubled(True)
    assert nest.outer == 3
    check = CheckNest(nest.loops, nest.body, nest.stores, size=nest.body.size(3))
    assert check.outer == 0
