"""PyTorch's own database of operations as a test: every entry that retrograd has a counterpart of.

Values (both backends, `jit`, `vmap`), first and second gradients and forward mode, in float64 and
complex128, at the samples that PyTorch lists. `differences.py` says what is not compared, and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytest.importorskip("expecttest", reason="OpInfo needs expecttest (extra: torch)")

from tests.opinfo import differences  # noqa: E402
from tests.opinfo.counterparts import counterpart  # noqa: E402
from tests.opinfo.harness import (  # noqa: E402
    ENTRIES,
    Sample,
    as_numpy,
    check_close,
    everything,
    floats,
    samples,
    weighted,
    weights_like,
)

pytestmark = pytest.mark.torch

COMPARED = [name for name in ENTRIES if differences.absent(name) is None]
COMPLEX = [name for name in COMPARED if torch.complex128 in ENTRIES[name].dtypes]
TOLERANCE = 1e-9


def test_every_entry_is_compared_or_listed_as_absent() -> None:
    missing = [
        name
        for name in COMPARED
        if counterpart(ENTRIES[name].name, ENTRIES[name].variant_test_name) is None
    ]
    assert missing == []


def test_what_is_listed_as_different_exists() -> None:
    unused = [names for names in differences.ABSENT if not _matches(names)]
    unused += [names for names, *_ in differences.SAMPLES if not _matches(names)]
    assert unused == []


def _matches(names: str) -> bool:
    return any(re.fullmatch(names, entry) for entry in ENTRIES)


@pytest.mark.parametrize("name", COMPARED)
def test_values(name: str) -> None:
    for sample in chosen(name, 12):
        want = _numbers(name, sample.of_torch(*map(torch.tensor, sample.arrays)))
        _check(sample, "llvm", _numbers(name, sample.of_own(*map(rg.asarray, sample.arrays))), want)
        with rg.backend("reference"):
            found = _numbers(name, sample.of_own(*map(rg.asarray, sample.arrays)))
            _check(sample, "reference", found, want)


@pytest.mark.parametrize("name", [n for n in COMPARED if n not in differences.EAGER_ONLY])
def test_jit_and_vmap(name: str) -> None:
    for sample in chosen(name, 4):
        if not sample.arrays:
            continue
        arrays = sample.arrays
        want = _numbers(name, sample.of_own(*map(rg.asarray, arrays)))

        def called(*given: Any, sample: Sample = sample) -> list[Any]:
            return _numbers(name, sample.of_own(*given))

        _check(sample, "jit", rg.jit(called)(*arrays), want)
        pairs = [np.stack([x, x]) for x in arrays]
        both = rg.vmap(called)(*pairs)
        _check(sample, "vmap, first", [x[0] for x in both], want)
        _check(sample, "vmap, second", [x[1] for x in both], want)


@pytest.mark.parametrize("name", [n for n in COMPARED if ENTRIES[n].supports_autograd])
def test_gradients(name: str) -> None:
    for sample in chosen(name, 8):
        check_gradients(name, sample)


@pytest.mark.parametrize("name", sorted(differences.REAL))
def test_what_is_real_refuses_complex_numbers(name: str) -> None:
    sample = chosen(name, 12, torch.complex128)[0]
    with pytest.raises(rg.DTypeError):
        sample.of_own(*map(rg.asarray, sample.arrays))


@pytest.mark.parametrize("name", [n for n in COMPLEX if n not in differences.REAL])
def test_complex(name: str) -> None:
    for sample in chosen(name, 6, torch.complex128):
        want = _numbers(name, sample.of_torch(*map(torch.tensor, sample.arrays)))
        found = _numbers(name, sample.of_own(*map(rg.asarray, sample.arrays)))
        _check(sample, "complex", found, want)
        if ENTRIES[name].supports_autograd:
            check_gradients(name, sample)


def chosen(name: str, most: int, dtype: Any = None) -> list[Sample]:
    """The samples of an entry that are compared."""
    op = ENTRIES[name]
    own = counterpart(op.name, op.variant_test_name)
    assert own is not None
    kinds = (torch.float64, torch.complex128, torch.int64)
    dtype = dtype or next(d for d in kinds if d in op.dtypes)
    listed = samples(op, own, dtype, most)
    return [s for s in listed if differences.left_out(name, s.text) is None]


def check_gradients(name: str, sample: Sample) -> None:
    """First and second order in reverse, and forward mode, with respect to what PyTorch
    differentiates."""
    places = sample.differentiable
    if not places or name in differences.NO_GRADIENT:
        return
    given = [torch.tensor(x, requires_grad=i in places) for i, x in enumerate(sample.arrays)]
    results = floats(_numbers(name, sample.of_torch(*given)))
    weights = weights_like(results, 1)
    loss = weighted(results, weights, torch.tensor)
    if not getattr(loss, "requires_grad", False):
        return
    at = [given[i] for i in places]
    twice = ENTRIES[name].supports_gradgrad and name not in differences.NO_SECOND
    first = torch.autograd.grad(loss, at, create_graph=twice, materialize_grads=True)

    def own_loss(*moved: Any) -> Any:
        arrays: list[Any] = [rg.asarray(x) for x in sample.arrays]
        for i, x in zip(places, moved, strict=True):
            arrays[i] = x
        return weighted(floats(_numbers(name, sample.of_own(*arrays))), weights, rg.asarray)

    here = [sample.arrays[i] for i in places]
    numbers = tuple(range(len(places)))
    gradient = rg.grad(own_loss, argnums=numbers)
    _check(sample, "gradient", gradient(*here), first)
    tangents = weights_like(list(at), 2)
    _, along = rg.jvp(own_loss, tuple(here), tuple(tangents))
    want = sum(
        float((as_numpy(g).conj() * t).real.sum()) for g, t in zip(first, tangents, strict=True)
    )
    _check(sample, "forward mode", [along], [np.asarray(want)])
    seeds = weights_like(list(first), 3)
    slope = weighted(list(first), seeds, torch.tensor)
    if not twice or not slope.requires_grad:
        return
    second = torch.autograd.grad(slope, at, materialize_grads=True)

    def own_slope(*moved: Any) -> Any:
        return weighted(list(gradient(*moved)), seeds, rg.asarray)

    _check(sample, "second gradient", rg.grad(own_slope, argnums=numbers)(*here), second)


def _numbers(name: str, results: Any) -> list[Any]:
    """What is compared of the results: all, or what does not depend on a choice."""
    observe: Callable[[Any], Any] | None = differences.OBSERVED.get(name)
    return everything(results if observe is None else observe(results))


def _check(sample: Sample, what: str, found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted), f"{sample.text}: {len(found)} results, not {len(wanted)}"
    for x, y in zip(found, wanted, strict=True):
        check_close(x, y, f"{sample.text}: {what}", TOLERANCE)
