"""Text that LLVM is quick to compile gives the bits of the text that is quick to run."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from retrograd.ir import DType, Graph, float16, float32, float64, spec
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.runtime.executable import Executable
from tests.runtime.executors.test_op_by_op import bits

Array = np.ndarray[Any, Any]
OF_FLOATS = [name for name, op in ELEMENTWISE.items() if "float" in op.kinds and name != "select"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e30, -1e30]


def values(dtype: DType, seed: int) -> Array:
    """Numbers of all sizes, whole ones among them; the number of them is no multiple of lanes."""
    rng = np.random.default_rng(seed)
    wide = rng.normal(size=150) * 10.0 ** rng.integers(-6, 7, 150)
    huge = rng.normal(size=40) * 10.0 ** rng.uniform(7, 300, 40)
    parts = [wide, rng.uniform(-3, 12, 200), rng.integers(-30, 200, 60), rng.uniform(0, 1, 60)]
    with np.errstate(all="ignore"):
        found = np.concatenate([*parts, huge if dtype is float64 else huge**0.1, SPECIAL])
        return rng.permutation(found).astype(dtype.dtype)


def both(name: str, arrays: list[Array], dtype: DType) -> tuple[Array, Array]:
    """The op as brief text, and as the full one."""
    inputs = [input_node(spec(x.shape, dtype)) for x in arrays]
    graph = Graph(inputs, [ELEMENTWISE[name](*inputs)])
    brief, full = Executable(graph, light=True, narrow=True), Executable(graph)
    return brief(arrays)[0], full(arrays)[0]


@pytest.mark.parametrize("dtype", [float32, float64, float16], ids=str)
@pytest.mark.parametrize("name", OF_FLOATS)
@pytest.mark.sample(26)
def test_bits_of_full_text(name: str, dtype: DType) -> None:
    count = len(ELEMENTWISE[name].derivatives)
    arrays = [values(dtype, seed) for seed in range(count)]
    if count < 3:  # all pairs of what is special
        with np.errstate(over="ignore"):
            pairs = np.array(list(product(SPECIAL, repeat=count))).astype(dtype.dtype)
        for array, column in zip(arrays, pairs.T, strict=True):
            array[: column.size] = column
    brief, full = both(name, arrays, dtype)
    np.testing.assert_array_equal(bits(brief), bits(full))


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_every_size(name: str, dtype: DType) -> None:
    """Each exponent of the dtype, and what lies closest to a multiple of pi/2."""
    limits = np.finfo(dtype.dtype)
    exponents = np.arange(limits.minexp, limits.maxexp)
    fractions = np.random.default_rng(0).uniform(1, 2, (8, exponents.size))
    x = np.ldexp(fractions, exponents).ravel()
    # Muller et al., Handbook of Floating-Point Arithmetic: 6381956970095103 * 2^797.
    closest = [float(6381956970095103) * 2.0**797, float(16367173) * 2.0**72, 2.0**1023, 3.4e38]
    with np.errstate(over="ignore"):
        x = np.concatenate([x, -x, [v for v in closest if v < limits.max]]).astype(dtype.dtype)
    brief, full = both(name, [x], dtype)
    np.testing.assert_array_equal(bits(brief), bits(full))
    exact = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(brief, exact, rtol=8 * limits.eps)
