"""Maps: how one is divided where a shader may not bind all that it needs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.schedule.loop_nest import MapNest
from retrograd.wgpu.emit.maps import buffers_of, split
from retrograd.wgpu.plan import ShaderPlan
from tests.wgpu.gpu import device_with, needs_gpu


def nest_of(f: Any, count: int) -> MapNest:
    """The nest of a function of so many vectors."""
    graph = rg.trace(f, *[np.ones(7, np.float32)] * count)
    (kernel,) = ShaderPlan(graph).kernels
    (nest,) = kernel.nests
    assert isinstance(nest, MapNest)
    return nest


def pairs(*xs: Any) -> Any:
    return [a * b for a, b in itertools.pairwise(xs)]


@pytest.mark.parametrize("most", [3, 4, 8, 30])
def test_parts_need_no_more_than_they_may(most: int) -> None:
    nest = nest_of(pairs, 9)
    parts = split(nest, most)
    touched = [set().union(*(buffers_of(p, s) for s in p.stores)) for p in parts]
    assert all(len(buffers) <= most for buffers in touched)
    stores = [s for p in parts for s in p.stores]
    assert len(stores) == len(nest.stores)
    assert {id(s) for s in stores} == {id(s) for s in nest.stores}
    assert len(parts) == {3: 8, 4: 8, 8: 3, 30: 1}[most]


def test_what_a_store_reads_is_found() -> None:
    nest = nest_of(lambda x, y: [x + 1, x * y], 2)
    counts = sorted(len(buffers_of(nest, s)) for s in nest.stores)
    assert counts == [2, 3]  # the results, and one or two operands


@needs_gpu
@pytest.mark.parametrize("shape", [(), (0, 5), (1,), (7, 1, 3, 2, 5, 2), (70_001, 65)])
@pytest.mark.sample(2)
def test_points_in_all_dimensions(shape: tuple[int, ...]) -> None:
    """Also more than one dimension of a grid has workgroups for."""
    r = np.random.default_rng(0)
    x, y = (r.standard_normal(shape).astype(np.float32) for _ in range(2))
    order = tuple(range(len(shape)))[::-1]
    with rg.backend("wgpu"):
        found = rg.jit(lambda x, y: (rg.permute(x, order) * 2, x - y))(x, y)
    np.testing.assert_array_equal(found[0].numpy(), x.transpose(order) * 2)
    np.testing.assert_array_equal(found[1].numpy(), x - y)


@needs_gpu
@pytest.mark.parametrize("most", [4, 5, 7])
@pytest.mark.sample(1)
def test_divided_maps_compute_the_same(most: int) -> None:
    xs = [np.random.default_rng(k).standard_normal(33).astype(np.float32) for k in range(9)]
    with rg.backend("wgpu"), device_with(storage_buffers=most):
        found = rg.jit(pairs)(*xs)
    for y, right in zip(found, pairs(*xs), strict=True):
        np.testing.assert_array_equal(y.numpy(), right)
