"""The operation that calls Python: stacks of samples, complex numbers as pairs, its text."""

import numpy as np
import pytest

from retrograd.errors import BackendError, GradientError, ShapeError
from retrograd.ir import TensorType, complex128, float64, int64
from retrograd.ops.control.pure_callback import FUNCTIONS, HostFunction, PureCallback, at_hand
from retrograd.ops.identity import StopGradient
from retrograd.ops.leaf import input_node


def callback(f, shape, dtype=float64, **options):
    function = HostFunction(f)
    return PureCallback("f", shape, dtype, function.number, function=function, **options)


def leaf(*shape, dtype=float64):
    return input_node(TensorType(dtype, shape))


def test_samples_are_called_one_by_one_and_nested_stacks_too():
    """Against a loop: x has both axes, y the inner one, z none."""
    calls = []

    def f(x, y, z):
        calls.append((x.shape, y.shape, z.shape))
        return x * y + z

    op = callback(f, (2,))
    x, y, z = leaf(2), leaf(2), leaf(2)
    inner = op.batch(3, (True, True, False), leaf(3, 2), leaf(3, 2), z)
    outer = inner.prim.batch(4, (True, False, False), leaf(4, 3, 2), leaf(3, 2), z)
    assert outer.shape == (4, 3, 2)
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(4, 3, 2)), rng.normal(size=(3, 2)), rng.normal(size=2)
    found = outer.prim.reference(a, b, c)
    expected = [[a[i, j] * b[j] + c for j in range(3)] for i in range(4)]
    np.testing.assert_array_equal(found, expected)
    assert calls == [((2,),) * 3] * 12
    assert op(x, y, z).shape == (2,)


def test_complex_numbers_come_and_go_as_pairs():
    op = callback(lambda z, x: z * x, (3,), complex128).on_pairs([True, False])
    assert (op.shape, op.dtype, op.pairs, op.pair) == ((3, 2), float64, 1, True)
    z, x = np.array([1 + 2j, 3j, -1.0]), np.array([2.0, 3.0, 4.0])
    found = op.reference(np.stack([z.real, z.imag], -1), x)
    np.testing.assert_array_equal(found[..., 0] + 1j * found[..., 1], z * x)


def test_a_result_of_another_shape_is_told():
    with pytest.raises(ShapeError, match=r"returned \(2,\), where \(3,\) was announced"):
        callback(lambda x: x[:2], (3,)).reference(np.zeros(3))


def test_what_is_read_from_text_has_its_function_in_this_process_alone():
    op = callback(np.sin, (3,))
    bare = PureCallback("f", (3,), float64, op.number)
    assert op.remark
    assert not bare.remark
    with pytest.raises(BackendError, match="trace the graph in this process"):
        bare.reference(np.zeros(3))
    found = at_hand(bare(leaf(3))).prim
    assert isinstance(found, PureCallback)
    assert found.function is FUNCTIONS[op.number] is op.function
    np.testing.assert_array_equal(found.reference(np.ones(3)), np.sin(np.ones(3)))
    kept = op(leaf(3))
    assert at_hand(kept) is kept


def test_what_has_no_derivative_needs_none():
    op, x, k = callback(np.take, (3,)), leaf(3), leaf(3, dtype=int64)
    inputs = [StopGradient()(x), k]
    assert op.vjp(x, op(*inputs), *inputs) == [None, None]
    with pytest.raises(GradientError, match="stop_gradient"):
        op.vjp(x, op(x, k), x, k)


def test_there_are_no_derivatives_that_nobody_gave():
    op, x = callback(np.sin, (3,)), leaf(3)
    y = op(x)
    with pytest.raises(GradientError, match="custom_vjp"):
        op.vjp(y, y, x)
    with pytest.raises(GradientError, match="stop_gradient"):
        op.jvp([x], y, x)
