"""Repeated calls: recognised without a look at the signature, and never mistaken for others."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.runtime import fast_call
from retrograd.runtime.fast_call import MISSED

in_c = pytest.mark.skipif(
    not fast_call.serves(LazyTensor.handle_class), reason="no C compiler was found at installation"
)


@in_c
def test_the_first_call_is_remembered():
    f = rg.jit(lambda x: x * 2)
    assert f(np.ones(2)).tolist() == [2, 2]
    assert len(f._sites) == 1


@in_c
def test_scalars_of_numpy():
    f = rg.jit(lambda x, a: x * a)
    x = np.ones(3, np.float32)
    values = [1, 0, 1.5, -2, 100]
    for name in ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"):
        for value in values:
            a = np.dtype(name).type(np.array(value).astype(name))
            want = f(x, np.array(a))
            for _ in range(2):
                got = f(x, a)
                assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())
        assert f._sites[0].serve((x, a), {}, None).tolist() == want.tolist()


@in_c
def test_leaves_that_are_part_of_the_signature():
    f = rg.jit(lambda kind, flag, x: x + 1 if flag else x)
    f("a", True, 1.0)
    (site,) = f._sites
    assert site.serve(("a", True, 2.0), {}, None).item() == 3
    for other in (("b", True, 1.0), ("a", False, 1.0), ("a", 1, 1.0), ("a", True, 1)):
        assert site.serve(other, {}, None) is MISSED


class Other:
    """Has some of what a tensor has."""

    shape, dtype = (3,), rg.float32


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.filterwarnings("ignore::retrograd.RecompilationWarning")  # it does so on purpose
def test_calls_that_differ_are_told_apart(first):
    """The same function with everything that may vary, in turn, after calls that went well."""

    def as_tensors(args, kwargs):
        turned = lambda x: rg.asarray(x) if isinstance(x, np.ndarray | np.generic) else x
        given = pytree.map(turned, args)
        return given if not kwargs else (given[0], kwargs.get("a", 1.0), kwargs.get("flag", True))

    def f(x, a=1.0, flag=True, p=None):
        y = x * a if flag else x - a
        return y if p is None else (y, p["u"] + p["v"])

    g = rg.jit(f)
    x32, x64 = np.ones(3, np.float32), np.ones(3)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((rg.tensor(x32),), {}), ((x32,), {}), ((x64,), {}), ((rg.tensor(x64), 2.0), {}),
        ((x32, 2), {}), ((x32, 2.0, False), {}), ((x32,), {"a": 2.0}), ((x32,), {"flag": False}),
        ((np.ones((3, 1), np.float32),), {}), ((np.ones((), np.float32),), {}),
        ((x32, 1.0, True, {"u": x32, "v": x64}), {}), ((x32, 1.0, True, {"v": x32, "u": x32}), {}),
        ((x32, rg.tensor(2.0)), {}), ((x32, np.float32(2)), {}), ((x32, np.float64(2)), {}),
        ((np.ones((6,), np.float32)[::2],), {}), ((np.float32(1),), {}), ((x32, True), {}),
        ((np.ones(3, np.int32),), {}), ((np.ones(0, np.float32),), {}), ((x32, -0.0), {}),
    ]  # fmt: skip
    order = calls * 3 if first else [c for c in calls for _ in range(3)]
    for args, kwargs in order:
        got, want = pytree.flatten(g(*args, **kwargs)), pytree.flatten(f(*as_tensors(args, kwargs)))
        assert got[1] == want[1]
        for y, e in zip(got[0], want[0], strict=True):
            assert (y.dtype, y.shape) == (e.dtype, e.shape)
            np.testing.assert_array_equal(y.numpy(), e.numpy())
    assert g.cache_stats()["calls"] == len(order)


def test_what_only_looks_like_an_argument_is_refused_as_before():
    g = rg.jit(lambda x: x * 2)
    for _ in range(2):
        g(rg.ones(3))
        with pytest.raises(rg.DTypeError):
            g(Other())
        with pytest.raises(rg.DTypeError):
            g(np.array(["a", "b", "c"]))


def test_numbers_change_without_a_compilation_and_do_not_fit_as_before():
    g = rg.jit(lambda x, n: x * n)
    x = np.ones(2)
    for n in (1, 2, -3, 2**40):
        assert g(x, n).tolist() == [n, n]
    assert g.cache_stats()["compilations"] == 1
    assert g(x, 2**70).tolist() == [2.0**70] * 2  # what no int64 holds is part of the signature


def test_shapes_that_come_in_turn():
    g = rg.jit(lambda p, x, y: (p["w"] * x.sum() + y.sum()).sum(), donate=())
    p = {"w": rg.ones(4)}
    for _ in range(3):
        for n in (1, 5, 3, 5, 2):
            for m in (1, 2):
                assert g(p, np.ones(n, np.float32), np.ones(m, np.float32)).item() == 4 * (n + m)
    # x of 1, 5, a name; y of 1, 2.
    assert g.cache_stats() == {"calls": 30, "compilations": 6, "signatures": 6}


def test_named_sizes_that_come_in_turn():
    g = rg.jit(lambda x, y: (x * y).sum(), shapes={"x": "N 3", "y": "N 3"})
    for n in (4, 2, 4, 0, 7, 2, 4, 0, 1):
        assert g(np.ones((n, 3)), np.ones((n, 3))).item() == 3 * n
    assert g.cache_stats()["compilations"] == 1
    for wrong in (np.ones((4, 3)), np.ones((2, 2))):
        with pytest.raises(rg.ShapeError):
            g(np.ones((2, 3)), wrong)


def test_modes_are_looked_at_in_every_call():
    w = rg.tensor([1.0, 2.0])
    g = rg.jit(lambda x: x * 2)
    for _ in range(2):
        g(w)
    with rg.backend("reference"):
        assert g(w).tolist() == [2, 4]
    assert rg.grad(lambda x: g(x).sum())(w).tolist() == [2, 2]
    assert rg.jit(lambda x: g(x) + 1)(w).tolist() == [3, 5]
    w.requires_grad_()
    y = g(w)
    assert y.requires_grad
    y.sum().backward()
    assert w.grad.tolist() == [2, 2]
    w.requires_grad_(False)
    assert not g(w).requires_grad
    assert g.cache_stats()["calls"] >= 3


def test_a_tensor_that_changes_what_it_stands_for():
    p = rg.tensor([1.0], requires_grad=True)
    g = rg.jit(lambda x: x * 10)
    optimizer = rg.optim.SGD([p], lr=0.5)
    for k in range(4):
        with rg.no_grad():
            assert g(p).item() == pytest.approx(10 - 5 * k)
        p.requires_grad_(False)
        assert g(p).item() == pytest.approx(10 - 5 * k)
        p.requires_grad_()
        p.grad = rg.tensor([1.0])
        optimizer.step()


def test_results_are_tensors_like_any_other():
    g = rg.jit(lambda x: {"y": x * 2, "z": [x + 1]})
    for _ in range(2):
        out = g(rg.tensor([1.0, 2.0]))
        y, z = out["y"], out["z"][0]
        assert type(y) is rg.Tensor
        assert (y + z).tolist() == [4, 7]
        assert y.grad is None
        assert y.is_leaf
        assert not y.requires_grad
        assert (y * y).shape == (2,)
        z.requires_grad_()
        (z * z).sum().backward()
        assert z.grad.tolist() == [4, 6]
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = y.nothing  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            y.nothing = 1  # type: ignore[attr-defined]


def test_new_tensors_in_every_call():
    g = rg.jit(lambda w, x: w * x.sum())
    w = rg.ones(2)
    for k in range(4):
        x = rg.tensor(np.full(3, k, np.float32))
        assert g(w, x).tolist() == [3 * k] * 2
        assert g(w, x + 1).tolist() == [3 * k + 3] * 2  # not computed yet


def test_modules_whose_other_attributes_change():
    class Scaled(rg.nn.Module):
        def __init__(self):
            self.w = rg.tensor([1.0, 2.0])
            self.times = 2

        def forward(self, x):
            return self.w * self.times * x

    m = Scaled()
    g = rg.jit(lambda m, x: m(x))
    for times in (2, 3, 2, 3):
        m.times = times
        assert g(m, 1.0).tolist() == [times, 2 * times]
    m.w = rg.tensor([5.0, 6.0])
    assert g(m, 1.0).tolist() == [15, 18]


def test_many_leaves():
    g = rg.jit(lambda xs: [x + 1 for x in xs][:2])
    xs = [rg.tensor(float(k)) for k in range(1200)]
    for _ in range(3):
        assert [y.item() for y in g(xs)] == [1, 2]


def test_threads():
    g = rg.jit(lambda p, x: {"w": p["w"] + x}, donate=0)
    failures = []

    def work(n):
        p = {"w": rg.zeros(n)}
        for _ in range(300):
            p = g(p, 1.0)
        if p["w"].tolist() != [300.0] * n:
            failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 3, 4, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
