"""Minimisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import NonFiniteError, OptionError, nearest
from retrograd.lazy_import import need
from retrograd.solvers.constraints import bounds_of, constraints_of
from retrograd.solvers.objectives import Array, Objective

# Names of methods, and the derivatives that SciPy is given: gradients, products with the Hessian,
# or the whole of it.
_METHODS = {
    "L-BFGS": ("jac",), "L-BFGS-B": ("jac",), "BFGS": ("jac",), "CG": ("jac",), "TNC": ("jac",),
    "SLSQP": ("jac",), "Newton-CG": ("jac", "hessp"), "trust-ncg": ("jac", "hessp"),
    "trust-krylov": ("jac", "hessp"), "trust-constr": ("jac", "hessp"),
    "trust-exact": ("jac", "hess"), "dogleg": ("jac", "hess"),
    "Nelder-Mead": (), "Powell": (), "COBYLA": (), "COBYQA": (),
}  # fmt: skip
_BOUNDED = (
    "L-BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell", "COBYLA",
    "COBYQA",
)  # fmt: skip
_CONSTRAINED = ("SLSQP", "trust-constr", "COBYLA", "COBYQA")


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
    method: str | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    max_steps: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Minimum:
    """A local minimum of the scalar function `f` near `x0`, a tree of arrays (a module, say).

    The methods are those of `scipy.optimize.minimize` (extra: scipy), with values and derivatives
    compiled from `f`: by gradients "L-BFGS" (also "L-BFGS-B"; what is taken where nothing is said),
    "BFGS", "CG", "TNC", "SLSQP" (what is taken where there are constraints); also by exact products
    with the Hessian "Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"; by the whole Hessian
    "trust-exact", "dogleg"; without derivatives "Nelder-Mead", "Powell", "COBYLA", "COBYQA". Leaves
    that are not floating are kept as they are. The vector of all leaves is kept in float64; `f` is
    computed in the dtypes of `x0`.

    `bounds` are a pair `(lower, upper)` of numbers, arrays that broadcast, or None for none; or a
    tree like x0, or like its upper part, with such pairs; for one array also what SciPy takes, a
    pair for each element or `Bounds`. Of "L-BFGS", "TNC", "SLSQP", "trust-constr" and those without
    derivatives.

    `constraints` are one or a list of `{"type": "eq", "fun": c}` (`c(x) = 0`) and `"ineq"`
    (`c(x) >= 0`), or SciPy's `NonlinearConstraint(c, lb, ub)`, where c is a function of the tree to
    a tree of numbers, whose derivatives are exact, too; or `LinearConstraint`s on the vector. Of
    "SLSQP", "trust-constr", "COBYLA", "COBYQA".

    `tol` is the tolerance of the method (for most the largest element of the gradient), `max_steps`
    bounds the steps, `callback(x)` is called after each, `options` are passed to
    `scipy.optimize.minimize`. The result is constant: to differentiate through a minimum, solve for
    a root of the gradient from there, `rg.root(rg.grad(f), found.x)`.

    Raises `NonFiniteError` if the value or gradient at `x0` is not finite, `GradientError` if `f`
    is not a real scalar, `OptionError` for an unknown method, or bounds or constraints that it does
    not take, `BackendError` without SciPy.

    The minimum has the structure, shapes and dtypes of `x0`.

    >>> import numpy as np, retrograd as rg
    >>> rosenbrock = lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    >>> found = rg.minimize(rosenbrock, np.zeros(5), method="Newton-CG", tol=1e-10)
    >>> found.success, np.round(found.x.numpy(), 6).tolist()
    (True, [1.0, 1.0, 1.0, 1.0, 1.0])
    >>> disc = {"type": "ineq", "fun": lambda p: 1.0 - p["x"] ** 2 - p["y"] ** 2}
    >>> start = {"x": np.array(0.5), "y": np.array(0.5)}
    >>> found = rg.minimize(lambda p: p["x"] + p["y"], start, constraints=disc)
    >>> round(found.x["x"].item(), 6), round(found.fun, 6)
    (-0.707107, -1.414214)
    """
    optimize = need("scipy.optimize", "minimize")
    name = _method(method, bounds is not None, constraints)
    derivatives = _METHODS[name]
    goal = Objective(f, x0)
    _check_start(goal, bool(derivatives))
    limits = bounds_of(bounds, x0, "minimize")
    others = constraints_of(constraints, goal.unflat, name, "minimize")
    given = dict(options or {})
    if max_steps is not None:
        if not isinstance(max_steps, int) or max_steps < 0:
            raise OptionError(f"max_steps is a number of steps, not {max_steps!r}")
        given["maxiter"] = max_steps
    found = optimize.minimize(
        goal.fun_and_jac if derivatives else goal.fun,
        goal.x0,
        jac=bool(derivatives) or None,
        hessp=goal.hessp if "hessp" in derivatives else None,
        hess=goal.hess if "hess" in derivatives else None,
        method="L-BFGS-B" if name == "L-BFGS" else name,
        bounds=limits,
        constraints=others,
        tol=tol,
        callback=None if callback is None else lambda v: callback(goal.unpack(v)),
        options=given,
    )
    return Minimum(
        x=goal.unpack(found.x),
        fun=float(found.fun),
        jac=goal.unpack(goal.jac(found.x)),
        nit=int(found.get("nit", found.nfev)),  # COBYLA does not count steps
        nfev=int(found.nfev),
        success=bool(found.success) and math.isfinite(found.fun),
        message=str(found.message),
    )


def _method(method: str | None, is_bounded: bool, constraints: Any) -> str:
    """The name of a method that takes what is given."""
    is_constrained = not (isinstance(constraints, list | tuple) and not constraints)
    if method is None:
        method = "SLSQP" if is_constrained else "L-BFGS"
    known = {key.lower(): key for key in _METHODS}  # SciPy does not mind the case
    if not isinstance(method, str) or method.lower() not in known:
        near = nearest(str(method), _METHODS)
        raise OptionError(f"method is one of {', '.join(_METHODS)}, not {method!r}{near}")
    name = known[method.lower()]
    for given, able, what in (
        (is_bounded, _BOUNDED, "bounds"), (is_constrained, _CONSTRAINED, "constraints")
    ):  # fmt: skip
        if given and name not in able:
            raise OptionError(f"minimize: {name} takes no {what}; {', '.join(able)} do")
    return name


def _check_start(goal: Objective, by_gradients: bool) -> None:
    value, gradient = goal.fun_and_jac(goal.x0)
    bad: Array = ~np.isfinite(gradient) & by_gradients
    if not math.isfinite(value) or bad.any():
        what = "value" if not math.isfinite(value) else f"gradient in {bad.sum()} elements"
        raise NonFiniteError(
            f"minimize: the {what} at x0 is not finite; evaluate the function there inside "
            "rg.debug() to see where it comes from"
        )
