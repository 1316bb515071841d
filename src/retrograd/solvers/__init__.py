"""Solvers: of minimisation, by methods that need gradients."""

from retrograd.solvers.minimize import Minimum, minimize
from retrograd.solvers.vector import Objective, objective

__all__ = ["Minimum", "Objective", "minimize", "objective"]
