"""Solvers of equations, minimisation problems and differential equations."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.solvers.implicit import fixed_point, root
from retrograd.solvers.minimizers import Minimum, minimize
from retrograd.solvers.nonlinear_least_squares import LeastSquaresResult, least_squares
from retrograd.solvers.objectives import Objective, objective
from retrograd.solvers.ode import odeint

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "LeastSquaresResult",
    "Minimum",
    "Objective",
    "fixed_point",
    "least_squares",
    "minimize",
    "objective",
    "odeint",
    "root",
]
