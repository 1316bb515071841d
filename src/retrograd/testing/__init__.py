"""Checks of gradients against finite differences, for users who write functions and rules."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.testing.gradients import check_grads, gradcheck
from retrograd.testing.numerical import numerical_gradient

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = ["check_grads", "gradcheck", "numerical_gradient"]
