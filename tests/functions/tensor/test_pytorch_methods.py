"""What PyTorch's users write that means something else here, or nothing, and signatures."""

from __future__ import annotations

import inspect
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


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: x.sum(axis=1, dim=0), rg.OptionError, "two names"),
        (lambda x: x.max(x), rg.OptionError, r"rg\.maximum"),
        (lambda x: x.transpose(0, 1), rg.OptionError, r"x\.T"),
        (lambda x: x.repeat(2, 1), rg.OptionError, r"x\.tile\(2, 1\)"),
        (lambda x: x.view(rg.int32), rg.OptionError, "bits"),
        (lambda x: x.to("cuda"), rg.OptionError, r"rg\.backend"),
        (lambda x: rg.zeros(2, device="cuda:0"), rg.OptionError, r"rg\.backend"),
        (lambda x: rg.randn(2, device="mps"), rg.OptionError, "CPU"),
        (lambda x: rg.where(x > 0), rg.OptionError, "nonzero"),
        (lambda x: rg.mm(x, x[0]), rg.ShapeError, "matmul"),
        (lambda x: rg.gather(x, 1, rg.zeros((9, 1), dtype=rg.int64)), rg.ShapeError, "gather"),
        (lambda x: rg.gather(x, 1, rg.tensor([[9]])).tolist(), rg.IndexRangeError, "9"),
        (lambda x: rg.narrow(x, 1, 3, 2), rg.ShapeError, "narrow"),
        (lambda x: rg.chunk(x, 0), rg.ShapeError, "0 parts"),
        (lambda x: rg.kthvalue(x, 0), rg.ShapeError, "counts from 1"),
        (lambda x: rg.masked_fill(x, x, 0), rg.DTypeError, "boolean"),
        (lambda x: rg.scatter_reduce(x, 1, rg.tensor(I), x, "middle"), rg.OptionError, "amax"),
        (lambda x: rg.div(x, x, rounding_mode="up"), rg.OptionError, "floor"),
        (lambda x: rg.zeros(), rg.ShapeError, "shape"),
        (lambda x: rg.zeros((2,), size=(2,)), rg.OptionError, "one thing"),
        (lambda x: rg.randint(5), rg.ShapeError, "size"),
        (lambda x: rg.jit(lambda x: rg.randn(2) + x)(rg.ones(2)), rg.TraceError, "generator"),
        (lambda x: rg.multinomial(rg.ones(2), 3), rg.ShapeError, "without replacement"),
        (lambda x: rg.clamp(x), rg.OptionError, "min, max"),
    ],
)
def test_what_means_something_else_or_nothing_is_an_error(
    call: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call(rg.tensor(A))


def test_signatures_are_visible() -> None:
    for f in (rg.cat, rg.Tensor.unsqueeze, rg.Tensor.view, rg.Tensor.masked_fill, rg.sum, rg.randn):
        kinds = {p.kind for p in inspect.signature(f).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert "dim" in inspect.signature(rg.Tensor.std).parameters
    assert "alpha" in inspect.signature(rg.Tensor.add_).parameters


def test_a_method_takes_dim_where_its_function_does():
    shared = {
        name: (inspect.signature(method), inspect.signature(f))
        for name, method in inspect.getmembers(rg.Tensor, inspect.isroutine)
        if name in rg.__all__ and inspect.isroutine(f := getattr(rg, name))
    }
    taken = {name for name, (_, f) in shared.items() if {"dim", "keepdim"} & {*f.parameters}}
    assert taken > {"cumsum", "cumprod", "nanmean", "nansum", "nanquantile", "sum", "softmax"}
    for name in taken:
        method, f = shared[name]
        assert {"dim", "keepdim"} & {*f.parameters} <= {*method.parameters}, name


def test_sums_along_dim():
    x = np.array([[1.0, np.nan], [3.0, 4.0]])
    for name in ("cumsum", "cumprod", "nansum", "nanmean"):
        expected = getattr(np, name)(x, axis=0)
        found = getattr(rg.tensor(x), name)(dim=0), getattr(rg, name)(x, dim=0)
        for y in (*found, getattr(rg.tensor(x), name)(axis=0)):
            np.testing.assert_array_equal(y.numpy(), expected)
    assert rg.nansum(x, dim=1, keepdim=True).shape == (2, 1)
    np.testing.assert_allclose(rg.nanquantile(x, 0.5, dim=1).numpy(), [1.0, 3.5])
    with pytest.raises(rg.OptionError, match="two names"):
        rg.nanmean(x, axis=0, dim=1)


def test_repeat_is_pytorchs_where_it_cannot_be_numpys() -> None:
    x, v = np.arange(24).reshape(2, 3, 4), np.arange(3)
    for array, counts in ((x, (1, 2, 1)), (x, (2, 1, 1, 3)), (v, (2, 1)), (v, (3, 2, 1))):
        found = rg.asarray(array).repeat(*counts)
        assert found.tolist() == np.tile(array, counts).tolist()
    assert rg.asarray(v).repeat(2).tolist() == [0, 0, 1, 1, 2, 2]
    assert rg.asarray(x).repeat(2, axis=1).shape == (2, 6, 4)
    for array, counts in ((x, (2, 1)), (x, (2, -1)), (v, (2, 0)), (x, (2, 5))):
        with pytest.raises(rg.OptionError, match="means two things"):
            rg.asarray(array).repeat(*counts)
    with pytest.raises(rg.OptionError, match="means two things"):
        rg.asarray(x).repeat(1, 2, 1, axis=0)
