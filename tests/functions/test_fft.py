"""Fourier transforms against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


@pytest.fixture(params=["reference", "llvm"], autouse=True)
def backend(request):
    with rg.backend(request.param):
        yield


def numbers(*shape: int, seed: int = 0, dtype: str = "complex128") -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


REAL = np.random.default_rng(3).normal(size=(4, 6))
PLANE = numbers(4, 6, seed=4)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    ("name", "array", "options"),
    [
        ("fft", PLANE, {}), ("fft", PLANE, {"n": 4}), ("fft", PLANE, {"n": 9, "axis": 0}),
        ("ifft", PLANE, {"n": 5}), ("fft", REAL, {}), ("rfft", REAL, {"n": 5}),
        ("rfft", REAL, {"axis": 0}), ("irfft", PLANE, {}), ("irfft", PLANE, {"n": 7}),
        ("hfft", PLANE, {}), ("hfft", PLANE, {"n": 9}), ("ihfft", REAL, {}),
        ("ihfft", REAL, {"n": 5}), ("fftn", PLANE, {}), ("fftn", PLANE, {"axes": (1,)}),
        ("fftn", PLANE, {"s": (3, 8), "axes": (0, 1)}),
        ("ifftn", PLANE, {}), ("rfftn", REAL, {}), ("rfftn", REAL, {"s": (3, 5), "axes": (0, 1)}),
        ("fft2", PLANE, {}), ("ifft2", PLANE, {"s": (3, 8)}), ("rfft2", REAL, {}),
        ("irfft2", PLANE, {"axes": (1, 0)}),
        ("irfftn", PLANE, {}), ("irfftn", PLANE, {"s": (4, 9), "axes": (0, 1)}),
    ],
)  # fmt: skip
@pytest.mark.sample(20)
def test_fourier_transforms_are_those_of_numpy(name, array, options, norm) -> None:
    found = getattr(rg.fft, name)(rg.tensor(array), norm=norm, **options).numpy()
    expected = getattr(np.fft, name)(array, norm=norm, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 7):
        np.testing.assert_allclose(
            rg.fft.fftfreq(n, d=0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6
        )
        np.testing.assert_allclose(rg.fft.rfftfreq(n).numpy(), np.fft.rfftfreq(n), rtol=1e-6)
    for axes in (None, 0, (0, 1)):
        np.testing.assert_array_equal(
            rg.fft.fftshift(REAL, axes=axes).numpy(), np.fft.fftshift(REAL, axes)
        )
        np.testing.assert_array_equal(
            rg.fft.ifftshift(REAL, axes=axes).numpy(), np.fft.ifftshift(REAL, axes)
        )
    assert rg.fft.fftfreq(4).dtype == rg.float32
