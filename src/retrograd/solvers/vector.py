"""A function of a tree as a function of one vector, which is what solvers work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.errors import DTypeError, GradientError
from retrograd.frontend import tree
from retrograd.frontend.conversion import as_array
from retrograd.frontend.elementwise import astype
from retrograd.frontend.jit import jit
from retrograd.frontend.manipulation import reshape
from retrograd.frontend.tensor import Tensor
from retrograd.frontend.transforms import grad, jvp, value_and_grad
from retrograd.ir import as_dtype, float64

Array = np.ndarray[Any, Any]


class Vector:
    """A tree with its floating leaves laid out in one float64 vector; other leaves are kept.

    Complex leaves are refused, as what is minimised or solved for is a real vector.
    """

    def __init__(self, example: Any, what: str) -> None:
        leaves, self._structure = tree.flatten(example)
        self._leaves = [np.asarray(as_array(x)) for x in leaves]
        kinds = [as_dtype(a.dtype) for a in self._leaves]
        if any(d.is_complex for d in kinds):
            raise DTypeError(f"{what} takes real numbers; split complex ones into two leaves")
        self._places = [i for i, d in enumerate(kinds) if d.is_inexact]
        if not self._places:
            raise GradientError(f"{what} needs a leaf that is floating")

    def pack(self, x: Any) -> Array:
        """The vector of a tree like the example."""
        leaves, structure = tree.flatten(x)
        if structure != self._structure:
            raise GradientError(f"a tree like {self._structure} is needed, not {structure}")
        parts = [np.asarray(as_array(leaves[i])).astype(np.float64).ravel() for i in self._places]
        return np.concatenate(parts)

    def unpack(self, v: Tensor) -> Any:
        """The tree of a vector, in the dtypes of the example; differentiable."""
        new: list[Any] = [Tensor.of(a) for a in self._leaves]
        start = 0
        for i in self._places:
            a = self._leaves[i]
            piece = reshape(v[start : start + a.size], a.shape)
            new[i] = astype(piece, as_dtype(a.dtype))
            start += a.size
        return tree.unflatten(self._structure, new)


class Objective:
    """A scalar function of a tree in the form in which `scipy.optimize` takes it, compiled.

    `fun(v)` is the value, `jac(v)` the gradient, `fun_and_jac(v)` both, `hessp(v, p)` the product
    of the Hessian and a vector, all of float64 vectors; `x0` is the vector to start from,
    `unpack(v)` the tree of a vector. Values are computed in the dtypes of the tree.

    >>> import numpy as np, scipy.optimize, retrograd as rg
    >>> o = rg.solvers.objective(lambda p: ((p["a"] - 3.0) ** 2).sum(), {"a": np.zeros(2)})
    >>> found = scipy.optimize.minimize(o.fun_and_jac, o.x0, jac=True, method="BFGS")
    >>> o.unpack(found.x)["a"].tolist()
    [3.0, 3.0]
    """

    def __init__(self, f: Callable[..., Any], x0: Any) -> None:
        vector = self._vector = Vector(x0, "minimize")
        self.x0 = vector.pack(x0)

        def of_vector(v: Tensor) -> Any:
            return astype(f(vector.unpack(v)), float64)

        def along(v: Tensor, p: Tensor) -> Any:
            return jvp(grad(of_vector), (v,), (p,))[1]

        self._both = jit(value_and_grad(of_vector))
        self._hessp = jit(along)

    def fun(self, v: Array) -> float:
        return self.fun_and_jac(v)[0]

    def jac(self, v: Array) -> Array:
        return self.fun_and_jac(v)[1]

    def fun_and_jac(self, v: Array) -> tuple[float, Array]:
        value, gradient = self._both(np.asarray(v, np.float64))
        return value.item(), np.array(gradient.numpy())

    def hessp(self, v: Array, p: Array) -> Array:
        given = np.asarray(v, np.float64), np.asarray(p, np.float64)
        return np.array(self._hessp(*given).numpy())

    def unpack(self, v: Array) -> Any:
        return self._vector.unpack(Tensor.of(np.array(v, np.float64)))


def objective(f: Callable[..., Any], x0: Any) -> Objective:
    """`f`, a scalar function of a tree like `x0`, for the solvers of `scipy.optimize`."""
    return Objective(f, x0)
