"""Cholesky: the reference factorisation of a matrix large enough to be cut into halves."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.autodiff import pullback
from retrograd.errors import LinAlgError
from retrograd.ir import Graph
from retrograd.ops.leaf import constant
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.verify.rule_checks import placeholders, run
from tests.ops.linalg.matrices import general


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky(dtype):
    x = general(70, 70, dtype)
    s = x @ x.conj().T + np.eye(70)
    np.testing.assert_allclose(Cholesky().reference(s), np.linalg.cholesky(s), atol=1e-12)
    s[60, 60] = -1
    with pytest.raises(LinAlgError, match="minor of order 61 "):
        Cholesky().reference(s)


@pytest.mark.parametrize("upper", [False, True])
def test_what_is_asked_of_the_zeros_beside_the_factor_changes_nothing(upper):
    """Not even NaN."""
    x, weights = 3 * np.eye(3) + general(3, 3, "float64") / 9, general(3, 3, "float64")
    off = (np.tril if upper else np.triu)(np.ones((3, 3)), -1 if upper else 1) != 0
    found, other = pulled(Cholesky(upper), x, [weights, np.where(off, np.nan, weights)])
    np.testing.assert_array_equal(found, other)


def pulled(op, x, gs):
    """What reverse mode gives for cotangents of an op of one matrix."""
    (node,) = placeholders([x])
    ends = [pullback([op(node)], [constant(g)], [node])[0] for g in gs]
    return run(Graph([node], [end for end in ends if end is not None]), [x])
