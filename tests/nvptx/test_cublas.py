"""Products by cuBLAS: what it is called with, on a library of our own that does what its manual
says, in columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.nvptx.cublas import Cublas
from retrograd.nvptx.executable import DeviceProgram
from tests.nvptx.interpreted_device import InterpretedDevice


class Library:
    """cuBLAS, as far as it is used: matrices in columns, `lda` elements from column to column."""

    def __init__(self, device: InterpretedDevice) -> None:
        self.device, self.calls, self.modes = device, 0, [0]
        self.status = 0

    def cublasCreate_v2(self, handle: Any) -> int:
        return self.status

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        return 0

    def cublasSetMathMode(self, handle: Any, mode: int) -> int:
        self.modes.append(mode)
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, address: Any, size: Any) -> int:
        return 0 if size.value else 7

    def _product(
        self, dtype: type, _: Any, ta: int, tb: int, m: int, n: int, k: int, *rest: Any
    ) -> int:
        alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count = rest
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        assert lda >= max(k if ta else m, 1)
        assert ldb >= max(n if tb else k, 1)
        assert ldc >= max(m, 1)
        size = np.dtype(dtype).itemsize

        def matrix(start: Any, lead: int, step: Any, i: int, rows: int, columns: int) -> np.ndarray:
            at = start.value + i * step.value * size
            raw = self.device.memory.read(at, ((columns - 1) * lead + rows) * size)
            flat: np.ndarray = np.frombuffer(raw, dtype)
            shape, strides = (rows, columns), (size, lead * size)
            return np.lib.stride_tricks.as_strided(flat, shape, strides)

        for i in range(count):
            x = matrix(a, lda, sa, i, *((k, m) if ta else (m, k)))
            y = matrix(b, ldb, sb, i, *((n, k) if tb else (k, n)))
            z = (x.T if ta else x) @ (y.T if tb else y)
            for j in range(n):
                at = c.value + (i * sc.value + j * ldc) * size
                self.device.memory.write(at, np.ascontiguousarray(z[:, j]))
        self.calls += 1
        return 0

    def cublasSgemmStridedBatched(self, *arguments: Any) -> int:
        return self._product(np.float32, *arguments)

    def cublasDgemmStridedBatched(self, *arguments: Any) -> int:
        return self._product(np.float64, *arguments)


class DeviceWithLibrary(InterpretedDevice):
    def __init__(self) -> None:
        super().__init__()
        self.library = Library(self)
        self.cublas = Cublas(self.library, 1, (256, 1 << 20))

    @property
    def products(self) -> Cublas:
        return self.cublas


def numbers(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize(
    ("a", "b", "f", "calls"),
    [
        ((70, 100), (100, 130), lambda a, b: a @ b, 1),
        ((100, 70), (100, 130), lambda a, b: a.T @ b, 1),
        ((70, 100), (130, 100), lambda a, b: a @ b.T, 1),
        ((3, 33, 100), (3, 100, 130), lambda a, b: a @ b, 1),
        ((2, 3, 33, 100), (2, 3, 100, 130), lambda a, b: a @ b, 1),
        # heads of attention lie side by side in a row: a stack for each item
        (
            (2, 33, 3, 100),
            (2, 100, 3, 130),
            lambda a, b: rg.permute(a, (0, 2, 1, 3)) @ rg.permute(b, (0, 2, 1, 3)),
            2,
        ),
    ],
)
@pytest.mark.sample(2)
def test_products(
    a: tuple[int, ...], b: tuple[int, ...], f: Callable[..., object], calls: int
) -> None:
    x, y = numbers(*a), numbers(*b, seed=1)
    device = DeviceWithLibrary()
    program = DeviceProgram(rg.trace(f, x, y), device)
    expected = np.asarray(f(rg.tensor(x.astype(np.float64)), rg.tensor(y.astype(np.float64))))
    np.testing.assert_allclose(program([x, y])[0], expected, rtol=0, atol=4e-5)
    assert device.library.calls == calls
    assert device.library.modes[-1] == 2  # pedantic


@pytest.mark.slow
def test_float64() -> None:
    x, y = numbers(40, 100, dtype=np.float64), numbers(100, 90, dtype=np.float64, seed=1)
    device = DeviceWithLibrary()
    found = DeviceProgram(rg.trace(lambda a, b: a @ b, x, y), device)([x, y])[0]
    np.testing.assert_allclose(found, x @ y, rtol=1e-12)
    assert device.library.calls == 1


@pytest.mark.slow
def test_windows_are_no_matrices_of_the_library() -> None:
    image, kernel = numbers(2, 4, 12, 12), numbers(8, 4, 3, 3, seed=1)
    device = DeviceWithLibrary()
    f = rg.nn.functional.conv2d
    found = DeviceProgram(rg.trace(f, image, kernel), device)([image, kernel])[0]
    np.testing.assert_allclose(found, np.asarray(f(rg.tensor(image), rg.tensor(kernel))), atol=1e-4)
    assert device.library.calls == 0


def test_a_status_is_an_error() -> None:
    library = Library(InterpretedDevice())
    library.status = 3
    with pytest.raises(BackendError, match="cuBLAS gives the status 3"):
        Cublas(library, 1, (256, 1 << 20))
