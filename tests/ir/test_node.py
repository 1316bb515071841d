import dataclasses
import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import retrograd.ops.elementwise as e
from retrograd.errors import ShapeError
from retrograd.ir import (
    Dim,
    Node,
    Op,
    Provenance,
    Source,
    declare,
    float32,
    full,
    made_by,
    provenance,
    spec,
)
from retrograd.ir.registry import REGISTRY
from retrograd.ops.leaf import Iota, input_node
from retrograd.ops.shape import Reshape


def test_nodes_are_compared_by_identity_and_numbered_by_creation():
    x = input_node(spec(3), "x")
    a, b = e.exp(x), e.exp(x)
    assert a != b
    assert len({a, b}) == 2
    assert x.id < a.id < b.id


def test_what_a_node_tells():
    x = input_node(spec((2, 3)), "x")
    y = Reshape((6,))(x).renamed("flat")
    assert (y.op, y.name, y.inputs) == ("reshape", "flat", (x,))
    assert (y.shape, y.dtype) == ((6,), float32)
    assert y.attrs == {"shape": (6,)}
    assert repr(y) == "<flat: f32[6] = reshape>"
    assert y.describe() == "flat = reshape(shape=(6,))(f32[2, 3]) -> f32[6]"


def test_arity_is_checked_with_the_name_of_the_op():
    with pytest.raises(ShapeError, match="add takes 2 inputs, not 1"):
        e.add(input_node(spec(3)))


def test_provenance_is_given_inside_the_block_and_only_there():
    x = input_node(spec(3))
    origin = e.exp(x)
    with made_by(Provenance("model", None, origin)):
        with made_by(Provenance("model.inner")):
            assert e.exp(x).scope == "model.inner"
        y = e.exp(x)
        k = full(2, x.type)
    assert (y.scope, y.origin, k.scope) == ("model", origin, "model")
    assert provenance() == Provenance()
    with pytest.raises(ZeroDivisionError), made_by(Provenance("model")):
        _ = 1 // 0
    assert provenance() == Provenance()


def test_operators_lift_numbers_to_the_type_of_the_other_side():
    x = input_node(spec((2,), "float16"))
    for y, op in ((x + 1, "add"), (1 - x, "sub"), (x / 3, "div"), (x < 2, "lt"), (-x, "neg")):
        assert y.op == op
        assert all(n.type == x.type for n in y.inputs)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1, True, -2.5, float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_full_keeps_every_bit(value, dtype):
    type = spec((2, Dim("N")), dtype)
    for _ in range(2):  # the second time from the memory of splats
        node = full(value, type)
        assert node.type == type
        expected = type.dtype.dtype.type(value)
        assert node.attrs["value"].tobytes() == expected.tobytes()


def test_bind_replaces_named_sizes_among_attributes():
    n = Dim("N")
    assert Reshape((n, 2 * n)).bind({"N": 3}) == Reshape((3, 6))
    assert Iota((n,), 0, float32).bind({"N": 2}) == Iota((2,), 0, float32)


def test_source_lines_are_found_when_asked():
    frame = sys._getframe()
    from_here = Provenance("", Source(frame.f_code, frame.f_lasti))
    with made_by(from_here):
        y = e.exp(input_node(spec(())))
    assert y.source is not None
    assert y.source.file == __file__
    assert "test_source_lines_are_found_when_asked" in str(y.source)


FREE = """
import gc, sys
from retrograd.ir import Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.elementwise import tanh
x = y = input_node(spec(()))
for _ in range({n}):
    y = tanh(y)
g = Graph([x], [y])
del y, g
gc.collect()
"""


@pytest.mark.slow
def test_a_long_chain_is_freed_without_recursion():
    """In a process of its own, because a crash would take the tests with it."""
    program = FREE.format(n=300_000)
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": "src"})


@pytest.mark.slow
def test_nodes_can_be_referred_to_weakly():
    y = e.exp(input_node(spec(())))
    ref = weakref.ref(y)
    del y
    gc.collect()
    assert ref() is None


def test_node_has_no_dictionary():
    assert not hasattr(Node(e.exp, (), spec(())), "__dict__")
    assert np.isfinite(Node(e.exp, (), spec(())).id)


def test_a_declared_op_is_a_dataclass_by_the_time_that_matters():
    """It becomes one when it is first asked for anything, in whatever way."""

    @declare
    class Later(Op):
        name = "later_test"
        arity = 1
        axis: int
        reverse: bool = False

    @declare
    class Latest(Later):
        name = "latest_test"
        more: int = 3

    try:
        assert Latest.reverse is False
        raw = Later.__new__(Later)  # as pickle makes it
        vars(raw).update(axis=1, reverse=False)
        assert hash(raw) == hash(Later(1))
        assert raw == Later(1) != Later(2)
        assert Latest(1, more=4).attrs == {"axis": 1, "reverse": False, "more": 4}
        assert Latest(1) != Later(1)
        assert [f.name for f in dataclasses.fields(Latest)] == ["axis", "reverse", "more"]
        with pytest.raises(dataclasses.FrozenInstanceError):
            Later(1).axis = 2  # type: ignore[misc]
        with pytest.raises(TypeError):
            Later(1, True, 3)  # type: ignore[call-arg]
    finally:
        for name in ("later_test", "latest_test"):
            REGISTRY.pop(name)


def test_a_declared_op_is_made_once_by_several_threads():
    @declare
    class Shared(Op):
        name = "shared_test"
        arity = 1
        axis: int

    try:
        start = threading.Barrier(8)

        def make(_: int) -> Op:
            start.wait()
            return Shared(5)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(make, range(8)))) == 1
    finally:
        REGISTRY.pop("shared_test")


def test_an_op_that_is_not_declared_is_compared_by_identity():
    class Plain(Op):
        name = "plain_test"

    assert Plain() != Plain()
    assert len({Plain(), Plain()}) == 2
    assert not dataclasses.is_dataclass(Plain)
