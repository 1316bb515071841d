"""Solvers of minimisation problems and differential equations."""

from retrograd.solvers.minimize import Minimum, minimize
from retrograd.solvers.ode import odeint
from retrograd.solvers.vector import Objective, objective

__all__ = ["Minimum", "Objective", "minimize", "objective", "odeint"]
