"""`gradcheck` with PyTorch's arguments finds a wrong rule."""

import pytest

import retrograd as rg


def test_a_wrong_rule_is_found() -> None:
    @rg.custom_vjp
    def wrong(x):
        return x**2

    wrong.defvjp(lambda x: (x**2, x), lambda x, g: (g * 2.1 * x,))
    x = rg.tensor([1.0, 2.0], dtype=rg.float64, requires_grad=True)
    with pytest.raises(rg.GradientError):
        rg.autograd.gradcheck(wrong, (x,))
    assert rg.autograd.gradcheck(wrong, (x,), raise_exception=False) is False
    assert rg.autograd.gradcheck(lambda x: x**2, x, eps=1e-6, atol=1e-4)
    assert rg.autograd.gradgradcheck(lambda x: x**3, (x,))
