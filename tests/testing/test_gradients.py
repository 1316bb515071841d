"""The checks find what is wrong, say where, and pass what is right."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Op

X = np.array([[0.3, -1.2, 0.7], [2.0, 0.4, -0.5]])


@pytest.mark.slow
def test_what_is_right_passes():
    assert rg.gradcheck(lambda x, w: rg.softmax(x @ w), X, X.T.copy(), order=2)
    assert rg.gradcheck(lambda p: [p["a"] * 2, (p["a"].sum(), p["n"])], {"a": X, "n": np.arange(3)})
    assert rg.gradcheck(lambda z: rg.exp(z) * rg.conj(z), X + 1j * X[::-1], order=2)
    rg.testing.check_grads(lambda x: rg.sin(x).sum() ** 2, (X,), order=3)
    assert rg.gradcheck(lambda x: x * 1.0, np.zeros((0, 3)))


def cut(x):
    """The square, with half of its derivative."""
    return x * rg.stop_gradient(x)


def cut_later(x):
    """The square, with its derivative, and no second one."""
    return 2 * x * rg.stop_gradient(x) - rg.stop_gradient(x * x)


def test_what_is_wrong_is_named():
    with pytest.raises(rg.GradientError, match=r"order 1 gradient by argument 1: .*w.* in 6 of 6"):
        rg.gradcheck(lambda x, p: cut(p["w"]) * x, np.exp(X), {"w": X})
    with pytest.raises(rg.GradientError, match=r"argument 0 is wrong in 2 of 6.*\[0, 1\]: "):
        rg.gradcheck(lambda x: rg.where(x > 0, x, rg.stop_gradient(x) + 0 * x), X)
    assert rg.gradcheck(cut_later, X)
    with pytest.raises(rg.GradientError, match="order 2 gradient"):
        rg.gradcheck(cut_later, X, order=2)


def test_forward_mode_is_held_to_reverse_mode():
    rg.testing.check_grads(rg.tanh, (X,), 2, modes=("fwd",))
    rg.testing.check_grads(rg.tanh, (X,), 2, modes=("rev",))
    with rg.backend("reference"):
        rg.testing.check_grads(lopsided, (X,), 1, modes=("rev",))
        with pytest.raises(rg.GradientError, match="in forward mode"):
            rg.testing.check_grads(lopsided, (X,), 1, modes=("fwd",))


class Lopsided(Op):
    """Twice its input, with a forward rule that says thrice."""

    name = "lopsided"
    arity = 1

    def infer(self, *types):
        return types[0]

    def reference(self, *arrays):
        return 2 * arrays[0]

    def vjp(self, g, y, *inputs):
        return (g * 2.0,)

    def jvp(self, tangents, y, *inputs):
        return tangents[0] * 3.0


def lopsided(x):
    return rg.Tensor(Lopsided()(x.node), True)


def test_misuse():
    with pytest.raises(rg.DTypeError, match=r"float32.*argument 0"):
        rg.gradcheck(rg.sin, X.astype(np.float32))
    with pytest.raises(rg.GradientError, match="floating"):
        rg.gradcheck(rg.abs, np.arange(3))
    with pytest.raises(rg.OptionError, match="order"):
        rg.gradcheck(rg.sin, X, order=0)
    with pytest.raises(rg.OptionError, match="modes"):
        rg.testing.check_grads(rg.sin, (X,), 1, "rev")
    with pytest.raises(rg.GradientError, match="scalar"):
        rg.numerical_gradient(rg.sin, X)
    with pytest.raises(rg.GradientError, match="no floating"):
        rg.gradcheck(lambda x: x > 0, X)


def test_a_kink_within_reach_of_the_step_is_stepped_around():
    assert rg.gradcheck(rg.relu, np.array([0.00123, -0.0015, 2.0, 1e-5]), order=2)
    assert rg.gradcheck(lambda x: rg.abs(x - 1000), np.array([1000.5]))
    assert rg.gradcheck(lambda x: rg.sort(x), np.array([1.0, 1.001]))


def lost(x):
    """A function without its gradient."""
    return rg.stop_gradient(x)


@pytest.mark.parametrize(
    ("f", "x", "match"),
    [
        (
            rg.relu,
            [1.0, 0.0],
            (
                r"output\[1\] is 0.0, .* 0.5. There is a kink .* at 0.0: the slope is "
                r"-?0 on the left and 1 on the right"
            ),
        ),
        (
            lambda x: lost(x) * x,
            [[1.0, 3.0]],
            (
                r"2 of 2 .*\[0, 0\]: that of output\[0, 0\] is 1.0, "
                r"finite differences give (2.0|1.99)"
            ),
        ),
        (lambda x: (lost(x) * x).sum(), [2.0], r"that of output is 2.0, .* (4.0|3.99)"),
        (
            lambda x: {"a": x, "b": x * x + lost(x)},
            [3.0],
            (
                r"that of output 1\[0\] is 6.0, finite "
                r"differences give (7.0|6.99)"
            ),
        ),
        (lambda x: lost(x) * x * 1j, [2.0], r"imaginary part of output\[0\] is 2.0, .* (4.0|3.99)"),
        (lambda x: rg.floor(x) + x, [2.0], r"a kink or a jump at 2.0"),
    ],
)
def test_the_message_names_elements_and_kinks(f, x, match):
    with pytest.raises(rg.GradientError, match=match):
        rg.gradcheck(f, np.array(x))
