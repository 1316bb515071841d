"""NumPy's functions called with tensors: NumPy's results, as tensors with a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.functions.tensor.numpy_protocols import RENAMED, SAME, WRITTEN

A = np.random.default_rng(0).normal(size=(3, 3)) + 3 * np.eye(3)
S = A + A.T
V = np.array([0.5, -1.5, 2.0, 0.5])
K = np.array([2, 0, 2, 1])
Z = A[0] + 1j * A[1]
B = np.array([[True, False, True], [False, False, True]])
Call = Callable[..., Any]

# How each is called; `x` makes a tensor of an array, or leaves it.
CALLS: dict[str, list[Call]] = {
    "all": [lambda f, x: f(x(B)), lambda f, x: f(x(B), 1, keepdims=True)],
    "any": [lambda f, x: f(x(B)), lambda f, x: f(x(B), axis=0)],
    "argmax": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1)],
    "argmin": [lambda f, x: f(x(A), axis=0, keepdims=True)],
    "argsort": [lambda f, x: f(x(A), 0), lambda f, x: f(x(A), stable=True)],
    "argwhere": [lambda f, x: f(x(B))],
    "astype": [lambda f, x: f(x(V), np.float32)],
    "bincount": [lambda f, x: f(x(K)), lambda f, x: f(x(K), x(V), 5)],
    "broadcast_arrays": [lambda f, x: f(x(A), x(A[0]))],
    "broadcast_to": [lambda f, x: f(x(V), (2, 4))],
    "clip": [lambda f, x: f(x(V), 0, 1), lambda f, x: f(x(V), min=0),
             lambda f, x: f(x(V), None, 1)],
    "concat": [lambda f, x: f([x(A), A], 1), lambda f, x: f((x(A), x(S)), axis=None)],
    "count_nonzero": [lambda f, x: f(x(B), 1)],
    "cumprod": [lambda f, x: f(x(A), 1), lambda f, x: f(x(V))],
    "cumsum": [lambda f, x: f(x(A), axis=0), lambda f, x: f(x(K), dtype=np.float64)],
    "cumulative_prod": [lambda f, x: f(x(V), include_initial=True)],
    "cumulative_sum": [lambda f, x: f(x(A), axis=1)],
    "diff": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 2, 0), lambda f, x: f(x(V), prepend=0.0)],
    "digitize": [lambda f, x: f(x(V), np.sort(V)), lambda f, x: f(x(V), np.sort(V), True)],
    "einsum": [lambda f, x: f("ij,jk->i", x(A), x(S))],
    "expand_dims": [lambda f, x: f(x(V), 1), lambda f, x: f(x(V), axis=(0, 2))],
    "flip": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1)],
    "full_like": [lambda f, x: f(x(V), 3)],
    "histogram": [lambda f, x: f(x(V), 3), lambda f, x: f(x(V), 2, (-2, 3), density=True)],
    "imag": [lambda f, x: f(x(Z))],
    "isin": [lambda f, x: f(x(K), x(K[:2])), lambda f, x: f(x(K), [1], invert=True)],
    "kron": [lambda f, x: f(x(A), x(S))],
    "linspace": [lambda f, x: f(x(V[0]), 3, 4), lambda f, x: f(0, x(V[2]), num=5, endpoint=False)],
    "matrix_transpose": [lambda f, x: f(x(A))],
    "max": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 0, keepdims=True)],
    "mean": [lambda f, x: f(x(A)), lambda f, x: f(x(A), (0, 1))],
    "median": [lambda f, x: f(x(A)), lambda f, x: f(x(A), axis=1)],
    "meshgrid": [lambda f, x: f(x(V), x(K)), lambda f, x: f(x(V), x(K), indexing="ij")],
    "min": [lambda f, x: f(x(A), axis=1)],
    "moveaxis": [lambda f, x: f(x(A), 0, 1)],
    "nonzero": [lambda f, x: f(x(B))],
    "ones_like": [lambda f, x: f(x(V)), lambda f, x: f(x(V), np.float32)],
    "outer": [lambda f, x: f(x(V), x(K))],
    "percentile": [lambda f, x: f(x(V), 30), lambda f, x: f(x(A), [5, 50], axis=0)],
    "permute_dims": [lambda f, x: f(x(A), (1, 0))],
    "prod": [lambda f, x: f(x(A)), lambda f, x: f(x(K), dtype=np.float64)],
    "quantile": [lambda f, x: f(x(V), 0.3), lambda f, x: f(x(A), 0.5, 1, keepdims=True)],
    "real": [lambda f, x: f(x(Z))],
    "repeat": [lambda f, x: f(x(A), 2), lambda f, x: f(x(A), 2, 1)],
    "reshape": [lambda f, x: f(x(A), (1, 9)), lambda f, x: f(x(A), -1)],
    "roll": [lambda f, x: f(x(A), 1), lambda f, x: f(x(A), 2, axis=1)],
    "searchsorted": [lambda f, x: f(x(np.sort(V)), x(V)), lambda f, x: f(x(K[1:3]), 1, "right")],
    "sort": [lambda f, x: f(x(A)), lambda f, x: f(x(A), axis=0)],
    "split": [lambda f, x: f(x(V), 2), lambda f, x: f(x(A), [1], axis=1)],
    "squeeze": [lambda f, x: f(x(A[:1])), lambda f, x: f(x(A[:1]), 0)],
    "stack": [lambda f, x: f([x(A), A]), lambda f, x: f((x(A), x(S)), axis=2)],
    "std": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1, ddof=1),
            lambda f, x: f(x(A), correction=1)],
    "sum": [lambda f, x: f(x(A)), lambda f, x: f(x(A), (0,), keepdims=True),
            lambda f, x: f(x(B), 1)],
    "swapaxes": [lambda f, x: f(x(A), 0, 1)],
    "take": [lambda f, x: f(x(A), [1, 0]), lambda f, x: f(x(A), x(K), axis=1)],
    "take_along_axis": [lambda f, x: f(x(A), x(np.argsort(A, 1)), 1)],
    "tensordot": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(A), x(S), axes=1)],
    "tile": [lambda f, x: f(x(A), 2), lambda f, x: f(x(A), (2, 1))],
    "tril": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1)],
    "triu": [lambda f, x: f(x(A), k=-1)],
    "unique_all": [lambda f, x: f(x(K))],
    "unique_counts": [lambda f, x: f(x(V))],
    "unique_inverse": [lambda f, x: f(x(K))],
    "unique_values": [lambda f, x: f(x(V))],
    "unstack": [lambda f, x: f(x(A), axis=1)],
    "var": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 0, ddof=1, keepdims=True)],
    "where": [lambda f, x: f(x(A) > 0, x(A), 0.0), lambda f, x: f(A > 0, 1.0, x(A))],
    "zeros_like": [lambda f, x: f(x(V), dtype=np.float32)],
    "linalg.cholesky": [lambda f, x: f(x(A @ A.T)), lambda f, x: f(x(A @ A.T), upper=True)],
    "linalg.cond": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1)],
    "linalg.cross": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(A), x(S), axis=0)],
    "linalg.matmul": [lambda f, x: f(x(A), x(S))],
    "linalg.matrix_norm": [lambda f, x: f(x(A), ord=2)],
    "linalg.matrix_power": [lambda f, x: f(x(A), 3), lambda f, x: f(x(A), -1)],
    "linalg.multi_dot": [lambda f, x: f([x(A), x(S), A])],
    "linalg.norm": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1), lambda f, x: f(x(A), axis=1)],
    "linalg.outer": [lambda f, x: f(x(V), x(V))],
    "linalg.qr": [lambda f, x: f(x(A[:, :2]), "complete")],
    "linalg.solve": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(A), A[0])],
    "linalg.svd": [lambda f, x: f(x(A))[1], lambda f, x: f(x(A[:2]), full_matrices=False)[1]],
    "linalg.tensordot": [lambda f, x: f(x(A), x(S), axes=1)],
    "linalg.trace": [lambda f, x: f(x(A), offset=1)],
    "linalg.vecdot": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(A), x(S), axis=0)],
    "linalg.vector_norm": [lambda f, x: f(x(A)), lambda f, x: f(x(A), axis=1, ord=1)],
    **{
        f"linalg.{name}": [lambda f, x: f(x(S))]
        for name in ("det", "diagonal", "eigvalsh", "inv", "matrix_rank", "matrix_transpose",
                     "pinv", "slogdet", "svdvals")
    },
    **{f"linalg.{name}": [lambda f, x: f(x(S))[0]] for name in ("eig", "eigh")},
    "linalg.eigvals": [lambda f, x: f(x(A))],
    **{f"fft.{name}": [lambda f, x: f(x(V)), lambda f, x: f(x(A), 4, 0, norm="ortho")]
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": [lambda f, x: f(x(A)), lambda f, x: f(x(A), (2, 2), (0, 1))]
       for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{name}": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 1)]
       for name in ("fftshift", "ifftshift")},
    # written by hand
    "shape": [lambda f, x: f(x(A))],
    "ndim": [lambda f, x: f(x(A))],
    "size": [lambda f, x: f(x(A)), lambda f, x: f(x(A[:2]), 0)],
    "copy": [lambda f, x: f(x(A))],
    "ravel": [lambda f, x: f(x(A))],
    "fliplr": [lambda f, x: f(x(A))],
    "flipud": [lambda f, x: f(x(A))],
    "dot": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(V), V), lambda f, x: f(x(A), x(A[0])),
            lambda f, x: f(x(A), 2.0), lambda f, x: f(x(A[None]), x(S))],
    "inner": [lambda f, x: f(x(A), x(S)), lambda f, x: f(x(V), V), lambda f, x: f(2.0, x(V))],
    "transpose": [lambda f, x: f(x(A[None])), lambda f, x: f(x(A[None]), (1, 0, 2))],
    "round": [lambda f, x: f(x(A)), lambda f, x: f(x(A), 2)],
    "around": [lambda f, x: f(x(A), decimals=1)],
    "trace": [lambda f, x: f(x(A)), lambda f, x: f(x(np.stack([A, S], 2)), 1)],
    "diagonal": [lambda f, x: f(x(A), 1), lambda f, x: f(x(np.stack([A, S], 2)))],
    "atleast_1d": [lambda f, x: f(x(A)), lambda f, x: f(x(A[0, 0]), x(V))],
    "atleast_2d": [lambda f, x: f(x(V))],
    "vstack": [lambda f, x: f([x(V), V]), lambda f, x: f((x(A), x(A[0])))],
    "hstack": [lambda f, x: f([x(V), V]), lambda f, x: f((x(A), x(S)))],
    # under another name
    "amax": [lambda f, x: f(x(A), 1)],
    "amin": [lambda f, x: f(x(A))],
    "concatenate": [lambda f, x: f([x(A), A]), lambda f, x: f((x(A), S), axis=1)],
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
@pytest.mark.sample(60)
def test_results(name):
    f = numpys(name)
    for call in CALLS[name]:
        expected = parts(call(f, np.asarray))
        for make in (rg.asarray, lambda a: rg.tensor(a, requires_grad=a.dtype.kind in "fc")):
            found = parts(call(f, make))
            assert len(found) == len(expected)
            for y, r in zip(found, expected, strict=True):
                assert isinstance(y, rg.Tensor | int)
                np.testing.assert_allclose(np.asarray(y), r, 1e-9, 1e-12)


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
    assert isinstance(np.ptp(x.detach()), np.floating)
    with pytest.raises(rg.GradientError, match=r"np.ptp has no counterpart .*numpy\(\)"):
        np.ptp(x)
    with pytest.raises(rg.GradientError, match=r"np.copyto has no counterpart"):
        np.full_like(np.ones(2), x)
    with pytest.raises(rg.DTypeError, match=r"np.mean of a Tensor takes no dtype; use rg.mean"):
        np.mean(x, dtype=np.float32)
    with pytest.raises(rg.DTypeError, match=r"np.sum of a Tensor takes no out"):
        np.sum(x, out=np.zeros(()))

    class Other:
        def __array_function__(self, *given: Any) -> str:
            return "other"

    given: Any = [x, Other()]
    assert np.concatenate(given) == "other"
