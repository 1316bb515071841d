"""Every function of the standard against array_api_strict, a second implementation: values, shapes
and dtypes, for each dtype that the standard allows."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

strict = pytest.importorskip("array_api_strict")

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip
FLOATS = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 700.0]


@pytest.fixture(autouse=True)
def _quietly_on_the_reference() -> Iterator[None]:
    with warnings.catch_warnings(), rg.backend("reference"):
        warnings.simplefilter("ignore")  # of NumPy, of overflows that are meant
        strict.set_array_api_strict_flags(api_version="2025.12")
        yield
        strict.reset_array_api_strict_flags()


def data(dtype: str) -> Any:
    """Values of a dtype, those of the tables of special cases among them."""
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype.startswith(("int", "uint")):
        return np.array([0, 1, 2, 3, 5, 7, 100], dtype)
    if dtype.startswith("float"):
        return np.array(FLOATS, dtype)
    return np.array([0.5 + 2j, -1 - 1j, 3j, 1.25, -2.0 + 0.5j], dtype)


def agree(name: str, ours: Any, theirs: Any) -> None:
    """That results are the same, but for rounding."""
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), name
        for a, b in zip(ours, theirs, strict=True):
            agree(name, a, b)
        return
    if not isinstance(theirs, strict._array_object.Array):
        assert str(ours) == str(theirs).rpartition(".")[2], name
        return
    assert isinstance(ours, rg.Tensor), name
    assert str(ours.dtype) == str(np.asarray(theirs).dtype), f"{name}: {ours.dtype}"
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.shape == b.shape, name
    single = a.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        a, b, rtol=3e-6 if single else 1e-12, atol=1e-6 if single else 1e-14, err_msg=name
    )


ELEMENTWISE = [
    name
    for name in strict.__all__
    if getattr(strict, name).__class__.__name__ == "function"
    and getattr(strict, name).__module__.endswith("elementwise_functions")
    and name not in ("clip", "nextafter")
]


def operands(f: Callable[..., Any]) -> int:
    kinds = inspect.signature(f).parameters.values()
    return sum(p.kind is p.POSITIONAL_ONLY for p in kinds)


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name: str) -> None:
    theirs, ours = getattr(strict, name), getattr(rg, name)
    tried = 0
    for dtype in DTYPES:
        values = data(dtype)
        if dtype.startswith("complex") and name in ("pow", "square", "sign", "log1p", "expm1"):
            values = values[:4]
        grid = [values] if operands(theirs) == 1 else [values[:, None], values[None, :]]
        if "shift" in name:
            grid = [values[:, None], np.array([[0, 1, 3]], dtype if "int" in dtype else "int8")]
        if "int" in dtype and name in ("floor_divide", "remainder", "pow"):
            grid = [values[:, None] % 4, np.array([[1, 2, 3]], dtype)]
        try:
            wanted = theirs(*map(strict.asarray, grid))
        except TypeError:
            continue  # of a kind that the standard leaves out
        agree(f"{name} of {dtype}", ours(*map(rg.asarray, grid)), wanted)
        tried += 1
    assert tried > 0


M = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0], [1.0, -2.0, 5.0]])
V, W = np.array([3.0, -1.0, 2.0, 2.0]), np.array([1, 3, 3, 0, 2])
CALLS: dict[str, Callable[..., Any]] = {
    "all": lambda xp, m, v, w: xp.all(m > 0, axis=1, keepdims=True),
    "any": lambda xp, m, v, w: xp.any(m < 0, axis=0),
    "arange": lambda xp, m, v, w: [xp.arange(5), xp.arange(1, 10, 3), xp.arange(5, 0, -2)],
    "argmax": lambda xp, m, v, w: [xp.argmax(m), xp.argmax(m, axis=1, keepdims=True)],
    "argmin": lambda xp, m, v, w: [xp.argmin(m), xp.argmin(v, axis=-1)],
    "argsort": lambda xp, m, v, w: [xp.argsort(v), xp.argsort(v, descending=True)],
    "asarray": lambda xp, m, v, w: [xp.asarray(w), xp.asarray([[1, 2]]), xp.asarray(True)],
    "astype": lambda xp, m, v, w: [xp.astype(v, xp.int8), xp.astype(w, xp.complex64)],
    "broadcast_arrays": lambda xp, m, v, w: xp.broadcast_arrays(m, xp.stack([m, m])[:, :1, :]),
    "broadcast_shapes": lambda xp, m, v, w: xp.broadcast_shapes((1, 3), (2, 1), ()),
    "broadcast_to": lambda xp, m, v, w: xp.broadcast_to(w, (2, 5)),
    "can_cast": lambda xp, m, v, w: [xp.can_cast(xp.int8, xp.int16), xp.can_cast(v, xp.float32)],
    "clip": lambda xp, m, v, w: [xp.clip(v, 0.0, 2.0), xp.clip(w, max=2), xp.clip(m, min=v[:3])],
    "concat": lambda xp, m, v, w: [xp.concat([m, m], axis=1), xp.concat([m, v], axis=None)],
    "count_nonzero": lambda xp, m, v, w: [xp.count_nonzero(w), xp.count_nonzero(m, axis=0)],
    "cumulative_prod": lambda xp, m, v, w: xp.cumulative_prod(v, include_initial=True),
    "cumulative_sum": lambda xp, m, v, w: [xp.cumulative_sum(w), xp.cumulative_sum(m, axis=1)],
    "diff": lambda xp, m, v, w: [xp.diff(v), xp.diff(m, axis=0, n=2), xp.diff(v, prepend=v[:1])],
    "empty": lambda xp, m, v, w: xp.empty((2, 0), dtype=xp.int8),
    "empty_like": lambda xp, m, v, w: xp.empty_like(m[:0, :]),
    "expand_dims": lambda xp, m, v, w: [xp.expand_dims(m, axis=-1), xp.expand_dims(v, axis=0)],
    "eye": lambda xp, m, v, w: [xp.eye(3, 2, k=-1, dtype=xp.int8), xp.eye(2, dtype=xp.float64)],
    "finfo": lambda xp, m, v, w: [xp.finfo(xp.float32).bits, xp.finfo(m).eps == 2.0**-52],
    "flip": lambda xp, m, v, w: [xp.flip(m), xp.flip(m, axis=1), xp.flip(m, axis=(0, -1))],
    "from_dlpack": lambda xp, m, v, w: xp.from_dlpack(w),
    "full": lambda xp, m, v, w: [xp.full((2, 3), 7), xp.full(2, 1.5, dtype=xp.float64)],
    "full_like": lambda xp, m, v, w: xp.full_like(w, 3),
    "iinfo": lambda xp, m, v, w: [xp.iinfo(xp.uint16).max, xp.iinfo(xp.int8).min],
    "isdtype": lambda xp, m, v, w: [xp.isdtype(xp.int8, "integral"), xp.isdtype(m.dtype, "bool")],
    "isin": lambda xp, m, v, w: [xp.isin(w, w[:2]), xp.isin(w[:2], w)],
    "linspace": lambda xp, m, v, w: xp.linspace(0, 3, 5, dtype=xp.float64, endpoint=False),
    "matmul": lambda xp, m, v, w: [m @ m, xp.matmul(m, v[:3]), xp.matmul(v[:3], m)],
    "matrix_transpose": lambda xp, m, v, w: xp.matrix_transpose(xp.stack([m[:2, :], m[1:, :]])),
    "max": lambda xp, m, v, w: [xp.max(m), xp.max(w, keepdims=True), xp.max(m, axis=(0, 1))],
    "mean": lambda xp, m, v, w: [xp.mean(m), xp.mean(m, axis=1, keepdims=True)],
    "meshgrid": lambda xp, m, v, w: [*xp.meshgrid(v, v[:3]), *xp.meshgrid(w, w[:2], indexing="ij")],
    "min": lambda xp, m, v, w: [xp.min(m), xp.min(w, axis=0)],
    "moveaxis": lambda xp, m, v, w: xp.moveaxis(
        xp.reshape(xp.arange(24), (2, 3, 4)), (0, 1), (2, 0)
    ),
    "nextafter": lambda xp, m, v, w: xp.nextafter(v, xp.flip(v)),
    "nonzero": lambda xp, m, v, w: [*xp.nonzero(w), *xp.nonzero(m > 0)],
    "ones": lambda xp, m, v, w: xp.ones((2, 1), dtype=xp.int16),
    "ones_like": lambda xp, m, v, w: xp.ones_like(w),
    "permute_dims": lambda xp, m, v, w: xp.permute_dims(
        xp.reshape(xp.arange(24), (2, 3, 4)), (2, 0, 1)
    ),
    "prod": lambda xp, m, v, w: [xp.prod(v), xp.prod(w), xp.prod(m, axis=0)],
    "repeat": lambda xp, m, v, w: [xp.repeat(v, 2), xp.repeat(w, w), xp.repeat(m, 2, axis=1)],
    "reshape": lambda xp, m, v, w: [xp.reshape(m, (-1,)), xp.reshape(v, (2, 2))],
    "result_type": lambda xp, m, v, w: [xp.result_type(xp.int8, xp.uint8), xp.result_type(m, 1)],
    "roll": lambda xp, m, v, w: [xp.roll(m, 1), xp.roll(m, (1, -1), axis=(0, 1))],
    "searchsorted": lambda xp, m, v, w: xp.searchsorted(xp.sort(v), v, side="right"),
    "sort": lambda xp, m, v, w: [xp.sort(w), xp.sort(m, axis=0, descending=True)],
    "squeeze": lambda xp, m, v, w: xp.squeeze(xp.reshape(w[:3], (1, 3, 1)), axis=(0, 2)),
    "stack": lambda xp, m, v, w: xp.stack([w, w], axis=-1),
    "std": lambda xp, m, v, w: [xp.std(m), xp.std(m, axis=0, correction=1)],
    "sum": lambda xp, m, v, w: [xp.sum(m, axis=1), xp.sum(w), xp.sum(w, dtype=xp.float64)],
    "take": lambda xp, m, v, w: [xp.take(v, w), xp.take(m, w[1:2] - 2, axis=1)],
    "take_along_axis": lambda xp, m, v, w: xp.take_along_axis(m, xp.argsort(m, axis=1), axis=1),
    "tensordot": lambda xp, m, v, w: [xp.tensordot(m, m), xp.tensordot(m, m, axes=((0,), (1,)))],
    "tile": lambda xp, m, v, w: xp.tile(m, (2, 1, 2)),
    "tril": lambda xp, m, v, w: xp.tril(m, k=1),
    "triu": lambda xp, m, v, w: xp.triu(m, k=-1),
    "unique_all": lambda xp, m, v, w: tuple(xp.unique_all(w)),
    "unique_counts": lambda xp, m, v, w: tuple(xp.unique_counts(v)),
    "unique_inverse": lambda xp, m, v, w: tuple(xp.unique_inverse(w)),
    "unique_values": lambda xp, m, v, w: xp.unique_values(v),
    "unstack": lambda xp, m, v, w: xp.unstack(m, axis=1),
    "var": lambda xp, m, v, w: [xp.var(v), xp.var(m, axis=1, correction=1, keepdims=True)],
    "vecdot": lambda xp, m, v, w: [xp.vecdot(m, m), xp.vecdot(m * 1j, m * 1j, axis=-2)],
    "where": lambda xp, m, v, w: [xp.where(m > 0, m, xp.zeros_like(m)), xp.where(w > 1, w, 0)],
    "zeros": lambda xp, m, v, w: xp.zeros((2, 2), dtype=xp.complex64),
    "zeros_like": lambda xp, m, v, w: xp.zeros_like(m, dtype=xp.int32),
    "linalg.cholesky": lambda xp, m, v, w: xp.linalg.cholesky(m @ m.T, upper=True),
    "linalg.cross": lambda xp, m, v, w: xp.linalg.cross(m, xp.flip(m)),
    "linalg.det": lambda xp, m, v, w: xp.linalg.det(m),
    "linalg.diagonal": lambda xp, m, v, w: xp.linalg.diagonal(m, offset=1),
    "linalg.eigh": lambda xp, m, v, w: xp.linalg.eigh(m + m.T)[0],
    "linalg.eigvalsh": lambda xp, m, v, w: xp.linalg.eigvalsh(m + m.T),
    "linalg.inv": lambda xp, m, v, w: xp.linalg.inv(m),
    "linalg.matmul": lambda xp, m, v, w: xp.linalg.matmul(m, m),
    "linalg.matrix_norm": lambda xp, m, v, w: [
        xp.linalg.matrix_norm(m, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, float("inf"))
    ],
    "linalg.matrix_power": lambda xp, m, v, w: xp.linalg.matrix_power(m, -2),
    "linalg.matrix_rank": lambda xp, m, v, w: xp.linalg.matrix_rank(m[:2, :]),
    "linalg.matrix_transpose": lambda xp, m, v, w: xp.linalg.matrix_transpose(m),
    "linalg.outer": lambda xp, m, v, w: xp.linalg.outer(v, v),
    "linalg.pinv": lambda xp, m, v, w: xp.linalg.pinv(m[:, :2]),
    "linalg.qr": lambda xp, m, v, w: xp.matmul(*xp.linalg.qr(m)),
    "linalg.slogdet": lambda xp, m, v, w: tuple(xp.linalg.slogdet(m)),
    "linalg.solve": lambda xp, m, v, w: [xp.linalg.solve(m, v[:3]), xp.linalg.solve(m, m)],
    "linalg.svd": lambda xp, m, v, w: xp.linalg.svd(m, full_matrices=False)[1],
    "linalg.svdvals": lambda xp, m, v, w: xp.linalg.svdvals(m),
    "linalg.tensordot": lambda xp, m, v, w: xp.linalg.tensordot(m, m, axes=1),
    "linalg.trace": lambda xp, m, v, w: xp.linalg.trace(m, offset=-1),
    "linalg.vecdot": lambda xp, m, v, w: xp.linalg.vecdot(m, m),
    "linalg.vector_norm": lambda xp, m, v, w: [
        xp.linalg.vector_norm(v, ord=o) for o in (0, 1, 2, 2.5, -1, float("inf"), -float("inf"))
    ],
    "linalg.eig": lambda xp, m, v, w: xp.linalg.eig(m + m.T)[0].dtype == xp.complex128,
    "linalg.eigvals": lambda xp, m, v, w: xp.sort(xp.real(xp.linalg.eigvals(m + m.T))),
    "fft.fft": lambda xp, m, v, w: xp.fft.fft(v + 0j, n=6, norm="ortho"),
    "fft.fftfreq": lambda xp, m, v, w: xp.fft.fftfreq(5, d=0.5, dtype=xp.float64),
    "fft.fftn": lambda xp, m, v, w: xp.fft.fftn(m + 0j, axes=(0, 1)),
    "fft.fftshift": lambda xp, m, v, w: xp.fft.fftshift(v),
    "fft.hfft": lambda xp, m, v, w: xp.fft.hfft(v + 1j),
    "fft.ifft": lambda xp, m, v, w: xp.fft.ifft(v + 1j),
    "fft.ifftn": lambda xp, m, v, w: xp.fft.ifftn(m + 1j, norm="forward"),
    "fft.ifftshift": lambda xp, m, v, w: xp.fft.ifftshift(m, axes=1),
    "fft.ihfft": lambda xp, m, v, w: xp.fft.ihfft(v),
    "fft.irfft": lambda xp, m, v, w: xp.fft.irfft(v + 1j),
    "fft.irfftn": lambda xp, m, v, w: xp.fft.irfftn(m + 0j, axes=(1,)),
    "fft.rfft": lambda xp, m, v, w: xp.fft.rfft(m, axis=0),
    "fft.rfftfreq": lambda xp, m, v, w: xp.fft.rfftfreq(5, dtype=xp.float64),
    "fft.rfftn": lambda xp, m, v, w: xp.fft.rfftn(m),
}


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", CALLS)
def test_other_functions(name: str) -> None:
    f = CALLS[name]
    agree(
        name,
        f(rg, *map(rg.asarray, (M, V, W))),
        f(strict, *map(strict.asarray, (M, V, W))),
    )


def test_no_function_of_the_standard_is_left_out() -> None:
    own = {"ArrayAPIStrictFlags", "Device"}
    names = {n for n in strict.__all__ if callable(getattr(strict, n)) and "strict_flags" not in n}
    names -= own | set(DTYPES) | {n for n in names if isinstance(getattr(strict, n), type)}
    names -= {"__array_namespace_info__"} | {n for n in names if n[0].isupper()}
    for space in ("linalg", "fft"):
        names |= {f"{space}.{n}" for n in getattr(strict, space).__all__}
    names -= {n for n in names if isinstance(getattr(strict, n, None), strict._dtypes.DType)}
    assert names - set(ELEMENTWISE) - set(CALLS) == set()
