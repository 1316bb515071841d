"""A function of a tree as a function of one vector, which is what solvers work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.functions.elementwise import astype
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import float64
from retrograd.solvers.flat import flat
from retrograd.tracing.scope import need_function
from retrograd.transforms.grad import grad, value_and_grad
from retrograd.transforms.jacobian import dense_hessian
from retrograd.transforms.jit.jit import jit
from retrograd.transforms.jvp import jvp

Array = np.ndarray[Any, Any]


class Objective:
    """A scalar function of a tree in the form in which `scipy.optimize` takes it, compiled.

    `fun(v)` is the value, `jac(v)` the gradient, `fun_and_jac(v)` both, `hessp(v, p)` the product
    of the Hessian and a vector, `hess(v)` the Hessian, all of float64 vectors; `x0` is the vector
    to start from, `unpack(v)` the tree of a vector. Values are computed in the dtypes of the tree.

    >>> import numpy as np, scipy.optimize, retrograd as rg
    >>> o = rg.solvers.objective(lambda p: ((p["a"] - 3.0) ** 2).sum(), {"a": np.zeros(2)})
    >>> found = scipy.optimize.minimize(o.fun_and_jac, o.x0, jac=True, method="BFGS")
    >>> o.unpack(found.x)["a"].tolist()
    [3.0, 3.0]
    """

    def __init__(self, f: Callable[..., Any], x0: Any) -> None:
        need_function(f, "minimize")
        vector, back = flat(x0, "minimize", keep=True)
        self.x0: Array = np.array(vector.detach().numpy(), np.float64)
        self._back = back

        def of_vector(v: Any) -> Any:
            return astype(f(back(v)), float64)

        def along(v: Any, p: Any) -> Any:
            return jvp(grad(of_vector), (v,), (p,))[1]

        self._both = jit(value_and_grad(of_vector))
        self._hessp = jit(along)
        self._hess = jit(dense_hessian(of_vector))

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

    def hess(self, v: Array) -> Array:
        return np.array(self._hess(np.asarray(v, np.float64)).numpy())

    def unflat(self, v: Tensor) -> Any:
        """The tree of a tensor, differentiable."""
        return self._back(v)

    def unpack(self, v: Array) -> Any:
        return self._back(Tensor.of(np.array(v, np.float64)))


def objective(f: Callable[..., Any], x0: Any) -> Objective:
    """`f`, a scalar function of a tree like `x0`, for the solvers of `scipy.optimize`."""
    return Objective(f, x0)
