"""What a Value can be made of and combined with."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.scalar.operands import children_of, number_of


@pytest.mark.parametrize(
    "make",
    [
        lambda v, x: v("a"),
        lambda v, x: v(1j),
        lambda v, x: v(None),
        lambda v, x: v(x),
        lambda v, x: v([1.0]),
        lambda v, x: v(np.ones(2)),
        lambda v, x: x + "a",
        lambda v, x: "a" + x,
        lambda v, x: x * np.ones(2),
        lambda v, x: np.ones(2) * x,
        lambda v, x: x - None,
        lambda v, x: x ** [1],
        lambda v, x: 1j * x,
        lambda v, x: x < "a",
        lambda v, x: v(1.0, (2.0,), "+"),
        lambda v, x: setattr(x, "data", "a"),
        lambda v, x: setattr(x, "grad", None),
    ],
)
def test_what_is_no_number_is_refused(Value, make):
    x = Value(1.0)
    with pytest.raises(rg.DTypeError, match="a Value is"):
        make(Value, x)
    assert (x.data, x.grad) == (1.0, 0.0)


def test_numbers_of_python_and_numpy() -> None:
    given = [3, 2.5, True, np.float32(0.5), np.int8(-4), np.bool_(True), np.array(7.0)]
    found = [number_of(x) for x in given]
    assert found == [3.0, 2.5, 1.0, 0.5, -4.0, 1.0, 7.0]
    assert {type(x) for x in found} == {float}
    with pytest.raises(rg.DTypeError, match=r"not an array of shape \(1,\); go through its elem"):
        number_of(np.ones(1))
    with pytest.raises(rg.DTypeError, match="not the complex 1j"):
        number_of(1j)


def test_what_constructors_of_micrograd_and_microgpt_take() -> None:
    assert children_of((), "", "", ()) == ((), "", "", None)
    assert children_of("name", "", "", ()) == ((), "", "name", None)
    assert children_of({1}, "+", "y", ()) == ((1,), "+", "y", None)
    assert children_of((1, 2), (3, 4.5), "", ()) == ((1, 2), "", "", (3.0, 4.5))
    assert children_of((1,), "f", "", (2,)) == ((1,), "f", "", (2.0,))
    with pytest.raises(rg.DTypeError, match="1 children with 2 local gradients"):
        children_of((1,), (3, 4), "", ())
