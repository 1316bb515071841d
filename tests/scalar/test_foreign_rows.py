"""Operations of a user's own, and rows of other tapes."""

import math

import pytest

import retrograd as rg
from tests.scalar.programs import tanh


def test_an_operation_with_its_own_backward(Value):
    def f(x, tanh):
        h = tanh(x * 2.0)
        return tanh(h + tanh(x) * h) * h

    x, y = Value(0.3), Value(0.3)
    end = f(x, lambda v: tanh(v, Value))
    end.backward()
    f(y, lambda v: v.tanh()).backward()
    assert x.grad == pytest.approx(y.grad, rel=1e-14)
    end.backward()
    assert x.grad == pytest.approx(2 * y.grad, rel=1e-14)
    assert end._prev[0]._op == "tanh"


def test_an_operation_with_local_gradients(Value):
    """As microgpt's class is called."""
    a, b = Value(2.0), Value(5.0)
    out = Value(a.data * b.data, (a, b), (b.data, a.data))
    assert out._children == (a, b)
    assert out._local_grads == (5.0, 2.0)
    (out * 3).backward()
    assert (a.grad, b.grad) == (15.0, 6.0)
    with pytest.raises(rg.DTypeError, match="2 children with 1"):
        Value(1.0, (a, b), (1.0,))


def test_local_gradients_are_the_derivatives(Value):
    a, b = Value(3.0), Value(2.0)
    assert (a * b)._local_grads == (2.0, 3.0)
    assert (a / b)._local_grads == (0.5, -0.75)
    assert (a**2)._local_grads == (6.0,)
    assert a._local_grads == ()


def test_an_operation_of_ones_own_across_a_backward_pass(Value):
    x = Value(0.5)
    h = x * 2
    h.backward()
    x.grad = 0.0
    out = tanh(h, Value) * h
    out.backward()
    t = math.tanh(1.0)
    assert x.grad == pytest.approx(2 * (t + (1 - t * t)), rel=1e-14)
