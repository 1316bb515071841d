"""The extensions `linalg` and `fft` of the standard on drawn arguments, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from tests.functions.array_api.inputs import (
    COMPLEX,
    FLOATING,
    FLOATS,
    NUMERIC,
    Array,
    Draw,
    axis_of,
    compare,
    inputs,
    shapes,
)
from tests.functions.array_api.test_names import SECTIONS
from tests.sampling import examples

BACKENDS = st.sampled_from(["reference", "llvm"])
BATCHES = shapes(0, 2, (0, 1, 2))
SIZES = st.sampled_from([1, 1, 2, 3, 5, 0])
# Products and views; they are drawn as at top level, in test_array_api_functions.py.
SHARED = ("matmul", "matrix_transpose", "tensordot", "vecdot")


@st.composite
def matrices(draw: Draw, kind: str = "square", dtypes: tuple[str, ...] = FLOATING) -> Array:
    """Well-conditioned matrices in a batch, of no rows too, as a view with negative steps."""
    batch, n, m = draw(BATCHES), draw(SIZES), draw(SIZES)
    dtype = draw(st.sampled_from(dtypes))
    m = m if kind == "any" else n
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    x = rng.normal(size=(*batch, n, m))
    if dtype in COMPLEX:
        x = x + 1j * rng.normal(size=x.shape)
    x = x + 4 * np.eye(n, m)
    if kind == "positive":
        x = x @ np.swapaxes(x.conj(), -1, -2)
    return draw(st.sampled_from([x, x[..., ::-1, ::-1]])).astype(dtype)


@st.composite
def keywords(draw: Draw, **choices: list[Any]) -> dict[str, Any]:
    return {k: draw(st.sampled_from(v)) for k, v in choices.items() if draw(st.booleans())}


def check(f: Callable[..., Any], right: Any, xs: Any, backend: str) -> None:
    """The result on a backend, in single precision with more room: matrices are not that tame."""
    with rg.backend(backend):
        compare(f(), right, xs, 4096)


PLAIN: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "cholesky": ("positive", {}),
    "det": ("square", {}),
    "diagonal": ("any", {"offset": [-6, -1, 0, 2]}),
    "eigvalsh": ("positive", {}),
    "inv": ("square", {}),
    "matrix_norm": ("any", {"ord": ["fro", 1, -1, np.inf, -np.inf], "keepdims": [True, False]}),
    "matrix_rank": ("any", {"rtol": [1e-3]}),
    "pinv": ("any", {"rtol": [1e-3]}),
    "slogdet": ("square", {}),
    "svdvals": ("any", {}),
    "trace": ("any", {"offset": [-6, -1, 0, 2]}),
}


@pytest.mark.parametrize("name", PLAIN)
@examples(30)
@given(data=st.data(), backend=BACKENDS)
def test_function_of_matrices(name: str, data: st.DataObject, backend: str) -> None:
    kind, choices = PLAIN[name]
    x = data.draw(matrices(kind))
    keys = data.draw(keywords(**choices))
    if 0 in x.shape[-2:] and name in ("matrix_norm", "matrix_rank"):
        return  # the least and the greatest of no numbers: tested below
    right = getattr(np.linalg, name)(x, **keys)
    check(lambda: getattr(rg.linalg, name)(rg.asarray(x), **keys), right, (name, x, keys), backend)


@examples(40)
@given(x=matrices(), k=st.integers(-3, 5), upper=st.booleans(), backend=BACKENDS)
def test_powers_and_factors(x: Array, k: int, upper: bool, backend: str) -> None:
    check(
        lambda: rg.linalg.matrix_power(rg.asarray(x), k), np.linalg.matrix_power(x, k), x, backend
    )
    with rg.backend(backend):
        spd = x @ np.swapaxes(x.conj(), -1, -2)
        factor = rg.linalg.cholesky(rg.asarray(spd), upper=upper)
        compare(factor.mT.conj() @ factor if upper else factor @ factor.mT.conj(), spd, x, 4096)


@examples(60)
@given(x=matrices("any"), data=st.data(), backend=BACKENDS)
def test_orthogonal_factors(x: Array, data: st.DataObject, backend: str) -> None:
    """`x` is their product, with factors whose columns are orthonormal, of NumPy's shapes."""
    mode: Any = data.draw(st.sampled_from(["reduced", "complete"]))
    full = data.draw(st.booleans())
    with rg.backend(backend):
        q, r = rg.linalg.qr(rg.asarray(x), mode=mode)
        theirs = np.linalg.qr(x, mode=mode)
        assert (q.shape, r.shape) == (theirs.Q.shape, theirs.R.shape)
        compare(q @ r, x, x, 4096)
        eye = np.broadcast_to(
            np.eye(q.shape[-1], dtype=x.dtype), (*x.shape[:-2], *[q.shape[-1]] * 2)
        )
        compare(q.mT.conj() @ q, eye, x, 4096)
        u, s, vh = rg.linalg.svd(rg.asarray(x), full_matrices=full)
        right = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, vh.shape) == (right.U.shape, right.Vh.shape)
        compare(s, right.S, x, 4096)
        k = s.shape[-1]
        compare((u[..., :k] * rg.expand_dims(s, axis=-2)) @ vh[..., :k, :], x, x, 4096)


@examples(40)
@given(x=matrices("positive"), backend=BACKENDS)
def test_eigenvectors(x: Array, backend: str) -> None:
    with rg.backend(backend):
        w, v = rg.linalg.eigh(rg.asarray(x))
        compare(w, np.linalg.eigvalsh(x), x, 4096)
        compare(rg.asarray(x) @ v, (v * rg.expand_dims(w, axis=-2)).numpy(), x, 4096)


@examples(60)
@given(data=st.data(), backend=BACKENDS)
def test_solve(data: st.DataObject, backend: str) -> None:
    a = data.draw(matrices())
    n, dtype = a.shape[-1], str(a.dtype)
    if data.draw(st.booleans()):
        b = data.draw(inputs([dtype], (n,))).array
    else:
        batch = data.draw(st.sampled_from([a.shape[:-2], (1,) * (a.ndim - 2), ()]))
        b = data.draw(inputs([dtype], (*batch, n, data.draw(st.integers(0, 3))))).array
    right = np.linalg.solve(a, b)
    check(lambda: rg.linalg.solve(rg.asarray(a), rg.asarray(b)), right, (a, b), backend)


@examples(60)
@given(data=st.data(), backend=BACKENDS)
def test_vectors(data: st.DataObject, backend: str) -> None:
    x = data.draw(inputs(FLOATING, shapes(1, sizes=(1, 2, 3))))
    keys = data.draw(keywords(ord=[0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf], keepdims=[True]))
    keys["axis"] = data.draw(axis_of(x, several=True))
    with np.errstate(divide="ignore"):
        right = np.linalg.vector_norm(x.array, **keys)
    check(lambda: rg.linalg.vector_norm(x.tensor(), **keys), right, (x, keys), backend)
    one, two = (data.draw(inputs([str(x.array.dtype)], shapes(1, 1))) for _ in range(2))
    right = np.linalg.outer(one.array, two.array)
    check(lambda: rg.linalg.outer(one.tensor(), two.tensor()), right, (one, two), backend)


@examples(40)
@given(data=st.data(), backend=BACKENDS)
def test_cross(data: st.DataObject, backend: str) -> None:
    dtype = data.draw(st.sampled_from(NUMERIC))
    shape = list(data.draw(shapes(1)))
    axis = data.draw(st.integers(-len(shape), -1))
    shape[axis] = 3
    xs = [data.draw(inputs([dtype], tuple(shape))) for _ in range(2)]
    right = np.linalg.cross(*(x.array for x in xs), axis=axis)
    check(lambda: rg.linalg.cross(*(x.tensor() for x in xs), axis=axis), right, xs, backend)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@examples(15)
@given(x=matrices("any"), backend=BACKENDS)
def test_norms_of_matrices(ord: Any, x: Array, backend: str) -> None:
    if 0 in x.shape[-2:]:
        return
    right = np.linalg.matrix_norm(x, ord=ord)
    check(lambda: rg.linalg.matrix_norm(rg.asarray(x), ord=ord), right, x, backend)


# -- Fourier transforms ----------------------------------------------------------------------------
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")
SHIFTS = ("fftshift", "ifftshift")
NORMS = ["backward", "ortho", "forward"]


def taken(name: str) -> tuple[str, ...]:
    return FLOATS if name in ("rfft", "ihfft", "rfftn") else COMPLEX


@pytest.mark.parametrize("name", ONE)
@examples(30)
@given(data=st.data(), backend=BACKENDS)
def test_transforms(name: str, data: st.DataObject, backend: str) -> None:
    x = data.draw(inputs(taken(name), shapes(1, sizes=(2, 3, 4, 5))))
    axis = data.draw(axis_of(x, none=False))
    keys = data.draw(keywords(n=[2, 3, 7], norm=NORMS))
    f = getattr(np.fft, name)
    right = f(x.array, axis=axis, **keys)
    check(
        lambda: getattr(rg.fft, name)(x.tensor(), axis=axis, **keys),
        right,
        (name, x, keys),
        backend,
    )


@pytest.mark.parametrize("name", MANY)
@examples(30)
@given(data=st.data(), backend=BACKENDS)
def test_transforms_of_several_axes(name: str, data: st.DataObject, backend: str) -> None:
    x = data.draw(inputs(taken(name), shapes(1, sizes=(2, 3, 4))))
    axes = data.draw(st.lists(st.integers(0, x.array.ndim - 1), unique=True, min_size=1))
    keys = {"axes": tuple(axes), **data.draw(keywords(norm=NORMS))}
    if data.draw(st.booleans()):
        keys["s"] = tuple(data.draw(st.integers(2, 5)) for _ in axes)
    right = getattr(np.fft, name)(x.array, **keys)
    check(lambda: getattr(rg.fft, name)(x.tensor(), **keys), right, (name, x, keys), backend)


@pytest.mark.parametrize("name", SHIFTS)
@examples(30)
@given(data=st.data(), backend=BACKENDS)
def test_shifts(name: str, data: st.DataObject, backend: str) -> None:
    x = data.draw(inputs(FLOATING, shapes(1)))  # NumPy rolls no numbers
    axes = data.draw(axis_of(x, several=True))
    right = getattr(np.fft, name)(x.array, axes=axes)
    check(lambda: getattr(rg.fft, name)(x.tensor(), axes=axes), right, (x, axes), backend)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str) -> None:
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.25, 3.0):
            found = getattr(rg.fft, name)(n, d=d, dtype=rg.float64)
            np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(n, d=d), rtol=1e-15)
            assert getattr(rg.fft, name)(n, dtype=rg.float32).dtype == rg.float32


def test_every_function_is_tested() -> None:
    factors = {"matrix_power", "qr", "svd", "eigh", "solve", "vector_norm", "outer", "cross"}
    assert {*PLAIN, *SHARED, *factors} == set(SECTIONS["linalg"])
    assert {*ONE, *MANY, *SHIFTS, "fftfreq", "rfftfreq"} == set(SECTIONS["fft"])
    assert all(getattr(rg.linalg, n) is getattr(rg, n) for n in SHARED)
