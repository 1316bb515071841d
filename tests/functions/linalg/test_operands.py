"""Operands of functions of matrices: floating, of one dtype, matrices, of one shape of stack."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.linalg.operands import inexact, matrices, stacked_alike


def test_operands_become_floating_of_one_dtype() -> None:
    a, b = inexact(np.ones((2, 2), np.int64), np.ones(2, np.float64))
    assert (a.dtype, b.dtype) == (rg.float64, rg.float64)
    (c,) = inexact(np.ones((2, 2), np.int8))
    assert c.dtype is rg.float32
    assert [x.dtype for x in inexact(np.ones(1, np.float32), np.ones(1, np.complex64))] == [
        rg.complex64
    ] * 2


def test_what_is_no_matrix_is_refused_by_the_name_of_the_function() -> None:
    (a,) = matrices("det", np.ones((4, 2, 3)))
    assert a.shape == (4, 2, 3)
    with pytest.raises(rg.ShapeError, match="det"):
        matrices("det", np.ones(3))


def test_stacks_are_broadcast_and_matrices_are_not() -> None:
    a, b = stacked_alike(*inexact(np.ones((5, 1, 2, 3)), np.ones((4, 3, 7))))
    assert (a.shape, b.shape) == ((5, 4, 2, 3), (5, 4, 3, 7))
    with pytest.raises(rg.ShapeError):
        stacked_alike(*inexact(np.ones((2, 3, 3)), np.ones((4, 3, 3))))
