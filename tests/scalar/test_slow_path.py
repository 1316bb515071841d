"""Operations on operands of any kind: what is refused is named with its line."""

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("add", lambda x, y: x + "a"), ("subtract", lambda x, y: np.ones(2) - x),
        ("pow", lambda x, y: x ** [1]), ("lt", lambda x, y: x < "a"),
        ("mul", lambda x, y: x * rg.ones(2)), ("div", lambda x, y: y / None),
    ],
)  # fmt: skip
def test_a_refusal_names_operation_value_and_line(Value, name, use):
    x = Value(2.0, label="rate")
    y = x * 3
    y.label = "rate"
    with pytest.raises(
        rg.DTypeError, match=rf"asked for {name} with .*'rate'.*test_slow_path.py:\d+"
    ):
        use(x, y)
    assert x * 2 + 1 > 4  # and all goes on


def test_operands_of_different_tapes_meet(Value):
    """A backward pass closes a tape; what is on it goes on on another."""
    x = Value(2.0)
    y = x * x
    y.backward()
    z = x * 3
    z.backward()
    x.grad = 0.0
    w = y * z + y
    w.backward()
    assert w.data == 4 * 6 + 4
    assert x.grad == 3 * 3 * 2**2 + 2 * 2  # of 3 x**3 + x**2


def test_a_result_is_made_of_values_only(Value):
    with pytest.raises(rg.DTypeError, match="a Value is computed from Values, not from 3"):
        Value(1.0, (Value(2.0), 3), "+")
    y = Value(7.0, (Value(2.0), Value(3.0)), "f", label="y")
    assert (y.data, y.label, y._op, [p.data for p in y._prev]) == (7.0, "y", "f", [2.0, 3.0])
    with pytest.raises(rg.GradientError):
        y.data = 1.0
