"""Linear algebra."""

from __future__ import annotations

from typing import Any

from retrograd.ir import Node
from retrograd.ops.linalg.cholesky import Cholesky
from retrograd.ops.linalg.determinant import Cofactor, CofactorSlope, Det, LogAbsDet
from retrograd.ops.linalg.eig import Eig, Eigvals
from retrograd.ops.linalg.eigen import Eigh, Eigvalsh
from retrograd.ops.linalg.expm import Expm
from retrograd.ops.linalg.least_squares import LeastFactors, LeastSquares
from retrograd.ops.linalg.lu import LU, Inv, Solve
from retrograd.ops.linalg.pinv import Pinv
from retrograd.ops.linalg.qr import QR, Complement
from retrograd.ops.linalg.svd import SVD, Svdvals
from retrograd.ops.linalg.triangular import TriangularSolve
from retrograd.ops.toposort import DagOrder
from retrograd.xla.lowering.host_call import host_call
from retrograd.xla.lowering.rules import JaxTrace, lowers

lowers(Cholesky, Cofactor, CofactorSlope, Eig, Eigvals, Eigh, Eigvalsh, Expm, LeastFactors)(
    host_call
)
lowers(LeastSquares, LU, Inv, Solve, QR, Complement, SVD, Svdvals, TriangularSolve, DagOrder)(
    host_call
)


@lowers(Det, LogAbsDet, Pinv)
def given(t: JaxTrace, node: Node, x: Any, y: Any) -> Any:
    """Ops that give their second operand a derivative."""
    return y
