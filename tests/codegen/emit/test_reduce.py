"""Sums of floats: all tiers take them up in the order of `ops/numerics/summation.py`, to the bit,
and so to the bound of sums in pairs. Lengths are those around blocks, groups and batches."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, DType, Graph, Node, float32, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, sums_along
from retrograd.ops.numerics.summation import PRODUCTS, SUMS, SummationOrder, in_blocks
from retrograd.ops.reduce import ReduceSum
from retrograd.passes.lowering import strided_views
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.schedule.loop_nest import LANES
from retrograd.tuning import TUNING
from tests.codegen.emit.fused import fused
from tests.codegen.emit.summation_order import long, numbers, product_of, same
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_checks import Threaded, gather_threads


def lengths(order: SummationOrder) -> list[int]:
    block, group = order.block, order.group
    near = [1, block - 1, block, block + 1, 3 * block + 5, group - 1, group, group + 1]
    return [*near, 2 * group + block, 3 * group + 7]


def known(order: SummationOrder) -> list[int]:
    """Those that a program is made for."""
    return [order.block - 1, order.block + 1, order.group - 1, 2 * order.group + 3]


LAYOUTS = list(itertools.product((False, True), repeat=2))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings are not found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def chain(terms: Array, order: SummationOrder = SUMS) -> Array:
    """The definition: along the first axis."""

    def part(first: int, last: int) -> Array:
        found: Array = functools.reduce(np.add, terms[first:last])
        return found

    found: Array = in_blocks(order, len(terms), part)
    return found


def tree(lanes: Array) -> Array:
    """Sixteen partial sums as one."""
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def row(x: Array) -> Array:
    """The definition of a sum along rows."""
    filled = np.full((*x.shape[:-1], -(-x.shape[-1] // LANES) * LANES), -0.0, x.dtype)
    filled[..., : x.shape[-1]] = x
    blocks = filled.reshape(*x.shape[:-1], -1, LANES)
    return tree(np.moveaxis(chain(np.moveaxis(blocks, -2, 0)), -1, 0))


def compiled(
    make: Callable[[list[Node]], list[Node]], shapes: Sequence[Sequence[Any]], dtype: DType
) -> list[Any]:
    """Operations on arrays of these shapes, compiled in all ways."""
    inputs = [input_node(spec(tuple(s), dtype)) for s in shapes]
    graph = Graph(inputs, make(inputs))
    light = [Executable(graph, light=True, narrow=narrow) for narrow in (False, True)]
    return [GuardedProgram(graph), *light]


# -- the order ------------------------------------------------------------------------------------
def sums(v: list[Node]) -> list[Node]:
    return [ReduceSum((axis,))(v[0]) for axis in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_columns_and_rows(dtype: DType) -> None:
    named = compiled(sums, [(Dim("n"), Dim("m"))], dtype)
    for n in lengths(SUMS):
        for x in (
            numbers((n, 5), dtype),
            numbers((3, max(LANES * min(n, SUMS.group) - 5, 1)), dtype),
        ):
            if 1 in x.shape:  # of one column along the one of it
                continue
            wanted = [chain(x), row(x)]
            own = compiled(sums, [x.shape], dtype) if n in known(SUMS) else []
            for p in (*named, *own):
                for found, y in zip(p([x]), wanted, strict=True):
                    same(found, y, x.shape)


@pytest.mark.parametrize("width", [64, 100, 300])
def test_columns_side_by_side_are_added_up_in_the_same_order(width: int) -> None:
    """Several vectors of a row at once, and what is left of them, are sums of their own."""
    x = numbers((4200, width), float32)
    for p in compiled(lambda v: [ReduceSum((0,))(v[0] * v[0])], [x.shape], float32):
        same(p([x])[0], chain(x * x), x.shape)


@pytest.mark.slow
@pytest.mark.parametrize("n", long(SUMS))
def test_long_columns_and_rows(n: int) -> None:
    for x in (numbers((n, 2), float32), numbers((2, LANES * n - 5), float32)):
        wanted = [chain(x), row(x)]
        named = compiled(sums, [(Dim("n"), Dim("m"))], float32)
        for p in (*named, *compiled(sums, [x.shape], float32)):
            for found, y in zip(p([x]), wanted, strict=True):
                same(found, y, x.shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [
    (70, 3, 66), (4200, 2, 3), (66, 1, 1100), (2, 4100, 1, 17),
], ids=str)  # fmt: skip
@pytest.mark.sample(1)
def test_several_axes_are_taken_one_by_one(shape: tuple[int, ...]) -> None:
    """The terms of a loop are the sums of those inside; the lanes of a row are kept to the end."""
    x, rank = numbers(shape, float32), len(shape)
    some = [axes for k in range(rank) for axes in itertools.combinations(range(rank), k + 1)]
    expected = []
    for axes in some:
        kept = [i for i in range(rank) if i not in axes]
        many = [i for i in axes if shape[i] != 1]
        terms = x.transpose((*kept, *axes)).reshape(
            *[shape[i] for i in kept], *[shape[i] for i in many]
        )
        along = bool(many) and not any(shape[i] != 1 and i > many[-1] for i in kept)
        if along:
            steps = -(-shape[many[-1]] // LANES)
            filled = np.full((*terms.shape[:-1], steps * LANES), -0.0, x.dtype)
            filled[..., : terms.shape[-1]] = terms
            terms = np.moveaxis(filled.reshape(*terms.shape[:-1], steps, LANES), -1, 0)
        for _ in many:
            terms = chain(np.moveaxis(terms, -1, 0))
        expected.append(tree(terms) if along else terms)
    names = [n if n == 1 else Dim(f"n{i}") for i, n in enumerate(shape)]
    for sizes in (shape, names):
        for p in compiled(lambda v: [ReduceSum(axes)(v[0]) for axes in some], [sizes], float32):
            for found, wanted, axes in zip(p([x]), expected, some, strict=True):
                same(found, wanted, axes)


def test_what_is_fused_changes_no_bit() -> None:
    shape = 3 * SUMS.group + 5, 9
    x, y = numbers(shape, float32), numbers(shape, float32, 1)
    stored = np.asarray(rg.jit(lambda x, y: rg.sin(x) * y)(x, y))
    for axis in (0, 1, None):
        fused = np.asarray(rg.jit(lambda x, y, a=axis: rg.sum(rg.sin(x) * y, axis=a))(x, y))
        alone = rg.jit(lambda z, a=axis: rg.sum(z, axis=a))(stored)
        same(fused, np.asarray(alone), axis)
        same(fused, np.asarray(rg.sum(rg.asarray(stored), axis=axis)), axis)


def products_along(a: Array, b: Array) -> Array:
    """The definition: over all axes but the first of `a`, which are those of `b`. Product r of the
    last axis belongs to partial sum r mod LANES."""
    steps = -(-b.shape[-1] // LANES)
    blocks = []
    for x, neutral in ((a, -0.0), (np.broadcast_to(b, a.shape), 1.0)):
        filled = np.full((*x.shape[:-1], steps * LANES), neutral, x.dtype)
        filled[..., : x.shape[-1]] = x
        blocks.append(np.moveaxis(filled.reshape(*x.shape[:-1], steps, LANES), -2, 0))

    def part(first: int, last: int) -> Array:
        total = np.full(blocks[0].shape[1:], -0.0, a.dtype)
        for x, y in zip(blocks[0][first:last], blocks[1][first:last], strict=True):
            total = fused(x, y, total)
        return total

    partial = in_blocks(SUMS, steps, part)
    for _ in b.shape[:-1]:
        partial = chain(np.moveaxis(partial, -2, 0))
    return tree(np.moveaxis(partial, -1, 0))


def multiplied(v: list[Node]) -> list[Node]:
    """A product by operands in all layouts."""
    return [DotGeneral((1 - i % 2,), (i // 2,))(v[i % 2], v[2 + i // 2]) for i in range(4)]


@pytest.mark.parametrize("dtype", [float32, pytest.param(float64, marks=pytest.mark.slow)], ids=str)
@pytest.mark.slow
def test_products(dtype: DType) -> None:
    """By loops, and by either routine; of any layout."""
    m, k, n = map(Dim, "MKN")
    named = compiled(multiplied, [(m, k), (k, m), (k, n), (n, k)], dtype)
    for inner in lengths(PRODUCTS):
        for rows, columns in ((2, 3), (21, 50)):
            a, b = numbers((rows, inner), dtype), numbers((inner, columns), dtype, 1)
            given = [np.ascontiguousarray(x) for x in (a, a.T, b, b.T)]
            wanted = product_of(a, b)
            is_known = inner in known(PRODUCTS) and rows == 21
            own = compiled(multiplied, [x.shape for x in given], dtype) if is_known else []
            for p in (*named, *own):
                for layout, found in enumerate(p(given)):
                    same(found, wanted, (rows, inner, columns, layout))


@pytest.mark.parametrize(("shapes", "axes"), [
    (((3, 70, 5), (70, 5, 4)), (1, 2)), (((70, 3, 66), (70, 66, 2)), (0, 2)),
    (((2, 70, 66), (70, 66)), (1, 2)), (((70, 66), (70, 66)), (0, 1)),
    (((66, 65, 3), (66, 65)), (0, 1)), (((9, 3, 4), (9, 3, 2)), (0, 1)),
], ids=str)  # fmt: skip
def test_contractions_over_two_axes(shapes: Any, axes: tuple[int, int]) -> None:
    """One chain, in the order of the axes, but along rows, where each axis is one of its own."""
    a, b = numbers(shapes[0], float32), numbers(shapes[1], float32, 1)
    op = DotGeneral(axes, (0, 1))
    node = op(*[input_node(spec(s, float32)) for s in shapes])
    free = [i for i in range(a.ndim) if i not in axes]
    inner = math.prod(b.shape[:2])
    left = a.transpose((*free, *axes)).reshape(-1, inner)
    if sums_along(node):
        wanted = products_along(left.reshape(-1, *b.shape), b).reshape(node.shape)
    else:
        wanted = product_of(left, b.reshape(inner, -1)).reshape(node.shape)
    dims = {axes[0]: Dim("p"), axes[1]: Dim("q"), **{i: Dim(f"a{i}") for i in free}}
    names = [dims[i] for i in range(a.ndim)], [Dim("p"), Dim("q"), *map(Dim, "xyz"[: b.ndim - 2])]
    for sizes in (shapes, names):
        for p in compiled(lambda v: [op(*v)], sizes, float32):
            same(p([a, b])[0], wanted, sizes)


@pytest.mark.slow
def test_sums_that_groups_take_up_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over rows of an element, from where the block before left them: beyond a group of products,
    with totals that wait. Bits are those of the same kernels one after the other."""
    gather_threads()
    for name, value in (
        ("parallel_grain_ns", 0),
        ("group_rows", 2),
        ("row_split_bytes", 64),
        ("tile_bytes", 1 << 9),
    ):
        monkeypatch.setattr(TUNING, name, value)

    def loss(q: Any, k: Any, v: Any) -> Any:
        p = rg.softmax(q @ k.mT)
        return ((p @ v) ** 2).sum()

    block, group = PRODUCTS.block, PRODUCTS.group
    for queries in (block + 3, 5 * block, 2 * group + block + 3):
        for name in strided_views.LIMITS if queries > SUMS.group else ():
            monkeypatch.setattr(strided_views, name, 0)
        arrays = [numbers((2, n, 3), float32, n) for n in (queries, 6, 6)]
        graph = rg.trace(rg.grad(loss, argnums=(0, 1, 2)), *arrays)
        cut = [Threaded(graph, n) for n in (1, 2)]
        assert any(b.summing and b.tiles_per_element > 1 for b in cut[0].plan.tile_groups), queries
        with pytest.MonkeyPatch.context() as usual:
            usual.setattr(TUNING, "parallel_grain_ns", 1e18)
            wanted = GuardedProgram(graph)(arrays)
        for p in cut:
            for y, r in zip(p(arrays), wanted, strict=True):
                same(y, r, queries)
            p.check_guards()


@pytest.mark.parametrize("n", [1023, 1024, 1087, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_extremes_of_one_long_row(n: int, dtype: type) -> None:
    """Several vectors side by side, the last of them under a mask; zeros have signs, NaN wins."""
    x: np.ndarray = (np.random.default_rng(n).normal(size=n) * 100).astype(dtype)
    f = rg.jit(lambda x: (rg.max(x), rg.min(x)))
    for place in (0, n // 2, n - 1):
        for value in (1000, -1000, np.nan) if x.dtype.kind == "f" else (1000, -1000):
            y = x.copy()
            y[place] = value
            for found, right in zip(f(y), (y.max(), y.min()), strict=True):
                np.testing.assert_array_equal(np.asarray(found), right)
    if x.dtype.kind == "f":
        zeros: np.ndarray = np.full(n, -0.0, dtype)
        zeros[n // 3] = 0.0
        most, least = (np.signbit(np.asarray(y)) for y in f(zeros))
        assert not most
        assert least
