"""Maps: one loop for what lies side by side."""

import numpy as np

from retrograd.ir import Dim, float32, spec
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import LoopNest, Store, loops_over
from retrograd.schedule.mapping import mapping
from retrograd.schedule.ssa import ScalarBlock, SSAOp
from tests.schedule.evaluation import run

N = Dim("N")


def buffer(kind: str, *shape: int | Dim) -> Buffer:
    x = input_node(spec(shape, float32))
    return Buffer(kind, 0, x.type, x)


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


def test_inner_loops_are_one_where_a_bias_is_the_same() -> None:
    """A number for each channel, added to images."""
    x, bias, y = buffer("input", 2, 3, 4, 5), buffer("input", 3), buffer("output", 2, 3, 4, 5)
    body = ScalarBlock()
    loops, index = loops_over(body, x.type.shape)
    offset = body.offset(index, x.type.shape)
    terms = body.load(x, offset, float32), body.load(bias, index[1], float32)
    nest = mapping(loops, body, [Store(y, offset, body.make("add", terms, float32))])
    assert nest.loops == [2, 3, 20]
    a, b = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5), np.array([1, 10, 100], np.float32)
    found = np.zeros(a.shape, np.float32)
    run(nest, {x: a, bias: b, y: found})
    np.testing.assert_array_equal(found, a + b[:, None, None])


def test_a_counter_that_is_a_number_keeps_its_loop() -> None:
    """The last counter is compared, as next to a padding, or divided."""
    for op in (SSAOp.ILT, SSAOp.IMOD):
        y, body = buffer("output", 2, 3, 4), ScalarBlock()
        loops, index = loops_over(body, (2, 3, 4))
        used = body.less(index[2], body.size(3)) if op is SSAOp.ILT else index[2]
        if op is SSAOp.IMOD:
            used = body.mod(index[2], body.size(3))
        value = body.make(SSAOp.CAST, (used,), float32)
        nest = mapping(loops, body, [Store(y, body.offset(index, (2, 3, 4)), value)])
        assert nest.loops == [2, 3, 4]


def test_loops_of_named_sizes_are_one_as_well() -> None:
    x, row, y = buffer("input", 2, N, 4), buffer("input", 2), buffer("output", 2, N, 4)
    body = ScalarBlock()
    loops, index = loops_over(body, x.type.shape)
    offset = body.offset(index, x.type.shape)
    terms = body.load(x, offset, float32), body.load(row, index[0], float32)
    nest = mapping(loops, body, [Store(y, offset, body.make("add", terms, float32))])
    assert nest.loops == [2, 4 * N]
