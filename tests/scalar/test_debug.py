"""Values inside of `rg.debug`: the first number that is not finite is an error at its line."""

import math

import pytest

import retrograd as rg


def fails(f):
    with pytest.raises(rg.NonFiniteError) as found, rg.debug():
        f()
    return str(found.value)


@pytest.mark.parametrize(
    ("call", "op", "result", "operand"),
    [
        (lambda p, q: p**-1, "pow", "inf", "label='zero'"),
        (lambda p, q: p.log(), "log", "-inf", "label='zero'"),
        (lambda p, q: (q - 4).log(), "log", "nan", "operand 0: -1.0 (at "),
        (lambda p, q: (q * 300).exp(), "exp", "inf", "operand 0: 900.0 (at "),
        (lambda p, q: q / p, "div", "inf", "operand 1: Value(data=0.0, grad=0.0, label='zero')"),
        (lambda p, q: (q * 1e308) * 10.0, "mul", "inf", "operand 1: 10.0"),
        (lambda p, q: p / p, "div", "nan", "label='zero'"),
        (lambda p, q: rg.jit(lambda: p.log())(), "log", "-inf", "label='zero'"),
    ],
)
def test_the_error_names_operation_operands_and_line(Value, call, op, result, operand):
    p, q = Value(0.0, label="zero"), Value(3.0)
    text = fails(lambda: call(p, q))
    assert text.startswith(f"{op} gives {result}\n")
    assert operand in text
    assert f"{__file__}:" in text
    assert "lambda p, q" in text  # the line itself
    assert "likely cause" in text


def test_a_gradient_that_is_not_finite(Value):
    p, q = Value(0.0), Value(3.0, label="q")
    root = p.sqrt()
    assert "derivative of sqrt by operand 0 is inf, times a gradient of 3.0" in fails(
        (root * q).backward
    )
    assert (p.grad, q.grad) == (0.0, 0.0)

    def line():
        y = p * q
        y.label = "y"
        z = y.sqrt()
        z.backward()

    text = fails(line)
    assert "z = y.sqrt()" in text
    assert "label='y' (at " in text
    assert "y = p * q" in text


def test_what_is_handed_on_is_no_fault(Value):
    x = Value(math.inf)
    with rg.debug():
        assert (x + 1.0).data == math.inf
        assert (1.0 / x).data == 0.0
    assert "sub gives nan" in fails(lambda: x - x)


@pytest.mark.slow
def test_all_is_as_without(Value):
    def program(a, b):
        c = (a * b + a**2).relu() + a
        c.backward()
        d = Value(c.data * 2, (c, b), "own")
        d._backward = lambda: setattr(c, "grad", c.grad + d.grad)
        (d * c.tanh()).backward()
        return [c.data, d.data, a.grad, b.grad]

    plain = program(Value(2.0), Value(-0.5))
    with rg.debug():
        assert program(Value(2.0), Value(-0.5)) == plain
        total = Value(0.0)
        for _ in range(1200):  # deeper than any recursion
            total = total + 1.0
        total.backward()
    assert total.data == 1200.0


def test_editing_a_result_names_its_line(Value):
    with rg.debug():
        y = Value(2.0) * 3.0
    with pytest.raises(
        rg.GradientError, match=r"computed by \* \(at .*: y = Value\(2.0\) \* 3.0\)"
    ):
        y.data = 1.0
