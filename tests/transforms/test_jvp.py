"""Forward mode for functions."""

import numpy as np
import pytest

import retrograd as rg

X = rg.ones(3)


def square(x):
    return x * x


@pytest.mark.parametrize(
    ("args", "tangents"), [(X, X), ((X,), X), (1.0, 1.0), ((X,), None)], ids=range(4)
)
def test_jvp_of_what_are_no_tuples(args, tangents):
    with pytest.raises(rg.ArgumentError, match=r"rg.jvp\(f, \(x,\), \(t,\)\)"):
        rg.jvp(square, args, tangents)


def f(x, w):
    return {"y": rg.sin(x) @ w, "n": rg.argmax(x)}


@pytest.fixture(autouse=True)
def interpreted():
    with rg.backend("reference"):
        yield


def jacobian_times(x, w, dx, dw):
    return (np.cos(x) * dx) @ w + np.sin(x) @ dw


RNG = np.random.default_rng(0)
POINT = RNG.normal(size=3), RNG.normal(size=(3, 2))
DIRECTION = RNG.normal(size=3), RNG.normal(size=(3, 2))


def test_the_derivative_in_a_direction():
    out, tangent = rg.jvp(f, POINT, DIRECTION)
    np.testing.assert_allclose(out["y"].numpy(), np.sin(POINT[0]) @ POINT[1], rtol=1e-14)
    right = jacobian_times(*POINT, *DIRECTION)
    np.testing.assert_allclose(tangent["y"].numpy(), right, rtol=1e-13)
    assert tangent["n"].item() == 0


def test_what_comes_beside_is_handed_on():
    out, tangent, aux = rg.jvp(lambda x: (x * x, x + 1), (3.0,), (2.0,), has_aux=True)
    assert (out.item(), tangent.item(), aux.item()) == (9, 12, 4)


def test_integers_have_no_direction():
    _, tangent = rg.jvp(lambda i, x: i * x, (rg.tensor(3), 2.0), (rg.tensor(5), 1.0))
    assert tangent.item() == 3


def test_linearize_gives_jvp_for_any_number_of_directions():
    out, tangent_of = rg.linearize(f, *POINT)
    np.testing.assert_allclose(out["y"].numpy(), np.sin(POINT[0]) @ POINT[1], rtol=1e-14)
    for k in (1.0, -2.0):
        given = [k * d for d in DIRECTION]
        right = jacobian_times(*POINT, *given)
        np.testing.assert_allclose(tangent_of(*given)["y"].numpy(), right, rtol=1e-13)


def test_what_linearize_needs_of_the_function_is_computed_once():
    calls = []

    def g(x):
        calls.append(1)
        return rg.exp(x)

    _, tangent_of = rg.linearize(g, 0.0)
    assert [tangent_of(t).item() for t in (1.0, 2.0)] == [1, 2]
    assert len(calls) == 1


def test_forward_over_forward():
    cube = lambda x: rg.jvp(lambda x: x**3, (x,), (1.0,))[1]
    assert rg.jvp(cube, (2.0,), (1.0,))[1].item() == 12
    slope = rg.linearize(lambda x: rg.linearize(lambda x: x**3, x)[1](1.0), 2.0)[1]
    assert slope(1.0).item() == 12


@pytest.mark.parametrize("tangent", [rg.ones(2), rg.ones(3, dtype="float64"), (X, X)])
def test_tangents_that_do_not_fit(tangent):
    with pytest.raises(rg.GradientError, match="tangent"):
        rg.jvp(square, (X,), (tangent,))
    with pytest.raises(rg.GradientError, match="tangent"):
        rg.linearize(square, X)[1](tangent)
