"""`rg.linalg`: the linear algebra of the array API standard, and what SciPy and PyTorch add to it.

Matrices are the last two axes, all axes before them are stacks. Real and complex numbers of both
precisions are computed by LAPACK, half precision in float32; integers become float32.
"""

from typing import TYPE_CHECKING

from retrograd.errors import LinAlgError
from retrograd.functions.contractions import (
    cross,
    kron,
    matmul,
    multi_dot,
    outer,
    tensordot,
    vecdot,
)
from retrograd.functions.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    lu_factor,
    qr,
    svd,
    svdvals,
)
from retrograd.functions.linalg.determinants import cond, det, diag, diagonal, slogdet, trace
from retrograd.functions.linalg.linear_systems import (
    cho_solve,
    expm,
    inv,
    lstsq,
    lu_solve,
    matrix_power,
    matrix_rank,
    pinv,
    solve,
    solve_triangular,
)
from retrograd.functions.linalg.norms import matrix_norm, norm, vector_norm
from retrograd.functions.linalg.tensor_equations import (
    block_diag,
    tensorinv,
    tensorsolve,
    vander,
)
from retrograd.functions.manipulation import matrix_transpose
from retrograd.lazy_import import attach

matrix_exp = expm  # PyTorch's name

if TYPE_CHECKING:
    from retrograd.functions.linalg.matrix_functions import (
        absmh,
        expmh,
        funmh,
        invsqrtmh,
        logmh,
        matrix_sqrth,
        polar,
        powmh,
        signmh,
        sqrtmh,
    )


# They trace functions, with tensors, whose methods are made of the rest.
LATER_NAMES = dict.fromkeys(
    (
        "matrix_sqrth",
        "absmh",
        "expmh",
        "funmh",
        "invsqrtmh",
        "logmh",
        "polar",
        "powmh",
        "signmh",
        "sqrtmh",
    ),
    "retrograd.functions.linalg.matrix_functions",
)

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = attach(__name__, {}, LATER_NAMES)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "LinAlgError",
    "absmh",
    "block_diag",
    "cho_solve",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diag",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expmh",
    "funmh",
    "inv",
    "invsqrtmh",
    "kron",
    "logmh",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_sqrth",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "polar",
    "powmh",
    "qr",
    "signmh",
    "slogdet",
    "solve",
    "solve_triangular",
    "sqrtmh",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]
