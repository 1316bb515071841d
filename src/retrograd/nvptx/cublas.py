"""Matrix products by cuBLAS, where that is installed: `pip install nvidia-cublas`, or CUDA itself.

Products are of full precision: the mode is pedantic, so neither TF32 nor reduced sums are used. The
order of a sum is the library's; where results are to have the bits of a processor, give
`TUNING.cuda_cublas` the value 0, and all products are those of `product.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from retrograd.errors import BackendError
from retrograd.ir import float64
from retrograd.lazy_import import need
from retrograd.nvptx.emit.stacked_product import StackedProduct
from retrograd.schedule.buffer import Buffer

PEDANTIC = 2  # CUBLAS_PEDANTIC_MATH


class Cublas:
    """The library, with a handle for one stream."""

    def __init__(self, library: Any, stream: int, workspace: tuple[int, int]) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._do(library.cublasCreate_v2(ctypes.byref(self._handle)))
        self._do(library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)))
        self._do(library.cublasSetMathMode(self._handle, PEDANTIC))
        address, size = workspace  # of our own, so that graphs of launches need no other
        self._do(
            library.cublasSetWorkspace_v2(
                self._handle, ctypes.c_void_p(address), ctypes.c_size_t(size)
            )
        )

    def _do(self, code: int) -> None:
        if code:
            raise BackendError(f"the cuda backend: cuBLAS gives the status {code}")

    def run(self, product: StackedProduct, places: Mapping[Buffer, int]) -> None:
        """Put the products into the stream. The library has matrices in columns: what it is given
        is the transpose of the product, that of b times that of a."""
        wide = product.dtype is float64
        number = ctypes.c_double if wide else ctypes.c_float
        one, zero = number(1), number(0)
        a, b, y = (
            ctypes.c_void_p(places[x.buffer] + x.offset * product.dtype.itemsize)
            for x in (product.a, product.b, product.y)
        )
        function = (
            self._library.cublasDgemmStridedBatched
            if wide
            else self._library.cublasSgemmStridedBatched
        )
        self._do(
            function(
                self._handle, int(product.b.transposed), int(product.a.transposed),
                product.n, product.m, product.k, ctypes.byref(one),
                b, product.b.leading, ctypes.c_longlong(product.b.step),
                a, product.a.leading, ctypes.c_longlong(product.a.step), ctypes.byref(zero),
                y, product.n, ctypes.c_longlong(product.y.step), product.count,
            )
        )  # fmt: skip


def load(stream: int, workspace: tuple[int, int]) -> Cublas | None:
    """The library, or None where it is not installed."""
    pathfinder = need("cuda.pathfinder", "the backend 'cuda'")
    try:
        found = pathfinder.load_nvidia_dynamic_lib("cublas")
    except RuntimeError:  # of the pathfinder: not found
        return None
    return Cublas(ctypes.CDLL(found.abs_path), stream, workspace)
