"""Adafactor by its formulas in NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import GRADIENTS, MATRICES, MATRIX, START, moved


def rms(x):
    return np.sqrt(np.mean(x**2))


@pytest.mark.parametrize(("start", "gradients"), [(START, GRADIENTS), (MATRIX, MATRICES)])
@pytest.mark.parametrize("eps1", [None, 0.3])
def test_steps(start, gradients, eps1) -> None:
    lr, fall, eps2, d, decay = 0.6, -0.7, 0.1, 1.2, 0.2
    low = np.finfo(np.float64).eps if eps1 is None else eps1
    p, v, r, c, expected = start, 0.0, 0.0, 0.0, []
    for t, g in enumerate(gradients, 1):
        b = t**fall
        alpha = max(eps2, rms(p)) * min(lr, 1 / np.sqrt(t))
        p = p * (1 - lr * decay)
        if p.ndim == 1:
            v = v + b * (g**2 - v)
        else:
            r = r + b * (np.mean(g**2, axis=1, keepdims=True) - r)
            c = c + b * (np.mean(g**2, axis=0, keepdims=True) - c)
            v = r * c / max(np.mean(r), low)
        u = g / np.sqrt(np.maximum(v, low**2))
        p = p - alpha * u / max(1, rms(u) / d)
        expected.append(p)
    options = {"lr": lr, "beta2_decay": fall, "eps": (eps1, eps2), "d": d, "weight_decay": decay}
    found = moved(optim.Adafactor, gradients, start, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_empty_parameter_stays() -> None:
    p: rg.Tensor = rg.zeros((0, 3))
    opt = optim.Adafactor()
    assert opt.update([p], [p], opt.init([p]))[0][0].shape == (0, 3)


def test_refusals() -> None:
    for options in ({"beta2_decay": 0.1}, {"d": 0.5}, {"eps": (0.1,)}):
        with pytest.raises(rg.OptionError, match=next(iter(options))):
            optim.Adafactor(**options)
    z = rg.tensor([1 + 1j], requires_grad=True)
    opt = optim.Adafactor([z])
    z.grad = rg.tensor([1 + 1j])
    with pytest.raises(rg.DTypeError, match="real parameters"):
        opt.step()
