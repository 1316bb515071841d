"""Operations beside those of NumPy, SciPy and PyTorch, on the same arrays.

A `Case` has a function without arguments for each library that knows the operation and is
installed. `cases()` makes them one by one, so that no more than the arrays of one are alive.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg

Run = Callable[[], Any]
SEED = 20


@dataclass
class Case:
    """An operation on some arrays, by the name of the library that does it."""

    name: str
    runs: dict[str, Run]
    exact: bool = False  # whether results are equal to the last bit
    checked: bool = True  # whether they are determined at all: signs of vectors are not


def installed(name: str) -> Any:
    """A library, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Maker:
    """Makes cases of functions and arrays, leaving out libraries that are absent."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(SEED)
        self.torch = installed("torch")
        self.scipy = installed("scipy")

    def normal(self, *shape: int, dtype: Any = np.float32) -> Any:
        return self.rng.standard_normal(shape).astype(dtype)

    def case(
        self,
        name: str,
        arrays: tuple[Any, ...],
        *,
        rg: Any,
        numpy: Any = None,
        scipy: Any = None,
        torch: Any = None,
        gradient: bool = False,
        **facts: bool,
    ) -> Case:
        """A case; every library gets its own kind of array. With a `gradient` the functions are
        followed by that of the sum of their squares by all floating arrays."""
        runs = {"retrograd": _ours(rg, arrays, gradient)}
        if numpy is not None:
            runs["numpy"] = lambda: numpy(*arrays)
        if scipy is not None and self.scipy is not None:
            runs["scipy"] = lambda: scipy(*arrays)
        if torch is not None and self.torch is not None:
            runs["torch"] = _torch(self.torch, torch, arrays, gradient)
        return Case(name, runs, **facts)


def _ours(f: Any, arrays: tuple[Any, ...], gradient: bool) -> Run:
    given = [rg.asarray(x) for x in arrays]
    places = tuple(i for i, x in enumerate(given) if x.dtype.is_float)
    if gradient:
        run = rg.jit(rg.grad(lambda *xs: rg.square(f(*xs)).sum(), argnums=places))
    else:
        run = rg.jit(f)
    return lambda: run(*given)


def _torch(library: Any, f: Any, arrays: tuple[Any, ...], gradient: bool) -> Run:
    given = [library.from_numpy(np.array(x)) for x in arrays]
    if not gradient:

        def plain() -> Any:
            with library.no_grad():
                return f(*given)

        return plain
    sources = [x.requires_grad_() for x in given if x.is_floating_point()]
    return lambda: library.autograd.grad(f(*given).square().sum(), sources)


def cases() -> Iterator[Case]:
    """All of them."""
    make = Maker()
    groups = (_sorting, _searching, _indexing, _running, _windows, _matrices, _others)
    for group in (*groups, _complex, _transforms, _moving):
        yield from group(make)


def _sorting(make: Maker) -> Iterator[Case]:
    t = make.torch
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for shape in ((10_000,), (1_000_000,), (4096, 256)):
            if np.dtype(dtype).kind == "f":
                x = make.normal(*shape, dtype=dtype)
            else:
                x = make.rng.integers(-(2**30), 2**30, shape).astype(dtype)
            name = f"{x.dtype} {shape_text(shape)}"
            yield make.case(
                f"sort {name}", (x,), rg=rg.sort, numpy=np.sort, exact=True,
                torch=lambda x: t.sort(x).values,
            )  # fmt: skip
            yield make.case(
                f"argsort {name}", (x,), rg=rg.argsort, torch=lambda x: t.argsort(x, stable=True),
                numpy=lambda x: np.argsort(x, kind="stable"), exact=True,
            )  # fmt: skip
            yield make.case(
                f"topk 10 {name}", (x,), rg=lambda x: rg.topk(x, 10).values, exact=True,
                torch=lambda x: t.topk(x, 10).values,
                numpy=lambda x: -np.sort(np.partition(-x, 10)[..., :10]),
            )  # fmt: skip


def _searching(make: Maker) -> Iterator[Case]:
    t, rng = make.torch, make.rng
    for dtype in (np.float32, np.float64):
        row, values = np.sort(make.normal(100_000, dtype=dtype)), make.normal(100_000, dtype=dtype)
        yield make.case(
            f"searchsorted {row.dtype} 100000 in 100000", (row, values), rg=rg.searchsorted,
            numpy=np.searchsorted, torch=lambda a, v: t.searchsorted(a, v), exact=True,
        )  # fmt: skip
    few = rng.integers(0, 1000, 1_000_000)
    yield make.case(
        "bincount 1000000 of 1000", (few,), rg=lambda x: rg.bincount(x, length=1000),
        numpy=lambda x: np.bincount(x, minlength=1000), exact=True,
        torch=lambda x: t.bincount(x, minlength=1000),
    )  # fmt: skip
    yield make.case(
        "unique int64 1000000 of 1000", (few,), rg=lambda x: rg.unique_values(x, size=1000),
        numpy=np.unique, torch=lambda x: t.unique(x), exact=True,
    )  # fmt: skip
    x = make.normal(1000, 1000)
    yield make.case(
        "median float32 1000x1000", (x,), rg=lambda x: rg.median(x, axis=1),
        numpy=lambda x: np.median(x, axis=1),
    )  # fmt: skip


def _indexing(make: Maker) -> Iterator[Case]:
    t, rng = make.torch, make.rng
    table, flat = make.normal(100_000, 64), make.normal(1_000_000)
    for order in ("random", "sorted"):

        def indices(n: int, count: int, order: str = order) -> Any:
            i = rng.integers(0, n, count)
            return np.sort(i) if order == "sorted" else i

        i, wide = indices(100_000, 50_000), indices(1_000_000, 1_000_000)
        yield make.case(
            f"take rows 50000 of 100000x64, {order}", (table, i), exact=True,
            rg=lambda x, i: rg.take(x, i, axis=0), numpy=lambda x, i: np.take(x, i, axis=0),
            torch=lambda x, i: t.index_select(x, 0, i),
        )  # fmt: skip
        yield make.case(
            f"take 1000000 of 1000000, {order}", (flat, wide), rg=lambda x, i: rg.take(x, i),
            numpy=np.take, torch=lambda x, i: t.take(x, i), exact=True,
        )  # fmt: skip
        rows = make.normal(50_000, 64)
        yield make.case(
            f"scatter_add rows 50000 to 100000x64, {order}", (table, i, rows),
            rg=lambda x, i, v: rg.scatter_add(x, i, v),
            torch=lambda x, i, v: t.index_add(x, 0, i, v),
        )  # fmt: skip
        yield make.case(
            f"scatter_add 1000000 to 1000000, {order}", (flat, wide, flat),
            rg=lambda x, i, v: rg.scatter_add(x, i, v),
            numpy=lambda x, i, v: x + np.bincount(i, v, len(x)).astype(x.dtype),
            torch=lambda x, i, v: t.scatter_add(x, 0, i, v),
        )  # fmt: skip
        ids = indices(5_000, 100_000)
        data = make.normal(100_000, 64)
        yield make.case(
            f"segment_sum 100000x64 to 5000, {order}", (data, ids),
            rg=lambda x, i: rg.segment_sum(x, i, 5_000),
            torch=lambda x, i: t.zeros(5_000, 64).index_add_(0, i, x),
        )  # fmt: skip
        yield make.case(
            f"embedding with gradient 50000 of 100000x64, {order}", (i, table),
            rg=rg.nn.functional.embedding, gradient=True,
            torch=lambda i, w: t.nn.functional.embedding(i, w),
        )  # fmt: skip
    square, along = make.normal(1000, 1000), rng.integers(0, 1000, (1000, 1000))
    unlike = np.argsort(make.normal(1000, 1000), axis=1)
    for axis in (0, 1):
        yield make.case(
            f"take_along_axis 1000x1000, axis {axis}", (square, along), exact=True,
            rg=lambda x, i, axis=axis: rg.take_along_axis(x, i, axis=axis),
            numpy=lambda x, i, axis=axis: np.take_along_axis(x, i, axis=axis),
            torch=lambda x, i, axis=axis: t.gather(x, axis, i),
        )  # fmt: skip
    yield make.case(
        "put_along_axis 1000x1000", (square, unlike, square), exact=True,
        rg=lambda x, i, v: rg.put_along_axis(x, i, v, axis=1),
        torch=lambda x, i, v: t.scatter(x, 1, i, v),
    )  # fmt: skip


def _running(make: Maker) -> Iterator[Case]:
    t = make.torch
    x = (make.normal(1_000_000) / 1000).astype(np.float32)
    near = (1 + 3 * x).astype(np.float32)
    yield make.case(
        "cumsum 1000000", (x,), rg=rg.cumsum, numpy=np.cumsum, torch=lambda x: t.cumsum(x, 0)
    )
    yield make.case(
        "cumprod 1000000", (near,), rg=rg.cumprod, numpy=np.cumprod,
        torch=lambda x: t.cumprod(x, 0),
    )  # fmt: skip
    yield make.case(
        "logcumsumexp 1000000", (x,), rg=rg.logcumsumexp,
        torch=lambda x: t.logcumsumexp(x, 0),
    )  # fmt: skip
    square = make.normal(1000, 1000)
    for axis in (0, 1):
        yield make.case(
            f"cumsum 1000x1000, axis {axis}", (square,),
            rg=lambda x, axis=axis: rg.cumsum(x, axis=axis),
            numpy=lambda x, axis=axis: np.cumsum(x, axis=axis),
            torch=lambda x, axis=axis: t.cumsum(x, axis),
        )  # fmt: skip


def _windows(make: Maker) -> Iterator[Case]:
    ours, theirs = rg.nn.functional, make.torch.nn.functional if make.torch else None
    image = make.normal(16, 32, 32, 32)
    filters, upward = make.normal(64, 32, 3, 3), make.normal(32, 32, 4, 4)
    table: list[tuple[str, tuple[Any, ...], Any]] = [
        ("conv2d 3x3", (image, filters), lambda f: lambda x, w: f.conv2d(x, w, padding=1)),
        (
            "conv2d 3x3, stride 2", (image, filters),
            lambda f: lambda x, w: f.conv2d(x, w, stride=2, padding=1),
        ),
        (
            "conv_transpose2d 4x4, stride 2", (image, upward),
            lambda f: lambda x, w: f.conv_transpose2d(x, w, stride=2, padding=1),
        ),
        ("max_pool2d 2", (image,), lambda f: lambda x: f.max_pool2d(x, 2)),
        (
            "max_pool2d 3, stride 2", (image,),
            lambda f: lambda x: f.max_pool2d(x, 3, stride=2, padding=1),
        ),
        ("avg_pool2d 2", (image,), lambda f: lambda x: f.avg_pool2d(x, 2)),
        (
            "avg_pool2d 3, stride 2", (image,),
            lambda f: lambda x: f.avg_pool2d(x, 3, stride=2, padding=1),
        ),
        (
            "interpolate nearest x2", (image,),
            lambda f: lambda x: f.interpolate(x, scale_factor=2, mode="nearest"),
        ),
        (
            "interpolate bilinear x2", (image,),
            lambda f: lambda x: f.interpolate(
                x, scale_factor=2, mode="bilinear", align_corners=False
            ),
        ),
    ]  # fmt: skip
    for name, arrays, f in table:
        for gradient in (False, True):
            yield make.case(
                f"{name} of 16x32x32x32{', with gradient' if gradient else ''}", arrays,
                rg=f(ours), torch=f(theirs) if theirs else None, gradient=gradient,
            )  # fmt: skip


def _matrices(make: Maker) -> Iterator[Case]:
    t, linalg = make.torch, installed("scipy.linalg")
    for dtype in (np.float32, np.float64, np.complex128):
        n = 512
        a = make.normal(n, n, dtype=np.float64)
        if dtype is np.complex128:
            a = a + 1j * make.normal(n, n, dtype=np.float64)
        positive = (a @ a.conj().T / n + np.eye(n)).astype(dtype)
        b, near = a[:, :1].astype(dtype), (a + 50 * np.eye(n)).astype(dtype)
        kind = f"{positive.dtype} {n}x{n}"
        table: list[tuple[str, tuple[Any, ...], Any, bool]] = [
            ("cholesky", (positive,), lambda m: m.cholesky, True),
            ("solve", (near, b), lambda m: m.solve, True),
            ("inv", (near,), lambda m: m.inv, True),
            ("eigh", (positive,), lambda m: m.eigh, False),
            ("svd", (near,), lambda m: lambda x: m.svd(x, full_matrices=False), False),
            ("qr", (near,), lambda m: m.qr, False),
        ]
        for name, arrays, f, checked in table:
            scipy = _SCIPY[name] if linalg and name in _SCIPY else None
            yield make.case(
                f"{name} {kind}", arrays, rg=f(rg.linalg), numpy=f(np.linalg), checked=checked,
                scipy=None if scipy is None else lambda *xs, s=scipy: s(linalg, *xs),
                torch=f(t.linalg) if t else None,
            )  # fmt: skip


_SCIPY: dict[str, Any] = {
    "cholesky": lambda m, x: m.cholesky(x, lower=True, check_finite=False),
    "solve": lambda m, a, b: m.solve(a, b, check_finite=False),
    "inv": lambda m, x: m.inv(x, check_finite=False),
    "qr": lambda m, x: m.qr(x, mode="economic", check_finite=False),
    "svd": lambda m, x: m.svd(x, full_matrices=False, check_finite=False),
    "eigh": lambda m, x: m.eigh(x, check_finite=False),
}


def _others(make: Maker) -> Iterator[Case]:
    for batch, n in ((1000, 8), (1000, 32), (64, 128)):
        a, b = make.normal(batch, n, n), make.normal(batch, n, n)
        yield make.case(
            f"matmul {batch}x{n}x{n}", (a, b), rg=rg.matmul, numpy=np.matmul,
            torch=lambda a, b: a @ b,
        )  # fmt: skip


def _complex(make: Maker) -> Iterator[Case]:
    t = make.torch
    a, b = (_numbers(make, 100_000) for _ in range(2))
    table: list[tuple[str, tuple[Any, ...], Any, Any, Any]] = [
        ("mul", (a, b), lambda a, b: a * b, lambda a, b: a * b, lambda a, b: a * b),
        ("add", (a, b), lambda a, b: a + b, lambda a, b: a + b, lambda a, b: a + b),
        ("exp", (a,), rg.exp, np.exp, lambda a: t.exp(a)),
        ("vecdot", (a, b), rg.vecdot, np.vdot, lambda a, b: t.vdot(a, b)),
        ("sum", (a,), rg.sum, np.sum, lambda a: t.sum(a)),
    ]
    for name, arrays, f, numpy, torch in table:
        yield make.case(f"{name} complex64 100000", arrays, rg=f, numpy=numpy, torch=torch)
    for n in (64, 256):
        a, b = (_numbers(make, n, n) for _ in range(2))
        yield make.case(
            f"matmul complex64 {n}x{n}", (a, b), rg=rg.matmul, numpy=np.matmul,
            torch=lambda a, b: a @ b,
        )  # fmt: skip


def _numbers(make: Maker, *shape: int) -> Any:
    return make.normal(*shape) + np.complex64(1j) * make.normal(*shape)


def _transforms(make: Maker) -> Iterator[Case]:
    t = make.torch
    for rows, n in ((256, 256), (195, 1024), (1, 1 << 17), (256, 768), (200, 1000), (195, 1021)):
        for name, x in (("fft", _numbers(make, rows, n)), ("rfft", make.normal(rows, n))):
            yield make.case(
                f"{name} {x.dtype} {rows}x{n}", (x,), rg=getattr(rg.fft, name),
                numpy=getattr(np.fft, name), torch=lambda x, name=name: getattr(t.fft, name)(x),
            )  # fmt: skip
    for n in (256, 384):
        yield make.case(
            f"rfft2 float32 {n}x{n}", (make.normal(n, n),), rg=rg.fft.rfft2, numpy=np.fft.rfft2,
            torch=lambda x: t.fft.rfft2(x),
        )  # fmt: skip


def _moving(make: Maker) -> Iterator[Case]:
    """Elements in another order; norms and extremes of what lies side by side."""
    t, x, flat = make.torch, make.normal(1000, 1000), make.normal(1_000_000)
    table: list[tuple[str, Any, Any, Any, Any]] = [
        ("flip both axes 1000x1000", x, lambda x: rg.flip(x, axis=(0, 1)),
         lambda x: np.flip(x).copy(), lambda x: t.flip(x, (0, 1))),
        ("x[::2] 1000000", flat, lambda x: x[::2], lambda x: x[::2].copy(),
         lambda x: x[::2].clone()),
        ("transpose 1000x1000", x, lambda x: x.T, lambda x: x.T.copy(),
         lambda x: x.T.contiguous()),
        ("vector_norm 1000000", flat, rg.linalg.vector_norm, np.linalg.norm,
         lambda x: t.linalg.vector_norm(x)),
        ("max 1000000", flat, rg.max, np.max, lambda x: t.amax(x)),
        ("median 1000000", flat, rg.median, np.median, None),
    ]  # fmt: skip
    for name, array, f, numpy, torch in table:
        yield make.case(name, (array,), rg=f, numpy=numpy, torch=torch)


def shape_text(shape: tuple[int, ...]) -> str:
    """
    >>> shape_text((2, 3))
    '2x3'
    """
    return "x".join(map(str, shape))
