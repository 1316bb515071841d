"""Every public function on arrays whose sizes have names, next to the same with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F
from benchmarks.calls import Arrays, calls, listed
from retrograd import pytree

SHAPES = {
    "x": "N N+2", "y": "N N+2", "row": "N+2", "m": "N N", "spd": "N N", "i": "N N+2", "rows": "N+1",
    "mask": "N N+2", "z": "N N+2", "sequence": "2 3 2*N+2", "image": "2 3 2*N 2*N+2",
    "volume": "1 2 N+1 N+2 N+3",
}  # fmt: skip
FLOATING = [name for name in SHAPES if name not in ("i", "rows", "mask")]
VALUES = "how many elements there are depends on values; they take size="
UNKNOWN = "how many elements there are depends on values"
ARRAY = "the call makes a NumPy array of that size"
SIZES = "which elements are meant depends on the size; they say that it is symbolic"
NUMBERS = "how many results there are depends on the size; it says what to do instead"
SYMBOLIC = (
    "apply_along_axis", "array_split", "convolve", "correlate", "delete", "diag_indices_from",
    "diagonal_scatter", "dsplit", "hsplit", "insert", "polyadd", "polyder", "polyint", "polymul",
    "polysub", "resize", "tril_indices_from", "triu_indices_from", "vsplit",
)  # fmt: skip
EXCEPT = {
    **dict.fromkeys(("argwhere", "nonzero", "unique_all", "unique_counts", "unique_inverse",
                     "unique_values", "flatnonzero"), VALUES),
    **dict.fromkeys(("extract", "intersect1d", "masked_select", "roots", "setdiff1d", "setxor1d",
                     "trim_zeros", "union1d", "unique"), UNKNOWN),
    **dict.fromkeys(SYMBOLIC, SIZES),
    **dict.fromkeys(("array", "as_tensor", "asarray", "from_numpy", "tensor"), ARRAY),
    **dict.fromkeys(("chunk", "tensor_split", "unbind", "unstack"), NUMBERS),
}  # fmt: skip
NAMES = sorted(listed())
SUPPORTED = [name for name in NAMES if name.removeprefix("rg.") not in EXCEPT]


class Named(Arrays):
    """Arrays whose size may have a name."""

    def uniform(self, *shape: Any) -> Any:
        count: Any = 1
        for n in shape:
            count = count * n
        return (rg.sin(rg.arange(count) * 1.7) * 0.4 + 0.5).reshape(shape)


def function(name: str) -> Callable[..., list[Any]]:
    """The function of this name, of a dict of arrays."""

    def call(d: dict[str, Any]) -> list[Any]:
        arrays = Named(5)
        arrays.n = d["m"].shape[0]
        for field, value in d.items():
            setattr(arrays, field, value)
        return [y for y in pytree.flatten(calls(arrays)[name]())[0] if isinstance(y, rg.Tensor)]

    return call


def slopes(f: Callable[..., list[Any]]) -> Callable[..., Any]:
    def loss(floating: dict[str, Any], d: dict[str, Any]) -> Any:
        total = rg.tensor(0.0)
        for y in f({**d, **floating}):
            if not y.dtype.is_inexact:
                continue
            total = total + (rg.abs(y) ** 2).sum().astype(rg.float32)
        return total

    return lambda d: rg.grad(loss)({name: d[name] for name in FLOATING}, d)


def given(n: int) -> dict[str, Any]:
    arrays = Named(n)
    return {name: getattr(arrays, name) for name in SHAPES}


def agree(f: Callable[..., Any], sizes: Sequence[int], rtol: float) -> None:
    named = rg.jit(f, shapes={"d": SHAPES})
    for n in sizes:
        d = given(n)
        found, expected = pytree.flatten(named(d))[0], pytree.flatten(f(d))[0]
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)
    assert named.cache_stats()["compilations"] == 1


def test_the_exceptions_are_functions():
    assert {f"rg.{name}" for name in EXCEPT} <= set(NAMES)


@pytest.mark.parametrize("name", SUPPORTED)
@pytest.mark.sample(20)
def test_values(name):
    with rg.backend("reference"):
        agree(function(name), (7,), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUPPORTED)
def test_compiled_values_and_gradients(name):
    agree(function(name), (5, 7, 3), 1e-3)
    agree(slopes(function(name)), (5, 7), 2e-2)


@pytest.mark.parametrize("name", [f"rg.{n}" for n, why in EXCEPT.items() if why == NUMBERS])
def test_what_needs_numbers_says_so(name):
    with pytest.raises(rg.ShapeError, match=r"N is symbolic.*rg.scan and rg.vmap"):
        rg.jit(function(name), shapes={"d": SHAPES})(given(5))


@pytest.mark.parametrize("name", SYMBOLIC)
def test_what_needs_a_known_size_says_so(name):
    with rg.backend("reference"), pytest.raises(rg.ShapeError, match="symbolic"):
        rg.jit(function(f"rg.{name}"), shapes={"d": SHAPES})(given(5))


@pytest.mark.parametrize("f", [
    lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    pytest.param(lambda x: F.unfold(x, (2, 2)), marks=pytest.mark.slow),
    lambda x: F.grid_sample(x, rg.tanh(rg.permute_dims(x[:, :2], (0, 2, 3, 1)))),
], ids=["max_unpool2d", "interpolate", "adaptive_max_pool2d", "unfold", "grid_sample"])  # fmt: skip
def test_a_named_number_of_samples_is_enough_for_most(f):
    slope = rg.grad(lambda x: (f(x) ** 2).sum())
    compiled = rg.jit(slope, shapes={"x": "N 3 6 6"})
    for n in (1, 2, 5):
        x = np.random.default_rng(n).standard_normal((n, 3, 6, 6)).astype(np.float32)
        np.testing.assert_allclose(compiled(x).numpy(), slope(rg.tensor(x)).numpy(), 1e-4, 1e-5)
    assert compiled.cache_stats()["compilations"] == 1
