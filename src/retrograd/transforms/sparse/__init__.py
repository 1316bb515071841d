"""Jacobians and Hessians, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

from retrograd.tracing.scope import ArgNums
from retrograd.tracing.transformed import Transformed
from retrograd.transforms.jacobian import dense_hessian, dense_jacobian
from retrograd.transforms.sparse.compressed_jacobian import (
    sparse_form,
    sparse_hessian,
    sparse_jacobian,
)

__all__ = ["hessian", "jacobian"]

P = ParamSpec("P")


def jacobian(
    f: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False, sparse: bool | str = False
) -> Transformed[P, Any]:
    """A function that returns the Jacobian of f, in as few passes as it takes: by `jacrev` or by
    `jacfwd`, whichever needs fewer for the sizes at hand.

    With `sparse`, the result is a SciPy array, in the format `"csr"` (also `True`), `"csc"` or
    `"coo"`, with a row for each element of the outputs and a column for each element of the
    argument; of trees, leaf after leaf. Which elements may be nonzero is found out from the
    operations of f, and those that cannot meet are computed together, so a Jacobian with a few
    elements in each row takes a few passes, whatever its size. Zeros that the operations do not
    tell, only the values, are stored. The pattern is remembered for the types of the arguments and
    the values of integer ones, such as indices.

    Raises `GradientError` for outputs or arguments that are not floating.

    >>> import retrograd as rg
    >>> f = lambda x: (x[1:] - x[:-1]) ** 2
    >>> x = rg.arange(1000, dtype="float64")
    >>> rg.jacobian(f)(x).shape
    (999, 1000)
    >>> rg.jacobian(f, sparse=True)(x).nnz
    1998
    """
    if not sparse:
        return dense_jacobian(f, argnums, has_aux)
    return sparse_jacobian(f, argnums, sparse_form(sparse, has_aux, "jacobian"))


def hessian(
    f: Callable[P, Any], argnums: ArgNums = 0, has_aux: bool = False, sparse: bool | str = False
) -> Transformed[P, Any]:
    """A function that returns the matrix of second derivatives of a scalar function, by forward
    mode through the gradient.

    The result is structured as that of `jacobian(jacobian(f))`: for an argument of shape t a block
    of shape `t + t`. `sparse` is as for `jacobian`; the matrix is symmetric, which takes still
    fewer passes.

    `GradientError` for integer or complex arguments.

    >>> import retrograd as rg
    >>> rg.hessian(lambda x: (x**3).sum())(rg.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    if not sparse:
        return dense_hessian(f, argnums, has_aux)
    return sparse_hessian(f, argnums, sparse_form(sparse, has_aux, "hessian"))
