"""Factorisations of matrices, and what is solved with them; stacks of matrices throughout."""

from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.determinant import Cofactor, CofactorSlope, Det, LogAbsDet
from retrograd.ops.linalg.eig import Eig, Eigvals
from retrograd.ops.linalg.eigen import EigenSum, Eigh, Eigvalsh, Turn
from retrograd.ops.linalg.expm import Expm
from retrograd.ops.linalg.least_squares import LeastFactors, LeastSquares
from retrograd.ops.linalg.lu import LU, Inv, Solve
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.polar import Lyapunov, NuclearNorm, Polar
from retrograd.ops.linalg.qr import QR, Complement
from retrograd.ops.linalg.svd import SVD, SingularSum, SpectralNorm, Svdvals
from retrograd.ops.linalg.triangular import TriangularSolve

__all__ = [
    "LU",
    "QR",
    "SVD",
    "Cholesky",
    "Cofactor",
    "CofactorSlope",
    "Complement",
    "Det",
    "Eig",
    "EigenSum",
    "Eigh",
    "Eigvals",
    "Eigvalsh",
    "Expm",
    "Inv",
    "LeastFactors",
    "LeastSquares",
    "LogAbsDet",
    "Lyapunov",
    "NuclearNorm",
    "Pinv",
    "Polar",
    "SingularSum",
    "Solve",
    "SpectralNorm",
    "Svdvals",
    "TriangularSolve",
    "Turn",
]
