"""Random graphs with their gradients on XLA, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.autodiff import gradient
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.random_graphs import random_arrays, random_graph
from tests.smooth_graphs import smooth_arrays, smooth_graph

pytest.importorskip("jax", reason="the extra xla is not installed")


@pytest.mark.parametrize("seed", range(700, 712))
@pytest.mark.sample(2)
def test_values_and_gradients(seed: int) -> None:
    from retrograd.xla.executable import XlaProgram

    graph, arrays = smooth_graph(seed), smooth_arrays(smooth_graph(seed), seed)
    for g in (graph, gradient(graph.with_outputs(graph.outputs[:1]))):
        expected, found = ReferenceProgram(g)(arrays), XlaProgram(g)(arrays)
        for y, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(y, right, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(700, 716))
def test_all_dtypes_and_special_values(seed: int) -> None:
    """Movement, comparisons, integers, halves, infinities: no bit depends on the backend. Numbers
    too small to be normal are zero there."""
    from retrograd.xla.executable import XlaProgram

    graph = random_graph(seed, symbolic=False)
    arrays = random_arrays(graph, seed)
    with np.errstate(all="ignore"):
        expected = ReferenceProgram(graph)(arrays)
    for y, right in zip(XlaProgram(graph)(arrays), expected, strict=True):
        assert y.dtype == right.dtype
        if right.dtype.kind in "fV" and right.dtype.itemsize == 2:
            y, right = y.astype(np.float32), right.astype(np.float32)
        np.testing.assert_allclose(y, right, rtol=2e-6, atol=1e-7)
