"""Overlap-add as a rearrangement, as a sum of places, or as a scatter."""

import itertools

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.windows import Fold
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.lowering.overlap_add import unrolls
from retrograd.runtime.executors.reference import ReferenceProgram


def overlap_added(x, shape, strides, dilations):
    """By brute force."""
    rank = len(shape)
    lead = x.shape[: x.ndim - 2 * rank]
    outs, sizes = x.shape[len(lead) : len(lead) + rank], x.shape[len(lead) + rank :]
    y = np.zeros((*lead, *shape), x.dtype)
    for o in itertools.product(*map(range, outs)):
        for k in itertools.product(*map(range, sizes)):
            at = [i * s + j * d for i, s, j, d in zip(o, strides, k, dilations, strict=True)]
            y[(..., *at)] += x[(..., *o, *k)]
    return y


# shape, number of windows, their size, strides, dilations; whether there are sums, and a scatter
CASES = {
    "tiles": ((6, 4), (2, 2), (3, 2), (3, 2), (1, 1), False, False),
    "tiles with rests": ((8, 9), (2, 2), (3, 2), (4, 4), (1, 2), False, False),
    "overlapping": ((6,), (4,), (3,), (1,), (1,), True, False),
    "every second": ((11, 7), (5, 5), (3, 2), (2, 1), (1, 2), True, False),
    "a rest that no window reaches": ((12,), (3,), (4,), (3,), (1,), True, False),
    "dilated": ((12,), (3,), (3,), (2,), (3,), True, False),
    "large": ((40,), (11,), (30,), (1,), (1,), False, True),
    "far apart": ((19,), (3,), (3,), (5,), (4,), False, True),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_of_windows(name):
    shape, outs, sizes, strides, dilations, sums, scatters = CASES[name]
    x = np.random.default_rng(0).integers(-9, 9, (2, *outs, *sizes)).astype(np.float64)
    node = input_node(spec(x.shape, "float64"))
    graph = legalize(Graph([node], [Fold(shape, strides, dilations)(node)]))
    ops = {n.op for n in graph.body}
    assert "fold" not in ops
    assert ("scatter_add" in ops) is scatters
    assert ("add" in ops and not scatters) is sums
    (found,) = ReferenceProgram(graph)([x])
    np.testing.assert_array_equal(found, overlap_added(x, shape, strides, dilations))


def test_named_sizes_are_scattered():
    n = Dim("N")
    node = input_node(spec((n, 30), "float64"))
    graph = legalize(Graph([node], [Fold((n + 29,), (1,), (1,))(node)]))
    for size in (1, 4):
        x = np.random.default_rng(size).normal(size=(size, 30))
        (found,) = ReferenceProgram(graph)([x])
        np.testing.assert_allclose(found, overlap_added(x, (size + 29,), (1,), (1,)), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_added_up_in_single(dtype):
    node = input_node(spec((2048, 3), dtype))
    graph = legalize(Graph([node], [Fold((2050,), (1,), (1,))(node)]))
    assert {n.dtype.name for n in graph.body if n.op == "add"} == {"float32"}


def test_what_is_unrolled():
    assert unrolls((5, 5), (1, 1))
    assert not unrolls((26,), (1,))
    assert not unrolls((3,), (4,))  # most of the result is no sum at all
    assert not unrolls((Dim("K"),), (1,))
