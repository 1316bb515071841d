"""Loops, branches and random samples."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.verify.records import RECORDS

pytest.importorskip("jax", reason="the extra xla is not installed")
from retrograd.xla.executable import XlaProgram


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "normal32", "cauchy", "geometric", "exponential"])
def test_samples_have_the_bits_of_all_backends(law: str) -> None:
    for sample in RECORDS["draw"].samples():
        if sample.op.law != law:  # type: ignore[attr-defined]
            continue
        nodes = sample.nodes()
        graph = Graph(nodes, [sample.op(*nodes)])
        (expected,) = ReferenceProgram(graph)(sample.inputs)
        (found,) = XlaProgram(graph)(sample.inputs)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.slow
def test_an_index_out_of_range_in_a_loop() -> None:
    table = rg.tensor([1.0, 2.0, 3.0])

    def f(steps: rg.Tensor) -> rg.Tensor:
        total, _ = rg.scan(lambda c, i: (c + table[i], c), rg.tensor(0.0), steps)
        return total

    with rg.backend("xla"):
        assert rg.jit(f)(rg.tensor([0, 1, -1])).item() == 6.0
        with pytest.raises(rg.IndexRangeError, match="the index 3 on axis 0 of size 3"):
            rg.jit(f)(rg.tensor([0, 3, 9]))


@pytest.mark.slow
def test_a_loop_that_does_not_end() -> None:
    loop = rg.jit(lambda x: rg.while_loop(lambda s: s > 0, lambda s: s, x, max_steps=5))
    with rg.backend("xla"):
        assert loop(rg.tensor(-1.0)).item() == -1.0
        with pytest.raises(rg.LoopLimitError, match="after 5 steps"):
            loop(rg.tensor(1.0))


@pytest.mark.slow
def test_the_gradient_of_a_loop_of_unknown_length() -> None:
    def f(x: rg.Tensor) -> rg.Tensor:
        return rg.while_loop(lambda s: s.sum() < 100, lambda s: s * s, x).sum()

    x = rg.tensor(np.array([2.0, 3.0]))
    with rg.backend("xla"):
        found = rg.jit(rg.grad(f))(x).numpy()
    np.testing.assert_allclose(found, [8 * 2.0**7, 8 * 3.0**7], rtol=1e-14)
