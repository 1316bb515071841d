"""Checks of gradients against finite differences, for users who write functions and rules."""

from retrograd.testing.gradients import check_grads, gradcheck
from retrograd.testing.numerical import numerical_gradient

__all__ = ["check_grads", "gradcheck", "numerical_gradient"]
