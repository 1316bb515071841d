"""Samples of OpInfo's entries, computed by both libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytest.importorskip("expecttest", reason="OpInfo needs expecttest (extra: torch)")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _database: Any = pytest.importorskip("torch.testing._internal.common_methods_invocations")

ENTRIES = {f"{op.name} {op.variant_test_name}".strip(): op for op in _database.op_db}
# Arguments that say how PyTorch is to compute or to store, not what.
_IGNORED = ("memory_format", "device", "layout", "requires_grad", "pin_memory")
Call = Callable[..., Any]


@dataclass(frozen=True)
class Sample:
    """A call of an entry: both functions take the floating arrays of the sample as arguments."""

    arrays: tuple[np.ndarray, ...]
    differentiable: tuple[int, ...]
    of_torch: Call
    of_own: Call
    text: str


@dataclass(frozen=True)
class _Leaf:
    place: int


def samples(op: Any, own: Call, dtype: Any, most: int) -> Iterator[Sample]:
    """At most so many samples, spread over all that an entry lists."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (what PyTorch's samples draw from)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differentiable = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        listed = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))
    for sample in listed[:: -(-len(listed) // most)]:
        yield _taken_apart(op, own, sample)


def _taken_apart(op: Any, own: Call, sample: Any) -> Sample:
    arrays: list[np.ndarray] = []
    wanted: list[int] = []

    def part(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and is_floating(x.dtype):
            if x.requires_grad:
                wanted.append(len(arrays))
            arrays.append(np.array(as_numpy(x)))
            return _Leaf(len(arrays) - 1)
        return type(x)(map(part, x)) if type(x) in (tuple, list) else x

    args = part([sample.input, *sample.args])
    options = {k: part(v) for k, v in sample.kwargs.items()}
    shown = {k: v for k, v in options.items() if k not in _IGNORED}

    # Where PyTorch's own tests of gradients make a matrix Hermitian first, so do we.
    symmetric = op.gradcheck_wrapper is _database.gradcheck_wrapper_hermitian_input

    def of_torch(*given: Any) -> Any:
        given = (given[0] + given[0].mH, *given[1:]) if symmetric else given
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return op.op(
                *_filled(args, given, _as_is),
                **{k: _filled(v, given, _as_is) for k, v in options.items()},
            )

    def of_own(*given: Any) -> Any:
        if symmetric:
            given = (given[0] + rg.conj(rg.matrix_transpose(given[0])), *given[1:])
        named = {k: _filled(v, given, _own_argument) for k, v in shown.items()}
        return own(*_filled(args, given, _own_argument), **named)

    inputs = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in arrays)
    text = f"{op.name}({inputs}; {_told(sample.args)} {_told(shown)})"
    return Sample(tuple(arrays), tuple(wanted), of_torch, of_own, text)


def _filled(x: Any, given: Any, other: Call) -> Any:
    if isinstance(x, _Leaf):
        return given[x.place]
    if type(x) in (tuple, list):
        return type(x)(_filled(a, given, other) for a in x)
    return other(x)


def _as_is(x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) else x


def _own_argument(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return rg.asarray(np.array(x.numpy()))
    if isinstance(x, torch.dtype):
        return getattr(rg, str(x).removeprefix("torch."))
    return x


def _told(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
    if isinstance(x, (tuple, list)):
        return f"({', '.join(map(_told, x))})"
    if isinstance(x, dict):
        return ", ".join(f"{k}={_told(v)}" for k, v in x.items())
    return repr(x)


def everything(results: Any) -> list[Any]:
    """The arrays and numbers among the results of a call, in order."""
    if isinstance(results, dict):
        results = tuple(results.values())
    if isinstance(results, (tuple, list)):
        return [x for r in results for x in everything(r)]
    return [results]


def floats(results: Any) -> list[Any]:
    """Those that may have a gradient."""
    return [x for x in everything(results) if hasattr(x, "dtype") and is_floating(x.dtype)]


def is_floating(dtype: Any) -> bool:
    if isinstance(dtype, torch.dtype):
        return dtype.is_floating_point or dtype.is_complex
    return bool(dtype.is_float or dtype.is_complex)


def as_numpy(x: Any) -> np.ndarray:
    if isinstance(x, torch.Tensor):
        return x.detach().resolve_conj().resolve_neg().numpy(force=True)
    return np.asarray(x.detach() if isinstance(x, rg.Tensor) else x)


def weighted(results: list[Any], weights: list[np.ndarray], of: Call) -> Any:
    """A real number that all results enter, each element with a weight of its own."""
    total: Any = 0.0
    for x, w in zip(results, weights, strict=True):
        if x.dtype.is_complex:
            total = total + (x.real * of(w.real.copy())).sum() + (x.imag * of(w.imag.copy())).sum()
        else:
            total = total + (x * of(w)).sum()
    return total


def weights_like(results: list[Any], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found = []
    for x in results:
        shape = tuple(x.shape)
        w = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))
        found.append(w + 1j * rng.uniform(-1, 1, shape) if x.dtype.is_complex else w)
    return found


def check_close(got: Any, want: Any, what: str, tolerance: float) -> None:
    """Equal within the tolerance, relative to the largest element; NaN where there is NaN."""
    got, want = as_numpy(got), as_numpy(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, PyTorch {want.shape}"
    if want.dtype == bool or got.dtype == bool:
        got, want = got.astype(np.int64), want.astype(np.int64)
    finite = np.isfinite(want)
    alike = finite == np.isfinite(got)
    alike &= finite | (got == want) | (np.isnan(got) & np.isnan(want))
    assert alike.all(), f"{what}: {got}, PyTorch {want}"
    scale = max(1.0, float(np.abs(want[finite]).max(initial=0)))
    error = float(np.abs(got[finite].astype(want.dtype) - want[finite]).max(initial=0))
    assert error <= tolerance * scale, f"{what}: off by {error:.3g}: {got}, PyTorch {want}"
