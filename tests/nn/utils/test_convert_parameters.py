"""Parameters as one vector, and back."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import ShapeError

U = nn.utils


def test_there_and_back() -> None:
    m = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    v = U.parameters_to_vector(m.parameters())
    expected = np.concatenate([p.numpy().ravel() for p in m.parameters()])
    np.testing.assert_array_equal(v.detach().numpy(), expected)
    (v * v).sum().backward()
    for p in m.parameters():
        np.testing.assert_allclose(p.grad.numpy(), 2 * p.numpy())
    U.vector_to_parameters(2 * v.detach(), m.parameters())
    np.testing.assert_array_equal(U.parameters_to_vector(m).detach().numpy(), 2 * expected)
    assert m[0].weight.requires_grad


def test_refusals() -> None:
    m = nn.Linear(2, 3)
    before = m.weight.numpy().copy()
    with pytest.raises(ShapeError, match=r"are \[9\], not \(8,\)"):
        U.vector_to_parameters(rg.ones(8), m.parameters())
    np.testing.assert_array_equal(m.weight.numpy(), before)
    with pytest.raises(ShapeError, match="no parameters"):
        U.parameters_to_vector([])
    one: Any = m.weight
    with pytest.raises(TypeError, match="not one tensor"):
        U.parameters_to_vector(one)
