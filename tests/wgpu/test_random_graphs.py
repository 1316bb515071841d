"""Random graphs on the GPU, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd.runtime.executors.reference import ReferenceProgram
from tests.random_graphs import random_arrays, random_graph
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(800, 816))
def test_all_dtypes_and_special_values(seed: int) -> None:
    """Movement, comparisons, integers, halves, infinities: no bit depends on the backend. Numbers
    too small to be normal may be zero there."""
    from retrograd.wgpu.executable import WgpuProgram

    graph = random_graph(seed, symbolic=False)
    arrays = random_arrays(graph, seed)
    with np.errstate(all="ignore"):
        expected = ReferenceProgram(graph)(arrays)
    for y, right in zip(WgpuProgram(graph)(arrays), expected, strict=True):
        assert y.dtype == right.dtype
        if right.dtype.kind in "fV" and right.dtype.itemsize == 2:
            y, right = y.astype(np.float32), right.astype(np.float32)
        np.testing.assert_allclose(y, right, rtol=2e-6, atol=1e-7)
