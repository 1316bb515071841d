"""Reductions with PyTorch's names and keywords, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


R = np.round(A * 2)


def mode_of(row: Any) -> float:
    values, counts = np.unique(row, return_counts=True)
    return float(values[counts.argmax()])


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "amax": (lambda: rg.amax(C, dim=(0, 2)), C.max((0, 2))),
    "kthvalue": (lambda: rg.kthvalue(A, 2, dim=1).values, np.sort(A)[:, 1]),
    "mode": (lambda: rg.mode(rg.tensor(R), dim=1).values, [mode_of(row) for row in R]),
    "softmax": (lambda: rg.tensor(A).softmax(dim=0), np.exp(A) / np.exp(A).sum(0)),
    "cumsum": (lambda: rg.tensor(A).cumsum(dim=1), A.cumsum(1)),
    "argmax": (lambda: rg.tensor(A).argmax(dim=1, keepdim=True), A.argmax(1, keepdims=True)),
    "any": (lambda: rg.any(A > 1, dim=0), (A > 1).any(0)),
    "quantile": (lambda: rg.quantile(A, 0.3, dim=1, interpolation="lower"),
                 np.quantile(A, 0.3, axis=1, method="lower")),
    "fft": (lambda: rg.fft.fft(A, dim=0), np.fft.fft(A, axis=0)),
    "rfft2": (lambda: rg.fft.rfft2(C, dim=(0, 1), norm=None), np.fft.rfft2(C, axes=(0, 1))),
    "sum of all": (lambda: rg.sum(A, dim=()), A.sum()),
    "sum, keepdim by position": (lambda: rg.tensor(A).sum(1, True), A.sum(1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = CASES[name][0](), np.asarray(CASES[name][1])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_dim_gives_what_pytorch_gives_and_axis_what_numpy_does() -> None:
    x = rg.tensor([[1.0, 3.0, 3.0], [4.0, 2.0, 0.0]])
    for f, values, indices in (
        (rg.max, [3.0, 4.0], [1, 0]),
        (rg.min, [1.0, 0.0], [0, 2]),
    ):
        found = f(x, dim=1)
        assert (found.values.tolist(), found.indices.tolist()) == (values, indices)
        assert f(x, axis=1).tolist() == values
    assert rg.sort(x, dim=1).indices.tolist() == [[0, 1, 2], [2, 1, 0]]
    assert rg.sort(x, axis=1).tolist() == [[1, 3, 3], [0, 2, 4]]
    assert rg.cummax(x, dim=1).indices.tolist() == [[0, 1, 2], [0, 0, 0]]
    even = rg.tensor([4.0, 1.0, 3.0, 2.0])
    assert even.median(dim=0).values.item() == 2.0
    assert even.median(dim=0).indices.item() == 3
    assert even.median().item() == 2.5
    assert math.isnan(rg.tensor([1.0, math.nan, 0.0]).median(dim=0).values.item())


def test_the_gradient_of_a_selected_element_goes_to_it_alone() -> None:
    x = rg.tensor([3.0, 3.0, 1.0])
    assert rg.grad(lambda x: x.max(dim=0).values)(x).tolist() == [1.0, 0.0, 0.0]
    assert rg.grad(lambda x: x.max(axis=0))(x).tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("name", ["std", "var"])
def test_the_keyword_decides_on_the_correction(name: str) -> None:
    x, f = rg.tensor(A), getattr(np, name)
    method = getattr(x, name)
    for found in (method(1), method(axis=1), method(axis=1, keepdims=True)[:, 0]):
        np.testing.assert_allclose(found.numpy(), f(A, axis=1), rtol=1e-12)
    for found in (
        method(dim=1), method(1, keepdim=True)[:, 0], method(1, unbiased=True), method(1, True),
        method(axis=1, correction=1), method(dim=1, correction=None),
    ):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), f(A, axis=1, ddof=1), rtol=1e-12)
    for found in (method(dim=1, correction=0), method(1, unbiased=False), method(1, False)):
        np.testing.assert_allclose(found.numpy(), f(A, axis=1), rtol=1e-12)
    np.testing.assert_allclose(method(dim=None).numpy(), f(A, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(method(dim=()).numpy(), f(A, ddof=1), rtol=1e-12)
    with pytest.raises(rg.OptionError, match="correction"):
        method(True)
    with pytest.raises(rg.OptionError, match="give one"):
        method(dim=1, unbiased=True, correction=0)


@pytest.mark.torch
def test_reductions_by_position() -> None:
    """The axis, then whether it is kept."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = np.array([[0.0, 2.0, np.nan], [3.0, 0.0, 1.0]], np.float32)
    ours: Any = rg.asarray(x)
    theirs = torch.tensor(x)
    for name in ("all", "any", "nanmean", "nansum", "sum", "mean", "prod"):
        for space, other in ((ours, theirs), (rg, torch)):
            args = [] if space is ours else [ours]
            given = [] if other is theirs else [theirs]
            found = getattr(space, name)(*args, 1, True)
            wanted = getattr(other, name)(*given, 1, True)
            np.testing.assert_allclose(np.asarray(found), wanted.numpy(), 1e-6, err_msg=name)
    assert ours.count_nonzero(0).tolist() == theirs.count_nonzero(0).tolist()
    empty = rg.cumulative_trapezoid(rg.zeros((2, 0)))
    assert empty.shape == tuple(torch.cumulative_trapezoid(torch.zeros(2, 0)).shape)


@pytest.mark.torch
def test_integers_clipped_by_floats_and_multiplied() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    x = np.array([[1, 5], [2, -3]])
    for low, high in ((0.5, 2.5), (None, 1.5), (-1, 2)):
        found, wanted = rg.asarray(x).clamp(low, high), torch.tensor(x).clamp(low, high)
        assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
        assert found.tolist() == wanted.tolist()
    for n in (0, 1, 5):
        found, wanted = rg.asarray(x).matrix_power(n), torch.tensor(x).matrix_power(n)
        assert found.dtype == rg.int64
        assert found.tolist() == wanted.tolist()
    with pytest.raises(rg.DTypeError, match="no powers of -2"):
        rg.asarray(x) ** -2
    assert (rg.asarray(x) ** 0).tolist() == [[1, 1], [1, 1]]
