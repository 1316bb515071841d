"""Functions of OpenBLAS and LAPACK by the names that programs use, called as C and as Fortran."""

import ctypes

import numpy as np
import pytest

from retrograd.errors import BackendError
from retrograd.runtime.openblas import openblas_address

POINTER = ctypes.c_void_p


def test_a_product_by_cblas() -> None:
    address = openblas_address("rg_cblas_dgemm")
    kinds = [ctypes.c_int] * 6 + [ctypes.c_double, POINTER, ctypes.c_int, POINTER, ctypes.c_int]
    dgemm = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_double, POINTER, ctypes.c_int)(address)
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    c = np.ones((2, 4))
    rows, plain = 101, 111
    dgemm(
        rows, plain, plain, 2, 4, 3, 2.0, a.ctypes.data, 3, b.ctypes.data, 4, 1.0, c.ctypes.data, 4
    )
    np.testing.assert_array_equal(c, 2 * a @ b + 1)


def test_factors_by_lapack_take_every_argument_by_address() -> None:
    dpotrf = ctypes.CFUNCTYPE(None, *[POINTER] * 5, ctypes.c_int64)(
        openblas_address("rg_lapack_dpotrf")
    )
    x = np.array([[4.0, 2.0], [2.0, 10.0]])
    n, status = ctypes.c_int(2), ctypes.c_int(-1)
    letter = ctypes.create_string_buffer(b"U")  # of what lies in columns; in rows the lower half
    dpotrf(
        ctypes.addressof(letter), ctypes.addressof(n), x.ctypes.data, ctypes.addressof(n),
        ctypes.addressof(status), 1,
    )  # fmt: skip
    assert status.value == 0
    np.testing.assert_array_equal(np.tril(x), [[2, 0], [1, 3]])


def test_what_there_is_not() -> None:
    with pytest.raises(BackendError, match="no function scipy_nonsense_"):
        openblas_address("rg_lapack_nonsense")
