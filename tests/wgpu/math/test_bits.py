"""Functions that are written in WGSL itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.ops import elementwise as el
from retrograd.wgpu.math.bits import FUNCTIONS, require
from tests.wgpu.gpu import needs_gpu, run


class Known:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def declare(self, text: str) -> None:
        self.texts.append(text)


def test_what_a_function_calls_comes_before_it() -> None:
    known = Known()
    assert require(known, "far_rest_f32") == "far_rest_f32"
    assert known.texts == [FUNCTIONS[n] for n in ("product_u32", "turned_f32", "far_rest_f32")]


@needs_gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype: Any) -> None:
    """Of numbers of all sizes, subnormal ones too."""
    r, info = np.random.default_rng(0), np.finfo(dtype)
    sizes = np.exp2(r.uniform(info.minexp - info.nmant, info.maxexp - 1, (2, 2000)))
    a, b = (sizes * r.choice([-1, 1], sizes.shape)).astype(dtype)
    with np.errstate(over="ignore"):
        a[:500] = b[:500] * r.uniform(-9, 9, 500).astype(dtype)
    a[500], b[500] = 1.0, info.smallest_subnormal * 713
    ok = np.isfinite(a) & (b != 0)
    a, b = a[ok], b[ok]
    np.testing.assert_array_equal(run(el.mod, a, b), np.mod(a, b))
