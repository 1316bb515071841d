"""`checkpoint(f, *args)`: the same numbers and gradients."""

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential


def test_values_and_gradients_are_those_of_the_function() -> None:
    w: Any = rg.tensor(np.linspace(-1, 1, 6).reshape(3, 2), requires_grad=True)
    x: Any = rg.tensor(np.ones((4, 3)), requires_grad=True)
    plain = rg.tanh(x @ w).sum()
    plain.backward()
    expected = w.grad.tolist(), x.grad.tolist()
    w.grad = x.grad = None
    y = checkpoint(lambda x: rg.tanh(x @ w), x, use_reentrant=False).sum()
    assert y.item() == plain.item()
    y.backward()
    assert (w.grad.tolist(), x.grad.tolist()) == expected


def test_a_sequence_in_segments() -> None:
    parts = [rg.sin, rg.cos, rg.exp, rg.tanh, rg.sin]
    x: Any = rg.tensor([0.3, 0.7], requires_grad=True)
    expected = x
    for part in parts:
        expected = part(expected)
    for segments in (1, 2, 3, 9):
        assert checkpoint_sequential(parts, segments, x).tolist() == expected.tolist()
