"""Right matrices that products of a loop read in every step are packed before it: the bits are
those of products that pack them themselves."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float32, float64, spec
from retrograd.passes import optimize
from retrograd.passes.lowering import strided_views
from retrograd.runtime.executable import Executable
from retrograd.schedule.kernel import gemms
from retrograd.schedule.loop_nest import PackNest
from retrograd.schedule.planning import build, plan
from retrograd.schedule.planning.plan import KernelPlan
from tests.runtime.agreement import GuardedProgram

# Around the sizes of vectors, tiles and blocks; (m, k, n).
SIZES = [(1, 3, 17), (3, 17, 3), (9, 17, 49), (17, 33, 64), (20, 1100, 40), (5, 40, 700)]


@pytest.fixture(autouse=True)
def by_the_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product; and programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")
    for name in strided_views.LIMITS:
        monkeypatch.setattr(strided_views, name, 0)


def graph_of(m: Any, k: int, n: int, turned: tuple[bool, bool], dtype: Any, steps: Any = 3) -> Any:
    """`h <- tanh((h u) v) `, the matrices as they are or turned."""

    def looped(h: Any, u: Any, v: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            a, b = (x.T if t else x for x, t in zip((u, v), turned, strict=True))
            return rg.tanh((h @ a) @ b), h[:, :1]

        return rg.scan(step, h, length=steps)

    shapes = (m, k), (n, k) if turned[0] else (k, n), (k, n) if turned[1] else (n, k)
    return optimize(rg.trace(looped, *[spec(s, dtype) for s in shapes]))


def arrays_of(graph: Any, **sizes: int) -> list[Any]:
    r = np.random.default_rng(0)
    types = [x.type.bind(sizes) for x in graph.inputs]
    return [(r.normal(size=t.shape) / 4).astype(t.dtype.dtype) for t in types]


@pytest.mark.parametrize("turned", list(itertools.product((False, True), repeat=2)), ids=str)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.sample(2)
def test_the_bits_are_those_of_products_on_their_own(
    monkeypatch: pytest.MonkeyPatch, turned: tuple[bool, bool], dtype: Any
) -> None:
    for m, k, n in SIZES:
        graph = graph_of(m, k, n, turned, dtype)
        arrays = arrays_of(graph)
        found = GuardedProgram(graph)(arrays)
        named = Executable(graph_of(Dim("M"), k, n, turned, dtype))(arrays)
        with monkeypatch.context() as without:
            without.setattr(build, "packed_before", lambda loop, memory: [])
            expected = Executable(graph)(arrays)
        for a, b, c in zip(found, named, expected, strict=True):
            np.testing.assert_array_equal(a, c)
            np.testing.assert_array_equal(b, c)


def packs(graph: Any) -> int:
    plan = KernelPlan(graph)
    nests = [n for k in plan.every for n in k.nests if isinstance(n, PackNest)]
    packed = [g.packed for g in gemms(plan.every)]
    assert packed == [bool(nests)] * len(packed)
    return len(nests)


def test_what_is_packed() -> None:
    as_is = (False, False)
    assert packs(graph_of(9, 17, 49, as_is, float32)) == 2
    assert packs(graph_of(Dim("M"), 17, 49, as_is, float32, Dim("T"))) == 2
    assert packs(graph_of(9, 17, 49, as_is, float32, steps=1)) == 0

    def changing(h: Any, w: Any) -> Any:
        return rg.scan(lambda s, _: ((s[0] @ s[1], s[1] + 1.0), None), (h, w), length=4)[0]

    types = [spec((20, 32), float32), spec((32, 32), float32)]
    assert packs(optimize(rg.trace(changing, *types))) == 0

    def until(h: Any, w: Any) -> Any:
        return rg.while_loop(lambda h: h.sum() < 9.0, lambda h: h @ w @ w, h)

    assert packs(optimize(rg.trace(until, *types))) == 1


def test_a_loop_in_a_loop_packs_in_each_of_its_runs() -> None:
    def looped(h: Any, ws: Any) -> Any:
        inner = lambda w: lambda h, _: (rg.tanh(h @ w), None)
        return rg.scan(lambda h, w: (rg.scan(inner(w), h, length=3)[0], None), h, ws)[0]

    h, ws = (np.random.default_rng(k).normal(size=s) for k, s in enumerate([(20, 32), (4, 32, 32)]))
    expected = h
    for w in ws:
        for _ in range(3):
            expected = np.tanh(expected @ w)
    np.testing.assert_allclose(rg.jit(looped)(h, ws).numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("turned", [(False, True), (True, False)], ids=str)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.sample(2)
def test_products_one_after_the_other_pack_a_matrix_once(
    monkeypatch: pytest.MonkeyPatch, turned: tuple[bool, bool], dtype: Any
) -> None:
    """A loop of Python's: each matrix once, however many steps, with the same bits."""

    def unrolled(steps: int, h: Any, u: Any, v: Any) -> Any:
        a, b = (x.T if t else x for x, t in zip((u, v), turned, strict=True))
        for _ in range(steps):
            h = rg.tanh((h @ a) @ b)
        return h

    for m, k, n in SIZES:
        shapes = (m, k), (n, k) if turned[0] else (k, n), (k, n) if turned[1] else (n, k)
        for steps in (3, 5):
            f = functools.partial(unrolled, steps)
            graph = optimize(rg.trace(f, *[spec(s, dtype) for s in shapes]))
            nests = [n for kernel in KernelPlan(graph).every for n in kernel.nests]
            assert sum(isinstance(x, PackNest) for x in nests) == (2 if steps == 5 else 0)
        arrays = arrays_of(graph)
        found = GuardedProgram(graph)(arrays)
        with monkeypatch.context() as without:
            without.setattr(plan, "packed_once", lambda kernels, memory: kernels)
            expected = Executable(graph)(arrays)
        for a, c in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, c)
