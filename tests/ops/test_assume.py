"""What a program takes for granted of sizes is checked, now or in the call."""

import numpy as np
import pytest

from retrograd.errors import ShapeError, TraceError
from retrograd.ir import Dim, TensorType, float64
from retrograd.ops.assume import Assume, ShapeGuards, check_assumed, guard
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import cotangents, tangents

N = Dim("N")


def test_sizes_that_are_known_are_checked_now():
    x = np.ones(3)
    assert check_result(Assume(2, "<=", 3, "why"), [x]).tolist() == [1, 1, 1]
    with pytest.raises(ShapeError, match="it must fit"):
        Assume(4, "<=", 3, "it must fit")(input_node(TensorType(float64, (3,))))
    with pytest.raises(ShapeError, match="the relation is one of !=, <="):
        Assume(4, "<", 3, "")(input_node(TensorType(float64, (3,))))
    with pytest.raises(ShapeError, match="not known to hold before sizes have values"):
        Assume(N, "!=", 3, "").reference(x)


def test_derivatives_are_right_for_these_sizes_only():
    x = input_node(TensorType(float64, (N,)))
    y = Assume(N, "<=", 7, "no")(x)
    for derivative in (*cotangents(y, [x]), *tangents(y, x)):
        assert derivative.prim == y.prim


def test_the_error_of_a_call_has_its_values():
    op = Assume(2 * N, "<=", 10, "too many")
    with pytest.raises(ShapeError, match=r"too many; this call has 2\*N = 12, N = 6"):
        op.bind({"N": 6}).infer(TensorType(float64, ()))
    node = op(input_node(TensorType(float64, (N,))))
    check_assumed([node, *node.inputs], {"N": 5})
    with pytest.raises(ShapeError, match="too many"):
        check_assumed([node], {"N": 6})


def test_guards_write_down_only_what_may_be():
    """Python asks whether sizes are equal; that they are not is assumed where they may be."""
    x = input_node(TensorType(float64, (N,)))
    guards = ShapeGuards([x])
    with guards.watching():
        assert (N == 3) is False
        assert (N == N + 1) is False  # never
        assert (N == 2.5) is False  # never
        assert (N == "N") is False
    (y,) = guards.on([x])
    assert (y.op, y.inputs[0] is x, str(y.prim)) == ("assume", True, "assume(N != 3)")
    with pytest.raises(TraceError, match="nothing is computed here"):
        guards.on([])


def test_sizes_from_elsewhere_cannot_be_checked():
    guards = ShapeGuards([input_node(TensorType(float64, (N,)))])
    with guards.watching(), pytest.raises(ShapeError, match="nor can it be checked in a call"):
        bool(Dim("M") == 3)


def test_guard_says_why():
    x = input_node(TensorType(float64, (N,)))
    assert guard(x, 2, "<=", 3, "no") is x
    assert guard(x, N, "<=", N + 1, "no") is x  # always
    assert guard(x, N, "<=", 7, "no").op == "assume"
    with pytest.raises(ShapeError, match=r"^no$"):
        guard(x, 4, "<=", 3, "no")
