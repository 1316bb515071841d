"""Nonlinear least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.eager.dispatch import ArrayLike
from retrograd.errors import NonFiniteError, OptionError, nearest
from retrograd.functions.elementwise import astype
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import float64
from retrograd.lazy_import import need
from retrograd.solvers.constraints import bounds_of
from retrograd.solvers.flat import flat
from retrograd.tracing.scope import need_function
from retrograd.transforms.jacobian import dense_jacobian
from retrograd.transforms.jit.jit import jit

Array = np.ndarray[Any, Any]
METHODS = ("trf", "dogbox", "lm")
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")


@dataclass(frozen=True)
class LeastSquaresResult:
    """What `least_squares` found. The names are those of `scipy.optimize.OptimizeResult`."""

    x: Any  # a tree like x0
    cost: float  # half the sum of the squares, or of what the loss makes of them
    fun: Array  # the residuals, as one vector
    jac: Array  # their Jacobian with respect to the vector of all floating leaves
    grad: Any  # the gradient of the cost, a tree like x0
    optimality: float  # the largest element of the gradient, scaled where there are bounds
    nfev: int
    success: bool
    message: str


def least_squares(
    residuals: Callable[[Any], Any],
    x0: Any,
    *,
    method: str = "trf",
    bounds: Any = None,
    loss: str = "linear",
    f_scale: float = 1.0,
    tol: float = 1e-8,
    max_steps: int | None = None,
) -> LeastSquaresResult:
    """The tree near `x0` that makes `1/2 sum(residuals(x)**2)` least: SciPy's `least_squares`
    (extra: scipy) with residuals and their exact Jacobian compiled, over trees.

    `residuals` returns a tree of numbers. `method` is "trf" (trust region reflective), "dogbox" or
    "lm" (Levenberg and Marquardt's, without bounds). `bounds` are as for `minimize`. `loss` is what
    is made of each square: "linear", or of outliers less, "soft_l1", "huber", "cauchy", "arctan",
    with residuals measured by `f_scale`. `tol` is the tolerance in cost, x and gradient,
    `max_steps` bounds the evaluations. Leaves that are not floating are kept; the vector is kept in
    float64. The result is constant.

    Raises `NonFiniteError` if residuals at x0 are not finite, `OptionError` for an unknown method
    or loss, and for "lm" with bounds, another loss or fewer residuals than unknowns, `BackendError`
    without SciPy.

    >>> import numpy as np, retrograd as rg
    >>> t = np.linspace(0, 1, 20)
    >>> data = 2.0 * np.exp(-3.0 * t)
    >>> start = {"a": np.array(1.0), "k": np.array(1.0)}
    >>> found = rg.solvers.least_squares(lambda p: p["a"] * rg.exp(-p["k"] * t) - data, start)
    >>> round(found.x["a"].item(), 6), round(found.x["k"].item(), 6)
    (2.0, 3.0)
    """
    need_function(residuals, "least_squares")
    for given, known, what in ((method, METHODS, "method"), (loss, LOSSES, "loss")):
        if given not in known:
            near = nearest(str(given), known)
            raise OptionError(
                f"least_squares: {what} is one of {', '.join(known)}, not {given!r}{near}"
            )
    optimize = need("scipy.optimize", "least_squares")
    vector, back = flat(x0, "least_squares", keep=True)

    def values(v: ArrayLike) -> Any:
        return astype(flat(residuals(back(v)), "least_squares: the residuals")[0], float64)

    compiled, slopes = jit(values), jit(dense_jacobian(values))
    start: Array = np.array(vector.detach().numpy(), np.float64)
    if not np.isfinite(first := compiled(start).numpy()).all():
        bad = int((~np.isfinite(first)).sum())
        raise NonFiniteError(f"least_squares: {bad} residuals at x0 are not finite")
    limits = bounds_of(bounds, x0, "least_squares")
    if method == "lm" and (limits is not None or loss != "linear" or first.size < start.size):
        raise OptionError(
            "least_squares: lm takes no bounds, the linear loss, and at least as many residuals "
            f"({first.size}) as unknowns ({start.size}); trf takes all"
        )
    found = optimize.least_squares(
        lambda v: np.array(compiled(v).numpy()),
        start,
        jac=lambda v: np.array(slopes(v).numpy()),
        bounds=(-np.inf, np.inf) if limits is None else limits,
        method=method,
        loss=loss,
        f_scale=f_scale,
        ftol=tol,
        xtol=tol,
        gtol=tol,
        max_nfev=max_steps,
    )
    return LeastSquaresResult(
        x=back(Tensor.of(np.array(found.x))),
        cost=float(found.cost),
        fun=found.fun,
        jac=found.jac,
        grad=back(Tensor.of(np.array(found.grad))),
        optimality=float(found.optimality),
        nfev=int(found.nfev),
        success=bool(found.success),
        message=str(found.message),
    )
