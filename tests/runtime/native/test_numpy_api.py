"""Functions of NumPy, which compiled programs do without where their interface is not known."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from retrograd.codegen.sort.radix import DTYPES
from retrograd.ir import Dim, Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.sort import ArgSort, Sort
from retrograd.runtime.native import numpy_api
from tests.codegen.sort.patterns import marked
from tests.runtime.agreement import GuardedProgram


def test_another_version_of_numpys_interface(monkeypatch):
    """Then the interpreter sorts: the same results, in programs that are compiled already too."""
    monkeypatch.setattr(numpy_api, "KNOWN", 0)
    numpy_api.sort_address.cache_clear()
    try:
        x = input_node(spec((3, Dim("N"))))
        program = GuardedProgram(Graph([x], [Sort(1, True)(x), ArgSort(1)(x)]))
        a = marked(np.random.default_rng(0), np.arange(600.0, dtype=np.float32)).reshape(3, 200)
        values, order = program([a])
        np.testing.assert_array_equal(order, np.argsort(a, axis=1, kind="stable"))
        np.testing.assert_array_equal(
            values, np.take_along_axis(a, np.argsort(-a, kind="stable"), 1)
        )
        program.check_guards()
    finally:
        numpy_api.sort_address.cache_clear()


@pytest.mark.parametrize("symbol", DTYPES)
def test_numbers_are_sorted_in_place(symbol: str) -> None:
    """NaN at the end; by NumPy's own function and through the interpreter."""
    dtype = DTYPES[symbol]
    a = np.random.default_rng(0).integers(0, 1000, 257).astype(dtype)
    if dtype.kind == "f":
        a[[3, 77]] = np.nan
        a[5] = -np.inf
    addresses = [
        numpy_api.sort_address(symbol),
        ctypes.cast(numpy_api._interpreted(dtype), ctypes.c_void_p).value or 0,
    ]
    for address in addresses:
        sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
        x = a.copy()
        assert sort(address)(x.ctypes.data, x.size - 1, None) == 0
        np.testing.assert_array_equal(x[:-1], np.sort(a[:-1]))
        assert x[-1] == a[-1]  # which was not given
