"""Bounds of what a program can give, for all inputs of a region."""

from retrograd.verify.bound_propagation import alpha as _alpha  # noqa: F401 - enters the methods
