"""Vectors for symbolic labels."""

import numpy as np
import pytest

from retrograd import gnn
from retrograd.errors import OptionError, ShapeError


def test_a_label_keeps_its_vector() -> None:
    e = gnn.LabelEmbedding(3, seed=1)
    first = e.lookup(["and", ("not", 1), "and"])
    assert (first[0] == first[2]).all()
    assert (first[0] != first[1]).all()
    e.lookup(["or"])
    np.testing.assert_array_equal(e.lookup([("not", 1)])[0], first[1])
    assert len(e) == 3
    again = gnn.LabelEmbedding(3, seed=1).lookup(["x", "y"])
    np.testing.assert_array_equal(again, first[:2])


def test_gradients_of_a_label_that_comes_twice_add_up_and_a_step_descends() -> None:
    e = gnn.LabelEmbedding(2, dtype="float64")
    before = e.lookup(["a", "b", "c"])
    e.accumulate(["b", "a", "b"], [[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])
    np.testing.assert_array_equal(e.grad, [[3, 4], [11, 22], [0, 0]])
    e.step(0.5)
    np.testing.assert_allclose(e.lookup("abc"), before - 0.5 * e.grad)
    e.zero_grad()
    assert not e.grad.any()


def test_refusals() -> None:
    with pytest.raises(ShapeError, match="at least 1"):
        gnn.LabelEmbedding(0)
    e = gnn.LabelEmbedding(2)
    with pytest.raises(ShapeError, match=r"\(1, 2\), not \(2,\)"):
        e.accumulate(["a"], [1.0, 2.0])
    with pytest.raises(OptionError, match="lr"):
        e.step(-1.0)
