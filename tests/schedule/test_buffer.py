"""Buffers: bytes of any size, identity."""

from retrograd.ir import Dim, bool_, float16, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer


def test_bytes() -> None:
    n = Dim("N")
    for type, size in (
        (spec((3, 4), float64), 96),
        (spec((), float16), 2),
        (spec((5, 0), float64), 0),
        (spec((7,), bool_), 7),
        (spec((n, 3), float16), 6 * n),
    ):
        assert Buffer("temporary", 0, type, input_node(type)).bytes == size


def test_two_buffers_of_one_number_are_not_the_same() -> None:
    x = input_node(spec((3,), float64))
    a, b = (Buffer("input", 0, x.type, x) for _ in range(2))
    assert a != b
    assert len({a, b}) == 2
