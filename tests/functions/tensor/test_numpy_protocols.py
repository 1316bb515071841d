"""NumPy's functions called with tensors: NumPy's results, as tensors with a history."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.tensor.numpy_protocols import CONVERSIONS, RENAMED, SAME, WRITTEN
from tests.functions.tensor.numpy_calls import CALLS

# At values where the function jumps or has a kink (equal elements, a rounded one), where the result
# is rounded to float32, or where a symmetric matrix does not stay one.
UNSTEADY = {
    "astype", "fix", "histogram", "intersect1d", "linalg.cholesky", "linalg.eig", "linalg.eigh",
    "linalg.eigvals", "linalg.eigvalsh", "percentile", "quantile", "roots", "sort_complex",
    "trim_zeros", "unique", "unique_counts", "unique_values",
}  # fmt: skip


def numpys(name: str) -> Any:
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parts(x: Any) -> list[Any]:
    return [p for y in x for p in parts(y)] if isinstance(x, list | tuple) else [x]


def test_every_function_is_called():
    assert set(CALLS) == SAME | set(WRITTEN) | (set(RENAMED) - {"ddof"})


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sample(16)
def test_results(name):
    f = numpys(name)
    for call in CALLS[name]:
        expected = parts(call(f, np.asarray))
        for make in (rg.asarray, lambda a: rg.tensor(a, requires_grad=a.dtype.kind in "fc")):
            found = parts(call(f, make))
            assert len(found) == len(expected)
            for y, r in zip(found, expected, strict=True):
                kinds = rg.Tensor | int | np.ndarray if name in CONVERSIONS else rg.Tensor | int
                assert isinstance(y, kinds)
                np.testing.assert_allclose(np.asarray(y), r, 1e-9, 1e-12)


def leaves_of(call: Any, f: Any) -> tuple[Any, list[Any]]:
    """What a call gives with tensors, and the floating ones among these."""
    leaves: list[Any] = []

    def make(a: Any) -> Any:
        y = rg.tensor(a, requires_grad=np.asarray(a).dtype.kind == "f")
        leaves.append(y)
        return y

    return call(f, make), leaves


def moved(call: Any, f: Any, k: int, step: Any) -> list[Any]:
    """What it gives with arrays, of which the k-th has moved."""
    count = iter(range(99))
    return parts(call(f, lambda a: a + step if next(count) == k else a))


def numbers(values: list[Any], real: Any, imag: Any) -> list[Any]:
    """The floating ones, complex ones as their parts."""
    found = []
    for v in values:
        kind = str(getattr(v, "dtype", "int"))
        found += [v] if kind.startswith("float") else []
        found += [real(v), imag(v)] if kind.startswith("complex") else []
    return found


@pytest.mark.parametrize("name", sorted(set(CALLS) - UNSTEADY))
@pytest.mark.sample(10)
def test_gradients(name):
    """Against differences of what NumPy gives."""
    f, rng = numpys(name), np.random.default_rng(3)
    for call in CALLS[name]:
        result, leaves = leaves_of(call, f)
        ys = numbers(parts(result), rg.real, rg.imag)
        if not any(y.requires_grad for y in ys):
            continue
        weights = [rng.normal(size=y.shape) for y in ys]
        total: Any = sum((y * w).sum() for y, w in zip(ys, weights, strict=True))
        total.backward()
        for k, leaf in enumerate(leaves):
            if not leaf.requires_grad:
                continue
            way = rng.normal(size=leaf.shape)
            ends = (numbers(moved(call, f, k, h * way), np.real, np.imag) for h in (1e-6, -1e-6))
            slope = sum(((a - b) * w).sum() / 2e-6 for a, b, w in zip(*ends, weights, strict=True))
            found = 0.0 if leaf.grad is None else np.sum(leaf.grad.numpy() * way)
            np.testing.assert_allclose(found, slope, 1e-6, 1e-7)


def test_gradients_are_kept():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y: Any = np.sum(np.concatenate([x, np.ones((1, 2))]) ** 2, axis=0)
    length: Any = np.linalg.norm(y)
    length.backward()
    slope = 2 * x.numpy() * y.numpy() / np.linalg.norm(y.numpy())
    np.testing.assert_allclose(x.grad.numpy(), slope)
    traced: Any = rg.jit(lambda x: np.mean(np.where(x > 1, x, 0), axis=np.ndim(x) - 1))
    np.testing.assert_array_equal(traced(x.detach()).numpy(), [1.0, 3.5])


def test_what_has_no_counterpart():
    """Arrays, where that loses no gradient."""
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    assert np.array_equal(x, [1, 2])
    assert np.allclose([x, x], 1.5, atol=1)
    assert np.array2string(x) == "[1. 2.]"
    lists: Any = np.savez_compressed
    with pytest.raises(rg.GradientError, match=r"np.savez_compressed has no counterpart"):
        lists(io.BytesIO(), x)
    lists(io.BytesIO(), x.detach())
    with pytest.raises(rg.GradientError, match=r"np.copyto has no counterpart"):
        np.full_like(np.ones(2), x)
    for call in (lambda: np.put_along_axis(x, x, 0, 0), lambda: np.fill_diagonal(x, 1.0)):
        with pytest.raises(rg.ArgumentError, match=r"writes to its argument.*; write x = "):
            call()
    with pytest.raises(rg.DTypeError, match=r"np.std of a Tensor takes no dtype; use rg.std"):
        np.std(x, dtype=np.float32)
    with pytest.raises(rg.DTypeError, match=r"np.sum of a Tensor takes no out"):
        np.sum(x, out=np.zeros(()))

    class Other:
        def __array_function__(self, *given: Any) -> str:
            return "other"

    given: Any = [x, Other()]
    assert np.concatenate(given) == "other"


def test_universal_functions_along_an_axis():
    """`reduce` and `accumulate` of what has no function: by NumPy, or slice by slice where there is
    a history."""
    for name in ("bitwise_xor", "gcd", "left_shift", "logical_xor", "subtract"):
        f, x = getattr(np, name), np.array([[3, 5, 6], [1, 2, 1]])
        found: Any = f.reduce(rg.asarray(x), axis=1)
        np.testing.assert_array_equal(found.numpy(), f.reduce(x, axis=1))
        found = f.accumulate(rg.asarray(x), axis=1)
        np.testing.assert_array_equal(found.numpy(), f.accumulate(x, axis=1))
    x = np.array([[3.0, 4.0], [6.0, 8.0]])
    leaf: Any = rg.tensor(x, requires_grad=True)
    total: Any = np.hypot.reduce(leaf, axis=1, keepdims=True)
    assert total.tolist() == np.hypot.reduce(x, axis=1, keepdims=True).tolist()
    total.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), x / np.hypot.reduce(x, axis=1, keepdims=True))
    running: Any = np.divide.accumulate(leaf)
    np.testing.assert_allclose(running.detach().numpy(), np.divide.accumulate(x))
    assert np.add.reduce(rg.asarray(2.0)).item() == 2.0


def test_selected_elements_and_none():
    """A deviation of fewer elements than it takes off, and dtypes beside a mask."""
    x, mask = np.array([1.0, 2.0, 4.0]), np.array([True, False, False])
    t = rg.asarray(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = np.std(x, ddof=1, where=mask)
    assert np.isnan(wanted)
    assert np.isnan(np.std(t, ddof=1, where=mask))
    assert np.mean(rg.asarray([1, 2]), where=[True, False], dtype=np.float32).item() == 1
    assert np.min(rg.asarray([True]), where=[False], initial=True).dtype == rg.bool
    with pytest.raises(rg.ShapeError, match=r"np\.matvec takes a matrix"):
        np.matvec(t, t)
    exact: Any = [rg.asarray([2**53 + 1]), rg.ones(1, dtype=rg.float32)]
    joined: Any = np.concatenate(exact, dtype=np.float64, casting="unsafe")
    assert joined.tolist() == [2.0**53, 1.0]  # not rounded to float32 on the way
    with pytest.raises(rg.DTypeError, match="is not same_kind"):
        np.concatenate(exact, dtype=np.int32)
