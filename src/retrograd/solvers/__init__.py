"""Solvers of equations, minimisation problems and differential equations."""

from retrograd.solvers.implicit import fixed_point, root
from retrograd.solvers.minimizers import Minimum, minimize
from retrograd.solvers.nonlinear_least_squares import LeastSquaresResult, least_squares
from retrograd.solvers.objectives import Objective, objective
from retrograd.solvers.ode import odeint

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
