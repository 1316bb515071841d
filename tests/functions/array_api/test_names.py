"""The Python array API standard 2024.12: every name, its arguments, what is easily got wrong."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg

ARRAYS = "(x1, x2, /)"
REDUCTION = "(x, /, *, axis=None, keepdims=False)"
LIKE = "(x, /, *, dtype=None, device=None)"
FILLED = "(shape, *, dtype=None, device=None)"
FOURIER = "(x, /, *, n=None, axis=-1, norm='backward')"
FOURIER_OF_MANY = "(x, /, *, s=None, axes=None, norm='backward')"


def alike(names: str, call: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), call)


# The functions by the sections of the standard. `...` is a default that the standard leaves open.
SECTIONS: dict[str, dict[str, str]] = {
    "creation": {
        "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
        "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
        "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
        "from_dlpack": "(x, /, *, device=..., copy=...)",
        "full": "(shape, fill_value, *, dtype=None, device=None)",
        "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
        "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
        "meshgrid": "(*arrays, indexing='xy')",
        "tril": "(x, /, *, k=0)",
        "triu": "(x, /, *, k=0)",
        **alike("empty ones zeros", FILLED),
        **alike("empty_like ones_like zeros_like", LIKE),
    },
    "data type": {
        "astype": "(x, dtype, /, *, copy=True, device=...)",
        "broadcast_shapes": "(*shapes)",
        "can_cast": "(from_, to, /)",
        "finfo": "(type, /)",
        "iinfo": "(type, /)",
        "isdtype": "(dtype, kind)",
        "result_type": "(*arrays_and_dtypes)",
    },
    "elementwise": {
        **alike(
            "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 "
            "floor imag isfinite isinf isnan log log1p log2 log10 logical_not negative "
            "positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc",
            "(x, /)",
        ),
        **alike(
            "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
            "copysign divide equal floor_divide greater greater_equal hypot less less_equal "
            "logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter "
            "not_equal pow remainder subtract",
            ARRAYS,
        ),
        "clip": "(x, /, min=None, max=None)",
    },
    "indexing": {
        "take": "(x, indices, /, *, axis=None)",
        "take_along_axis": "(x, indices, /, *, axis=-1)",
    },
    "inspection": {"__array_namespace_info__": "()"},
    "linear algebra": {
        "matmul": ARRAYS,
        "matrix_transpose": "(x, /)",
        "tensordot": "(x1, x2, /, *, axes=2)",
        "vecdot": "(x1, x2, /, *, axis=-1)",
    },
    "manipulation": {
        "broadcast_arrays": "(*arrays)",
        "broadcast_to": "(x, /, shape)",
        "concat": "(arrays, /, *, axis=0)",
        "expand_dims": "(x, /, *, axis=0)",
        "flip": "(x, /, *, axis=None)",
        "moveaxis": "(x, source, destination, /)",
        "permute_dims": "(x, /, axes)",
        "repeat": "(x, repeats, /, *, axis=None)",
        "reshape": "(x, /, shape, *, copy=None)",
        "roll": "(x, /, shift, *, axis=None)",
        "squeeze": "(x, /, axis)",
        "stack": "(arrays, /, *, axis=0)",
        "tile": "(x, repetitions, /)",
        "unstack": "(x, /, *, axis=0)",
    },
    "searching": {
        **alike("argmax argmin", "(x, /, *, axis=None, keepdims=False)"),
        "count_nonzero": REDUCTION,
        "nonzero": "(x, /)",
        "searchsorted": "(x1, x2, /, *, side='left', sorter=None)",
        "where": "(condition, x1, x2, /)",
    },
    "set": alike("unique_all unique_counts unique_inverse unique_values", "(x, /)"),
    "sorting": alike("argsort sort", "(x, /, *, axis=-1, descending=False, stable=True)"),
    "statistical": {
        **alike(
            "cumulative_prod cumulative_sum",
            "(x, /, *, axis=None, dtype=None, include_initial=False)",
        ),
        **alike("max mean min", REDUCTION),
        **alike("prod sum", "(x, /, *, axis=None, dtype=None, keepdims=False)"),
        **alike("std var", "(x, /, *, axis=None, correction=0.0, keepdims=False)"),
    },
    "utility": {
        **alike("all any", REDUCTION),
        "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    },
    "linalg": {
        "cholesky": "(x, /, *, upper=False)",
        "cross": "(x1, x2, /, *, axis=-1)",
        **alike("det eigh eigvalsh inv matrix_transpose slogdet svdvals", "(x, /)"),
        "diagonal": "(x, /, *, offset=0)",
        **alike("matmul outer solve", ARRAYS),
        "matrix_norm": "(x, /, *, keepdims=False, ord='fro')",
        "matrix_power": "(x, n, /)",
        **alike("matrix_rank pinv", "(x, /, *, rtol=None)"),
        "qr": "(x, /, *, mode='reduced')",
        "svd": "(x, /, *, full_matrices=True)",
        "tensordot": "(x1, x2, /, *, axes=2)",
        "trace": "(x, /, *, offset=0, dtype=None)",
        "vecdot": "(x1, x2, /, *, axis=-1)",
        "vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
    },
    "fft": {
        **alike("fft hfft ifft ihfft irfft rfft", FOURIER),
        **alike("fftn ifftn irfftn rfftn", FOURIER_OF_MANY),
        **alike("fftfreq rfftfreq", "(n, /, *, d=1.0, dtype=None, device=None)"),
        **alike("fftshift ifftshift", "(x, /, *, axes=None)"),
    },
}
FUNCTIONS = [(section, name) for section, names in SECTIONS.items() for name in names]
METHODS = {
    **alike(
        "__abs__ __bool__ __complex__ __dlpack_device__ __float__ __index__ __int__ __invert__ "
        "__neg__ __pos__",
        "(self, /)",
    ),
    **alike(
        "__add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lshift__ __lt__ __matmul__ "
        "__mod__ __mul__ __ne__ __or__ __pow__ __rshift__ __sub__ __truediv__ __xor__ __radd__ "
        "__rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ "
        "__rrshift__ __rsub__ __rtruediv__ __rxor__",
        "(self, other, /)",
    ),
    "__array_namespace__": "(self, /, *, api_version=None)",
    "__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__getitem__": "(self, key, /)",
    "__setitem__": "(self, key, value, /)",
    "to_device": "(self, device, /, *, stream=None)",
}
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)


def misfit(call: str, ours: inspect.Signature) -> str:
    """Why a call that the standard allows would not bind, or would mean something else; empty where
    each one does. More ways to call, and more arguments with defaults, do no harm."""
    scope: dict[str, object] = {}
    exec(f"def f{call}: ...", scope)
    standard = inspect.signature(scope["f"])  # type: ignore[arg-type]
    kinds = inspect.Parameter
    given = list(ours.parameters.values())
    any_keyword = any(p.kind is kinds.VAR_KEYWORD for p in given)
    for i, p in enumerate(standard.parameters.values()):
        if p.kind is kinds.VAR_POSITIONAL:
            if i >= len(given) or given[i].kind is not p.kind:
                return f"{p} is missing"
            continue
        by_place = p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        if by_place and (
            i >= len(given)
            or given[i].kind not in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ):
            return f"argument {i} is not {p}"
        own = given[i] if p.kind is kinds.POSITIONAL_ONLY else ours.parameters.get(p.name)
        if own is None:
            if any_keyword:
                continue
            return f"{p.name} is missing"
        named = p.kind is not kinds.POSITIONAL_ONLY
        if named and (own.kind is kinds.POSITIONAL_ONLY or (by_place and own is not given[i])):
            return f"{p.name} is not taken by name"
        if p.default is not p.empty and p.default is not ... and own.default != p.default:
            return f"the default of {p.name} is {own.default}, not {p.default}"
    for q in given[len(standard.parameters) :]:
        if q.default is q.empty and q.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            return f"{q} is asked for"
    return ""


@pytest.mark.parametrize(("section", "name"), FUNCTIONS)
def test_functions(section: str, name: str) -> None:
    space = getattr(rg, section) if section in ("linalg", "fft") else rg
    f = getattr(space, name)
    assert misfit(SECTIONS[section][name], inspect.signature(f)) == ""
    assert name in space.__all__
    assert f.__doc__


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    f = getattr(rg.Tensor, name)
    if isinstance(inspect.getattr_static(rg.Tensor, name), type(operator.add)):
        return
    assert misfit(METHODS[name], inspect.signature(f)) == ""


def test_a_deviation_is_seen() -> None:
    def f(x, axis=None, *, copy=None):
        """With three deviations from what follows."""

    found = inspect.signature(f)
    assert misfit("(x, /, *, axis=None)", found) == ""
    for call in (
        "(x, y, z, /)",
        "(x, /, *, axis=0)",
        "(x, /, *, k=None)",
        "(*x)",
        "()",
        "(x, copy)",
    ):
        assert misfit(call, found) != "", call


def test_constants_dtypes_and_attributes() -> None:
    assert (rg.e, rg.pi, rg.newaxis) == (np.e, np.pi, None)
    assert (rg.inf, np.isnan(rg.nan)) == (np.inf, True)
    assert rg.__array_api_version__ == "2024.12"
    for name in DTYPES.split():
        dtype = getattr(rg, name)
        assert dtype == dtype
        assert dtype != rg.bfloat16
        x = rg.ones((2, 3), dtype=dtype)
        assert (x.dtype, x.shape, x.ndim, x.size, x.device) == (dtype, (2, 3), 2, 6, "cpu")
        assert x.T.shape == x.mT.shape == (3, 2)
        assert x.to_device(x.device).dtype == dtype
        assert x.__array_namespace__(api_version="2024.12") is rg
        assert rg.from_dlpack(x).dtype == dtype
    info = rg.__array_namespace_info__()
    for kind in ("real floating", "complex floating", "integral", "indexing"):
        assert rg.isdtype(info.default_dtypes()[kind], kind.replace("indexing", "integral"))
    assert {"boolean indexing", "data-dependent shapes", "max dimensions"} == set(
        info.capabilities()
    )
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert info.default_device() in info.devices()


PLACES = {
    "add": ([5, 3], [2, 1]), "sub": ([5, 3], [2, 1]), "mul": ([5, 3], [2, 1]),
    "truediv": ([5.0, 3.0], [2.0, 1.0]), "floordiv": ([5, 3], [2, 1]), "mod": ([5, 3], [2, 1]),
    "pow": ([5, 3], [2, 1]), "matmul": ([[5, 3]], [[2, 1], [1, 0]]), "and_": ([5, 3], [2, 1]),
    "or_": ([5, 3], [2, 1]), "xor": ([5, 3], [2, 1]), "lshift": ([5, 3], [2, 1]),
    "rshift": ([5, 3], [2, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_operators_in_place(name: str) -> None:
    """`x += y` is `x + y` for all who hold x; what was computed before keeps its value."""
    a, b = PLACES[name]
    x = same = rg.tensor(a)
    old = x.reshape(x.shape[::-1])
    x = getattr(operator, "i" + name.removesuffix("_"))(x, rg.tensor(b))
    plain = getattr(operator, name)
    np.testing.assert_array_equal(x.numpy(), plain(np.array(a), np.array(b)))
    assert x is same
    assert old.reshape(x.shape).tolist() == a
    np.testing.assert_array_equal(plain(rg.tensor(a), rg.tensor(b)).numpy(), x.numpy())


# -- numbers next to -1, 0, 1, the ends and NaN ----------------------------------------------------
ODD = np.array([0.0, -0.0, 1, -1, 1.5, np.inf, -np.inf, np.nan, 3e38, 1e-45, -1e-45], np.float32)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_signs_and_neighbours(backend: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        a, b = (x.astype(dtype) for x in np.meshgrid(ODD, ODD))
        cases = [
            (rg.copysign(a, b), np.copysign(a, b)),
            (rg.nextafter(a, b), np.where(a == b, b, np.nextafter(a, b))),
            (rg.signbit(a), np.signbit(a)),
        ]
    with rg.backend(backend):
        for found, right in cases:
            np.testing.assert_array_equal(found.numpy(), right)
            if found.dtype.is_float:
                known = ~np.isnan(right)
                signs = np.signbit(found.numpy()[known])
                np.testing.assert_array_equal(signs, np.signbit(right[known]))
    assert rg.copysign(1, -2).dtype == rg.float32
    x = rg.tensor([2.0, -3.0, 0.0])
    g = rg.grad(lambda x, y: rg.copysign(x, y).sum(), (0, 1))(x, rg.tensor([-1.0, -0.0, 1.0]))
    assert [part.tolist() for part in g] == [[-1, 1, 0], [0, 0, 0]]
    g = rg.grad(lambda x, y: rg.nextafter(x, y).sum(), (0, 1))(x, rg.tensor([9.0, -3.0, -1.0]))
    assert [part.tolist() for part in g] == [[1, 1, 1], [0, 0, 0]]
    assert (+x).tolist() == rg.positive(x).tolist() == [2, -3, 0]
    with pytest.raises(rg.DTypeError, match="booleans have no sign"):
        rg.positive(rg.tensor([True]))


# -- complex numbers -------------------------------------------------------------------------------
RNG = np.random.default_rng(7)
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
W = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_products_and_norms_of_complex_numbers(backend: str) -> None:
    z, w = rg.asarray(Z), rg.asarray(W)
    with rg.backend(backend):
        cases = [
            (rg.vecdot(z, w), np.vecdot(Z, W)),
            (rg.linalg.vecdot(z, w, axis=0), (Z.conj() * W).sum(0)),
            (z @ w.T, Z @ W.T),
            (rg.tensordot(z, w), np.tensordot(Z, W)),
            (rg.linalg.outer(z[0], w[0]), np.outer(Z[0], W[0])),
            (rg.cumulative_prod(z, axis=1), np.cumprod(Z, 1)),
            (rg.cumulative_sum(z, axis=0), np.cumsum(Z, 0)),
            (rg.linalg.trace(z), np.trace(Z)),
            (rg.sign(z), Z / np.abs(Z)),
        ]
        for ord in (2, 1, 3, 0.5, 0, np.inf, -np.inf, -1):
            cases.append((rg.linalg.vector_norm(z, axis=1, ord=ord), np.linalg.norm(Z, ord, 1)))
        kinds: tuple[Any, ...] = ("fro", 1, -1, np.inf, -np.inf)
        for kind in (*kinds, 2, -2, "nuc"):
            cases.append((rg.linalg.matrix_norm(z, ord=kind), np.linalg.norm(Z, kind)))
        for found, right in cases:
            assert found.dtype == right.dtype
            np.testing.assert_allclose(found.numpy(), right, rtol=1e-13)
        sizes = rg.grad(lambda z: rg.linalg.vector_norm(z))(z)
        np.testing.assert_allclose(sizes.numpy(), Z / np.linalg.norm(Z), rtol=1e-13)
        zero = rg.grad(lambda z: rg.linalg.vector_norm(z))(rg.zeros(2, dtype=rg.complex64))
        assert zero.tolist() == [0, 0]


def test_linear_algebra_of_complex_matrices() -> None:
    a = (Z @ W.T + np.stack([Z @ Z.T, W @ Z.T])).astype(np.complex128)
    hermitian = a @ np.conj(np.swapaxes(a, -1, -2))
    m, h = rg.asarray(a), rg.asarray(hermitian)
    cases = [
        (rg.linalg.inv(m), np.linalg.inv(a)),
        (rg.linalg.solve(m, a[0]), np.linalg.solve(a, a[0])),
        (rg.linalg.solve(m[0], a[1, 0]), np.linalg.solve(a[0], a[1, 0])),
        (rg.linalg.pinv(Z), np.linalg.pinv(Z)),
        (rg.linalg.matrix_rank(m), np.linalg.matrix_rank(a)),
        (rg.linalg.matrix_rank(a[0][:, :1] * a[1][:1]), np.int64(1)),
        (rg.linalg.svdvals(m), np.linalg.svdvals(a)),
        (rg.linalg.svdvals(Z), np.linalg.svdvals(Z)),
        (rg.linalg.eigvalsh(h), np.linalg.eigvalsh(hermitian)),
        (rg.linalg.matrix_power(m, -3), np.linalg.matrix_power(a, -3)),
    ]
    for found, right in cases:
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-9, atol=1e-10)
    with pytest.raises(rg.LinAlgError):
        rg.linalg.inv(rg.tensor([[1, 1j], [1j, -1]])).numpy()
    assert rg.linalg.vector_norm(rg.zeros((2, 0)), axis=1, ord=np.inf).tolist() == [0, 0]
    assert (rg.tensor([1j, 2]) == 1j).tolist() == [True, False]


GRADIENTS: dict[str, Any] = {
    "inv": lambda m, z: abs(m.linalg.inv(z)).sum(),
    "solve": lambda m, z: abs(m.linalg.solve(z, z * z)).sum(),
    "pinv": lambda m, z: abs(m.linalg.pinv(z[:, :2])).sum(),
    "svdvals": lambda m, z: (m.linalg.svdvals(z) ** 3).sum(),
    "eigvalsh": lambda m, z: (m.linalg.eigvalsh(z @ m.conj(z.mT)) ** 2).sum(),
    "norm": lambda m, z: m.linalg.matrix_norm(z, ord=2),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_complex_matrices_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    f = GRADIENTS[name]
    t = torch.tensor(Z[:, :3], requires_grad=True)
    f(torch, t).backward()
    found = rg.grad(lambda z: f(rg, z))(rg.asarray(Z[:, :3].copy()))
    np.testing.assert_allclose(found.numpy(), t.grad.resolve_conj().numpy(), rtol=1e-9, atol=1e-10)


def test_signs_of_odd_complex_numbers() -> None:
    """`z / |z|` at its limits: NaN where a part is, the direction at infinity."""
    inf, nan = np.inf, np.nan
    z = [complex(*p) for p in ((-0.0, -0.0), (inf, 3), (1, -inf), (inf, inf), (nan, 1), (1, nan))]
    for backend in ("reference", "llvm"):
        with rg.backend(backend):
            found = rg.sign(rg.asarray(np.array(z))).numpy()
        np.testing.assert_array_equal(found[:3], [0, 1, -1j])
        assert np.isnan(found[3:].real).all()
        assert np.isnan(found[3:].imag).all()


def test_creation_of_complex_numbers() -> None:
    assert rg.zeros(2, dtype=rg.complex64).tolist() == [0j, 0j]
    assert rg.full(2, 1j).dtype == rg.complex64
    assert rg.full(2, 1j, dtype=rg.complex128).tolist() == [1j, 1j]
    assert rg.arange(2, dtype=rg.complex64).tolist() == [0j, 1 + 0j]
    assert rg.eye(2, dtype=rg.complex64).dtype == rg.complex64
    found = rg.linspace(0, 2j, 3)
    assert (found.dtype, found.tolist()) == (rg.complex64, [0, 1j, 2j])
    assert rg.linspace(1, 1 + 2j, 3, dtype=rg.complex128).tolist() == [1, 1 + 1j, 1 + 2j]
    with pytest.raises(rg.DTypeError, match="arange counts real numbers"):
        rg.arange(0, 3, 1j)


def test_complex_tensors_as_objects() -> None:
    x = rg.tensor(1j)
    assert (x.item(), complex(x), complex(rg.tensor(2.0))) == (1j, 1j, 2 + 0j)
    assert repr(rg.tensor([1 + 2j])) == "Tensor([1.+2.j], dtype=complex64)"
    z = rg.asarray(Z)
    for y in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), rg.from_dlpack(z)):
        assert y.dtype == rg.complex128
        np.testing.assert_array_equal(y.numpy(), Z)
    np.testing.assert_array_equal(np.asarray(z), Z)
    np.testing.assert_array_equal(np.from_dlpack(z), Z)
    assert np.asarray(x).dtype == np.complex64
    with pytest.raises(TypeError, match="complex"):
        float(x)


def test_dtypes_of_complex_numbers() -> None:
    assert rg.can_cast(rg.float32, rg.complex64)
    assert rg.can_cast(rg.float64, rg.complex128)
    assert not rg.can_cast(rg.float64, rg.complex64)
    assert not rg.can_cast(rg.complex64, rg.float64)
    assert not rg.can_cast(rg.int8, rg.complex64)
    assert rg.result_type(rg.float64, 1j) is rg.complex128
    assert rg.result_type(rg.float32, 1j) is rg.complex64
    info = rg.finfo(rg.complex128)
    assert (info.bits, info.dtype) == (64, rg.float64)
    assert rg.isdtype(rg.complex64, ("real floating", "complex floating"))
    assert rg.isdtype(rg.complex64, "numeric")
    assert not rg.isdtype(rg.complex64, "integral")


# -- arguments that are easily forgotten ---------------------------------------------------------
def test_copies_that_are_asked_for_or_not() -> None:
    x = rg.tensor([1.0, 2.0])
    assert rg.astype(x, rg.float32, copy=False) is x
    assert rg.astype(x, rg.float32) is not x
    assert rg.astype(x, rg.float64, copy=False, device="cpu").dtype == rg.float64
    assert x.astype(rg.int32).tolist() == [1, 2]
    assert rg.asarray(x, copy=False) is x
    assert rg.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="copy"):
        rg.asarray(x, dtype=rg.float64, copy=False)
    assert rg.asarray([1], dtype=rg.complex64, device="cpu", copy=True).tolist() == [1 + 0j]
    assert rg.reshape(x, (2, 1), copy=True).shape == (2, 1)
    y = np.array([1.0, 5.0, 3.0])
    found = rg.clip(y, rg.asarray([[2.0], [4.0]]), rg.asarray([3.0, 6.0, 3.5]))
    np.testing.assert_array_equal(found.numpy(), np.clip(y, [[2.0], [4.0]], [3.0, 6.0, 3.5]))


def test_gradients_pass_through_a_cast_that_does_nothing() -> None:
    def f(x):
        return (rg.astype(x, rg.float32, copy=False) ** 2).sum()

    x = rg.tensor([1.0, 2.0])
    assert rg.grad(f)(x).tolist() == rg.jit(rg.grad(f))(x).tolist() == [2, 4]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_distinct_complex_numbers(backend: str) -> None:
    parts = np.array([0.0, 1.0, -0.0, -1.0, 2.0])
    z = parts[RNG.integers(0, 5, 60)] + 1j * np.zeros(60)
    z.imag = parts[RNG.integers(0, 5, 60)]
    z[7] = z[30] = complex(1, np.nan)
    with rg.backend(backend):
        found = rg.unique_all(z.reshape(6, 10))
        values = found.values.numpy()
        np.testing.assert_array_equal(values, np.unique(z, equal_nan=False))
        np.testing.assert_array_equal(values[found.inverse_indices.numpy()], z.reshape(6, 10))
        np.testing.assert_array_equal(z[found.indices.numpy()], values)
        counts = np.unique(z, equal_nan=False, return_counts=True)[1]
        np.testing.assert_array_equal(found.counts.numpy(), counts)
        assert rg.unique_values(rg.zeros(0, dtype=rg.complex64)).shape == (0,)
