"""Maps and reductions over a domain, gone through by hand."""

import itertools

import numpy as np
import pytest

from retrograd.ir import Node, float32, spec
from retrograd.ops.elementwise import add, exp
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import ReduceMax, ReduceSum
from retrograd.ops.shape import Permute
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.lower import NodeLowering
from retrograd.schedule.nest_builder import NestBuilder
from tests.schedule.evaluation import run


def stored_in(*nodes: Node) -> dict[Node, Buffer]:
    return {x: Buffer("temporary", k, x.type, x) for k, x in enumerate(nodes)}


def no_scratch(type: object) -> Buffer:
    raise AssertionError("memory that is not needed")


def test_maps_into_other_places() -> None:
    x = input_node(spec((2, 3), float32))
    y = exp(x)
    stored = stored_in(x, y)
    builder = NestBuilder(y, stored, no_scratch)
    a, found = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    memory = {stored[x]: a, stored[y]: found}
    run(builder.map(y.shape, lambda r, i: r.compute(y, i)), memory)
    np.testing.assert_allclose(found, np.exp(a), 1e-6)
    run(builder.copy_of(x), memory)
    np.testing.assert_array_equal(found, a)
    backwards = builder.map(
        (2, 3),
        lambda r, i: r.read(x, i),
        lambda b, i: b.sub(b.size(5), b.offset(i, (2, 3))),
    )
    run(backwards, memory)
    np.testing.assert_array_equal(found.ravel(), a.ravel()[::-1])


@pytest.mark.parametrize("op", [ReduceSum, ReduceMax])
def test_reductions_over_any_axes(op: type) -> None:
    """Also of what is computed where it is read; an axis of one element has no loop."""
    x = input_node(spec((2, 1, 3, 4), float32))
    a = np.random.default_rng(0).integers(-9, 9, (2, 1, 3, 4)).astype(np.float32)
    view = Permute((3, 1, 0, 2))(add(x, x))
    for axes in itertools.chain.from_iterable(
        itertools.combinations(range(4), k) for k in (1, 2, 4)
    ):
        y = op(axes)(view)
        stored = stored_in(x, y)
        found = np.full(y.shape, np.nan, np.float32)
        for nest in NodeLowering(y, stored, no_scratch).nests():
            run(nest, {stored[x]: a, stored[y]: found})
        reduce = np.sum if op is ReduceSum else np.max
        np.testing.assert_array_equal(found, reduce(2 * a.transpose(3, 1, 0, 2), axes), str(axes))


def test_rows_are_what_ends_with_a_reduced_loop() -> None:
    x = input_node(spec((2, 3, 4), float32))

    def kind(*axes: int) -> tuple[str, int, int]:
        y = ReduceSum(axes)(x)
        (nest,) = NodeLowering(y, stored_in(x, y), no_scratch).nests()
        return nest.kind, nest.kept, nest.vec

    assert kind(2) == ("row", 2, 2)
    assert kind(0, 2) == ("row", 1, 2)
    assert kind(0, 1, 2) == ("row", 0, 2)
    assert kind(1) == ("column", 2, 1)
    assert kind(0, 1) == ("column", 1, 0)
