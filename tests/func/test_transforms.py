"""Transforms whose results come in another order."""

import retrograd as rg


def test_grad_and_value() -> None:
    gradient, value = rg.func.grad_and_value(lambda x, y: x * y, argnums=(0, 1))(2.0, 5.0)
    assert ([g.item() for g in gradient], value.item()) == ([5.0, 2.0], 10.0)
    gradient, (value, aux) = rg.func.grad_and_value(lambda x: (x**2, x + 1), has_aux=True)(3.0)
    assert (gradient.item(), value.item(), aux.item()) == (6.0, 9.0, 4.0)


def test_vjp() -> None:
    out, back = rg.func.vjp(lambda x, y: x * y, rg.tensor(2.0), rg.tensor(5.0))
    assert (out.item(), [g.item() for g in back(rg.tensor(1.0))]) == (10.0, [5.0, 2.0])
    out, back, aux = rg.func.vjp(lambda x: (x**2, {"x": x}), rg.tensor(2.0), has_aux=True)
    assert (out.item(), back(rg.tensor(3.0)).item(), aux["x"].item()) == (4.0, 12.0, 2.0)
