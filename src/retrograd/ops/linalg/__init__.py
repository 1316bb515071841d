"""Factorisations of matrices, and what is solved with them; stacks of matrices throughout."""

from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.triangular import TriangularSolve

__all__ = ["Cholesky", "TriangularSolve"]
