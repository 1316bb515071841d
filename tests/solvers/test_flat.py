"""Trees as one vector and back."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.solvers.flat import flat


def test_there_and_back() -> None:
    tree = {"a": np.arange(4, dtype=np.float32).reshape(2, 2), "b": [np.float64(5.0), 3]}
    vector, back = flat(tree, "f")
    assert vector.dtype is rg.float64
    assert vector.tolist() == [0, 1, 2, 3, 5, 3]
    new = back(vector * 10.0)
    assert new["a"].tolist() == [[0, 10], [20, 30]]
    assert (new["a"].dtype, new["b"][0].dtype) == (rg.float32, rg.float64)
    assert (new["b"][0].item(), new["b"][1].item()) == (50, 30)


def test_what_is_not_floating_is_refused_or_kept() -> None:
    tree = {"n": np.array([1, 2]), "x": np.ones(1)}
    with pytest.raises(rg.DTypeError, match="odeint takes real floating numbers, not int64"):
        flat(tree, "odeint")
    vector, back = flat(tree, "odeint", keep=True)
    assert vector.shape == (1,)
    assert back(vector + 1)["n"].tolist() == [1, 2]
    with pytest.raises(rg.DTypeError, match="complex128"):
        flat(np.array([1j]), "odeint", keep=True)
    with pytest.raises(rg.GradientError, match="nothing floating"):
        flat([np.array([1])], "odeint", keep=True)


def test_both_ways_are_differentiable() -> None:
    def f(x):
        vector, back = flat({"a": x, "b": x[:1] * 3.0}, "f")
        return (back(vector**2)["b"]).sum()

    assert rg.grad(f)(rg.tensor([2.0, 5.0])).tolist() == [36.0, 0.0]  # (3 x)**2
