"""Graphs of which the CPU runs a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, float32, spec
from retrograd.ops import elementwise as el
from retrograd.ops.leaf import input_node
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu


def solved(a: Any, b: Any) -> Any:
    x = rg.linalg.solve(a @ a.mT + 1, b * 2)
    return rg.exp(x).sum(), x * 2, b


def test_parts_take_turns() -> None:
    r = np.random.default_rng(0)
    a = (r.standard_normal((4, 4)) + 4 * np.eye(4)).astype(np.float32)
    b = r.standard_normal((4, 2)).astype(np.float32)
    with pytest.raises(rg.BackendError, match=r"fallback=True"), rg.backend("wgpu"):
        rg.jit(solved)(rg.tensor(a), rg.tensor(b))[0].item()
    with rg.backend("wgpu", fallback=True):
        total, twice, same = rg.jit(solved)(rg.tensor(a), rg.tensor(b))
    x = np.linalg.solve((a @ a.T + 1).astype(np.float64), 2.0 * b)
    np.testing.assert_allclose(total.item(), np.exp(x).sum(), rtol=1e-5)
    np.testing.assert_allclose(twice.numpy(), 2 * x, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(same.numpy(), b)


def test_a_part_alone_is_one_stage() -> None:
    from retrograd.wgpu.executable import WgpuProgram
    from retrograd.wgpu.fallback import StagedProgram

    x = input_node(spec((3, 3), float32))
    program = StagedProgram(Graph([x], [el.add(x, x), x]))
    assert [type(s.program) for s in program.stages] == [WgpuProgram]
    given = np.ones((3, 3), np.float32)
    twice, same = program([given])
    assert (twice == 2).all()
    assert same is not given


def test_the_name_of_the_backend() -> None:
    with rg.backend("wgpu+llvm"):
        assert rg.jit(lambda x: x + 1)(rg.ones((2,))).tolist() == [2.0, 2.0]
    with pytest.raises(rg.BackendError, match="no backend named 'wgpu\\+xla'"):
        rg.backend("wgpu+xla")
    with rg.backend("llvm", fallback=True):  # it has all operations
        assert rg.ones((2,)).sum().item() == 2
