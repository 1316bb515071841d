"""Products as stacks of matrices: what the words say, read in memory, is the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.emit.stacked_product import LIMIT, Matrix, StackedProduct, stacked
from retrograd.passes import prepared
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.loop_nest import GemmNest
from retrograd.schedule.planning.device_plan import DevicePlan

Array = np.ndarray[Any, Any]


def nest_and_buffers(f: Callable[..., Any], *arrays: Array) -> tuple[GemmNest, dict[Buffer, Array]]:
    """The product of a function, and the arrays that are its inputs."""
    plan = DevicePlan(prepared(rg.trace(f, *arrays), True), 256)
    (nest,) = [n for k in plan.kernels for n in k.nests if isinstance(n, GemmNest)]
    return nest, dict(zip(plan.inputs, [a.reshape(-1) for a in arrays], strict=True))


def matrix(x: Matrix, flat: Array, i: int, rows: int, columns: int) -> Array:
    """Matrix number i, by its words alone."""
    shape = (columns, rows) if x.transposed else (rows, columns)
    at = x.offset + i * x.step + np.arange(shape[0])[:, None] * x.leading + np.arange(shape[1])
    return flat[at].T if x.transposed else flat[at]


def computed(nest: GemmNest, memory: dict[Buffer, Array]) -> tuple[Array, int]:
    """What the stacks of a nest write, and how many there are."""
    found = stacked(nest, {})
    out = np.full(int(nest.output.type.size), np.nan)
    for p in found:
        for i in range(p.count):
            a = matrix(p.a, memory[p.a.buffer], i, p.m, p.k)
            b = matrix(p.b, memory[p.b.buffer], i, p.k, p.n)
            at = p.y.offset + i * p.y.step
            out[at : at + p.m * p.n] = (a @ b).reshape(-1)
    return out, len(found)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    "one": (lambda a, b: a @ b, ((130, 128), (128, 90)), 1),
    "transposed": (lambda a, b: a.mT @ b.mT, ((128, 130), (90, 128)), 1),
    "a stack": (lambda a, b: a @ b, ((7, 130, 128), (7, 128, 90)), 1),
    "of a stack of stacks one": (lambda a, b: a @ b, ((2, 3, 130, 128), (2, 3, 128, 90)), 1),
    "the same for all": (lambda a, b: a @ b, ((6, 130, 128), (1, 128, 90)), 1),
    "heads": (lambda a, b: rg.einsum("nhd,mhd->hnm", a, b), ((130, 2, 128), (90, 2, 128)), 1),
    "a part": (lambda a, b: a[1:, 2:130] @ b, ((131, 140), (128, 90)), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_words_say_what_is_computed(name: str) -> None:
    f, shapes, stacks = CASES[name]
    arrays = [numbers(*s) for s in shapes]
    nest, memory = nest_and_buffers(f, *arrays)
    assert all(b in memory for b in nest.buffers[:2])  # none is put into another order before
    found, count = computed(nest, memory)
    expected = f(*map(rg.tensor, arrays)).numpy()
    assert count == stacks
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-12, atol=1e-12)


def made(**words: Any) -> StackedProduct:
    buffer: Any = None
    a, b = Matrix(buffer, 0, 4, False, 0), Matrix(buffer, 0, 5, False, 0)
    given: dict[str, Any] = {"count": 1, "m": 3, "n": 5, "k": 4, "a": a, "b": b, "y": b} | words
    return StackedProduct(rg.float32, **given)


def test_what_the_library_does_not_know() -> None:
    """Rows that overlap, sizes that are no `int` of C, and none."""
    buffer: Any = None
    assert made().is_plain
    assert not made(a=Matrix(buffer, 0, 3, False, 0)).is_plain
    assert made(a=Matrix(buffer, 0, 3, True, 0)).is_plain  # of columns there are three
    assert not made(k=0).is_plain
    assert not made(m=LIMIT).is_plain
    assert not made(b=Matrix(buffer, 0, LIMIT, False, 0)).is_plain


def test_sliding_windows_are_not_stacks() -> None:
    x, w = numbers(4, 8, 60), numbers(32, 8, 5)
    plan = DevicePlan(prepared(rg.trace(rg.nn.functional.conv1d, x, w), True), 256)
    nests = [n for k in plan.kernels for n in k.nests if isinstance(n, GemmNest)]
    for nest in nests:
        if nest.windows or nest.spread:
            assert stacked(nest, {}) == ()
    assert nests
