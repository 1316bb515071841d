"""What a trace of a function of Values refuses."""

import pytest

import retrograd as rg


def test_an_operation_of_ones_own_is_refused(Value):
    w = Value(2.0)
    with pytest.raises(rg.TraceError, match="operation of your own"):
        rg.jit(lambda: Value(3.0, (w,), (2.0,)).backward())()
    assert (w.grad, w.data) == (0.0, 2.0)


def test_what_is_kept_beyond_the_call_is_an_error(Value):
    w = Value(2.0)
    kept = []
    rg.jit(lambda: kept.append(w * 2))()
    for use in (lambda v: v.data, lambda v: v + 1, lambda v: v.backward(), lambda v: v * w):
        with pytest.raises(rg.TraceError):
            use(kept[0])


def test_a_value_computed_outside_is_refused(Value):
    outside = Value(2.0) * 3
    w = Value(1.0)
    with pytest.raises(rg.TraceError, match="outside"):
        rg.jit(lambda: w * outside)()
    with pytest.raises(rg.TraceError, match="pass a leaf"):
        rg.jit(lambda v: v * 2)(outside)
    assert (w * outside).data == 6.0
