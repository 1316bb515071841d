"""A graph as a function that JAX compiles."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.xla.graph_function import to_jax, x64

jax = pytest.importorskip("jax", reason="the extra xla is not installed")


@pytest.mark.slow
def test_a_gradient_is_one_function_of_jax() -> None:
    g = rg.trace(
        lambda x, i: rg.sin(x[i]).sum(), rg.spec((3,), rg.float64), rg.spec((2,), rg.int64)
    )
    f = to_jax(g.gradient(wrt="x"))
    x, i = np.array([0.1, 0.2, 0.3]), np.array([2, 2])
    with x64():
        *outputs, failure = jax.jit(f)(x, i)
        f.check(np.asarray(failure))
        np.testing.assert_allclose(np.asarray(outputs[0]), [0, 0, 2 * np.cos(0.3)], rtol=1e-14)
        *_, failure = jax.jit(f)(x, np.array([0, 7]))
    with pytest.raises(rg.IndexRangeError, match="the index 7 on axis 0 of size 3"):
        f.check(np.asarray(failure))


@pytest.mark.slow
def test_an_op_without_a_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.xla.lowering.rules import RULES

    monkeypatch.delitem(RULES, "sinh")
    with rg.backend("xla"), pytest.raises(rg.BackendError, match=r"no sinh: sinh\(f32\[1\]\)"):
        rg.sinh(rg.tensor([1.0])).numpy()
