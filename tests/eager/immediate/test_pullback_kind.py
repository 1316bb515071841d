"""The gradient of a call as a call: its operands, its results, and what is the same twice."""

import numpy as np

import retrograd as rg
from retrograd.eager.immediate.call_kind import Arguments, OperandIndex, kind_of
from retrograd.eager.immediate.pullback_kind import merged, pullback_of

A, B, G = (np.random.default_rng(k).normal(size=3) for k in range(3))


def kind(f, operands=2):
    made = Arguments(f, [OperandIndex(k) for k in range(operands)], {})
    found = kind_of((f,), (np.dtype("f8"),) * operands, ((3,),) * operands, lambda: made)
    assert found is not None
    return found


def run(kind, *given):
    return kind.forward(False).call(list(given), {})


def test_operands_are_those_of_the_call_its_results_and_cotangents():
    call = kind(lambda x, y: rg.tanh(x * 1.0) if y is None else rg.tanh(x) * y)
    way = pullback_of(call, (0,), (0, 1), (False, False), ((3,), (3,)))
    assert way is not None
    # tanh(x) is inside, and becomes a result, since the way back uses it
    assert len(call.interior) == 1
    assert way.used == (1,)
    dx, dy = run(way.kind, A, B, np.tanh(A), G)
    np.testing.assert_allclose(dx, G * B * (1 - np.tanh(A) ** 2), rtol=1e-12)
    np.testing.assert_allclose(dy, G * np.tanh(A), rtol=1e-12)
    assert pullback_of(call, (0,), (0, 1), (False, False), ((3,), (3,))) is way


def test_a_gradient_so_far_is_an_operand():
    way = pullback_of(kind(rg.multiply), (0,), (1,), (True,), ((3,), (3,)))
    assert way is not None
    (dy,) = run(way.kind, A, B, G, B)
    np.testing.assert_allclose(dy, B + G * A, rtol=1e-15)


def test_what_is_handed_on_is_not_computed():
    way = pullback_of(kind(rg.add), (0,), (0, 1), (False, False), ((3,), (3,)))
    assert way is not None
    assert way.kind.outputs == []
    assert [k for k, _ in way.plan.passed] == [0, 1]


def test_what_is_the_same_twice_is_one_operand():
    way = pullback_of(kind(rg.multiply), (0,), (0, 1), (False, False), ((3,), (3,)))
    assert way is not None
    one = merged(way.kind, (0, 1, 0))  # the cotangent is x
    assert one is merged(way.kind, (0, 1, 0))
    dx, dy = run(one, A, B)
    np.testing.assert_allclose(dx, A * B, rtol=1e-15)
    np.testing.assert_allclose(dy, A * A, rtol=1e-15)


def test_what_is_the_same_by_chance_is_not_merged():
    """Sizes with other names that have the same value now are not the same."""
    f = lambda x, y: x * rg.swapaxes(y, 0, 1)
    made = Arguments(f, [OperandIndex(0), OperandIndex(1)], {})
    for n in (4, 5):  # both sizes change, and have names
        call = kind_of((f,), (np.dtype("f8"),) * 2, ((n, n + 3), (n + 3, n)), lambda: made)
    assert call is not None
    way = pullback_of(call, (0,), (0, 1), (False, False), ((5, 8), (8, 5)))
    assert way is not None
    assert merged(way.kind, (0, 0, 2)) is None
    assert merged(way.kind, (0, 1, 0)) is not None
