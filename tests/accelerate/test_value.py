"""The compiled recorder as an extension: references, the collector, wrong use."""

import gc
import sys

import pytest

from retrograd.scalar import RECORDERS

if "compiled" not in RECORDERS:
    pytest.skip("the compiled recorder was not built here", allow_module_level=True)

Value = RECORDERS["compiled"]
Tape = Value._new_tape


def tapes():
    gc.collect()
    return sum(type(x) is Tape for x in gc.get_objects())


def record():
    x = Value(1.0)
    kept = []
    for k in range(300):
        y = (x * k + 1).tanh() - x / (k + 1)
        if k % 7 == 0:
            kept.append(y)
        if k % 100 == 0:
            y.backward()
            x.data = x.data * 0.99
            x.grad = 0
    return sum(kept, Value(0.0))


def with_its_own_backward():
    x = Value(2.0)
    h = x * 3
    out = Value(h.data**2, (h,), "square")

    def back():
        h.grad += 2 * h.data * out.grad

    out._backward = back
    out.backward()
    assert x.grad == 36.0


def looked_at():
    y = record()
    y.label = "y"
    return y._prev[0]._prev


def of_a_class_of_ones_own():
    w = type("Weight", (Value,), {})(2.0)
    w.itself = [w]
    return w * w + 2 * w


@pytest.mark.parametrize(
    "f",
    [record, with_its_own_backward, looked_at, of_a_class_of_ones_own],
    ids=lambda f: f.__name__,
)
@pytest.mark.sample(2)
def test_everything_is_collected(f):
    f()
    before, references = tapes(), sys.getrefcount(Value)
    for _ in range(5):
        f()
    assert tapes() <= before
    assert abs(sys.getrefcount(Value) - references) <= 2


def test_a_value_made_anew():
    x = Value(1.0)
    y = x * 2
    x.__init__(5.0)
    assert (x.data, y.data) == (5.0, 2.0)
    y.__init__(3.0)
    assert (y.data, y._prev) == (3.0, ())


@pytest.mark.parametrize(
    "use",
    [
        lambda z: z.data, lambda z: z.grad, lambda z: z + 1, lambda z: 2 * z, lambda z: z * z,
        lambda z: -z, lambda z: z.backward(), lambda z: repr(z), lambda z: z._prev,
        lambda z: delattr(Value(1.0), "data"), lambda z: delattr(Value(1.0), "grad"),
        lambda z: pow(Value(1.0), 2, 3), lambda z: Value(), lambda z: Value(1.0, 2, 3, 4, 5),
    ],
)  # fmt: skip
def test_wrong_use_is_an_error_and_no_crash(use):
    with pytest.raises((AttributeError, TypeError)):
        use(Value.__new__(Value))


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.value(-1), lambda p: p.value(10**9), lambda p: p.row(5), lambda p: p.grad(7),
        lambda p: p.seed(99, 1.0), lambda p: p.put(4, 1, 2), lambda p: p.set_grad(3, 1.0),
    ],
)  # fmt: skip
def test_a_row_that_is_not_there(use):
    with pytest.raises(IndexError, match="no row"):
        use(Tape())


def test_a_leaf_is_one_of_this_recorder():
    with pytest.raises(TypeError, match="same recorder"):
        Tape().attach(RECORDERS["python"](1.0))
    with pytest.raises(TypeError):
        Value(1.0) + RECORDERS["python"](1.0)
