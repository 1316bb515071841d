"""Minimisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import NonFiniteError, OptionError
from retrograd.solvers.objectives import Array, Objective

# Names of methods, as SciPy calls them, and whether they use products with the Hessian.
_METHODS = {
    "L-BFGS": ("L-BFGS-B", False),
    "BFGS": ("BFGS", False),
    "CG": ("CG", False),
    "Newton-CG": ("Newton-CG", True),
    "trust-ncg": ("trust-ncg", True),
    "trust-krylov": ("trust-krylov", True),
}


@dataclass(frozen=True)
class Minimum:
    """What `minimize` found. The names are those of `scipy.optimize.OptimizeResult`."""

    x: Any  # a tree like x0
    fun: float  # the value there
    jac: Any  # the gradient there, a tree like x0
    nit: int  # steps
    nfev: int  # values and gradients computed
    success: bool
    message: str  # why it ended


def minimize(
    f: Callable[..., Any],
    x0: Any,
    *,
    method: str = "L-BFGS",
    tol: float | None = None,
    max_steps: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Minimum:
    """A local minimum of the scalar function `f` near `x0`, a tree of arrays (a module, say).

    The methods are SciPy's, with values, gradients and products with the Hessian compiled from
    `f`: "L-BFGS" (limited memory, bounded storage), "BFGS", "CG" (nonlinear conjugate gradients),
    and with exact Hessian products "Newton-CG", "trust-ncg", "trust-krylov". Leaves that are not
    floating are kept as they are. The vector of all leaves is kept in float64; `f` is computed in
    the dtypes of `x0`.

    `tol` is the tolerance of the method (for most the largest element of the gradient), `max_steps`
    bounds the steps, `callback(x)` is called after each, `options` are passed to
    `scipy.optimize.minimize`. The result is constant: to differentiate through a minimum, solve for
    a root of the gradient.

    Raises `NonFiniteError` if the value or gradient at `x0` is not finite, `GradientError` if `f`
    is not a real scalar, `OptionError` for an unknown method.

    The minimum has the structure, shapes and dtypes of `x0`.

    >>> import numpy as np, retrograd as rg
    >>> rosenbrock = lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    >>> found = rg.minimize(rosenbrock, np.zeros(5), method="Newton-CG", tol=1e-10)
    >>> found.success, np.round(found.x.numpy(), 6).tolist()
    (True, [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    from scipy import optimize

    known = {key.lower(): value for key, value in _METHODS.items()}  # SciPy does not mind the case
    if not isinstance(method, str) or method.lower() not in known:
        raise OptionError(f"method is one of {', '.join(_METHODS)}, not {method!r}")
    name, second = known[method.lower()]
    goal = Objective(f, x0)
    _check_start(goal)
    given = dict(options or {})
    if max_steps is not None:
        if not isinstance(max_steps, int) or max_steps < 0:
            raise OptionError(f"max_steps is a number of steps, not {max_steps!r}")
        given["maxiter"] = max_steps
    found = optimize.minimize(
        goal.fun_and_jac,
        goal.x0,
        jac=True,
        hessp=goal.hessp if second else None,
        method=name,
        tol=tol,
        callback=None if callback is None else lambda v: callback(goal.unpack(v)),
        options=given,
    )
    return Minimum(
        x=goal.unpack(found.x),
        fun=float(found.fun),
        jac=goal.unpack(found.jac),
        nit=int(found.nit),
        nfev=int(found.nfev),
        success=bool(found.success) and math.isfinite(found.fun),
        message=str(found.message),
    )


def _check_start(goal: Objective) -> None:
    value, gradient = goal.fun_and_jac(goal.x0)
    bad: Array = ~np.isfinite(gradient)
    if not math.isfinite(value) or bad.any():
        what = "value" if not math.isfinite(value) else f"gradient in {bad.sum()} elements"
        raise NonFiniteError(
            f"minimize: the {what} at x0 is not finite; evaluate the function there inside "
            "rg.debug() to see where it comes from"
        )
