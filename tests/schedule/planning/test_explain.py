"""Kernels as text: what was cut, what was fused and why, and what it takes."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.passes import optimize
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.explain import describe, facts
from retrograd.schedule.planning.plan import KernelPlan
from tests.schedule.tiling.attention import attention, given


def test_explain_says_what_is_cut_and_why_it_is_computed_again():
    text = rg.trace(
        rg.grad(attention(causal=True), argnums=(0, 1, 2)), *given((1, 4, 2048), 16, 2048)
    ).explain()
    assert "none of them beyond the 2048 rows of one element" in text
    assert "add up over the rows of an element" in text
    assert "computed again: " in text


def kernels(f: Any, *shapes: Any) -> list[Kernel]:
    return KernelPlan(optimize(rg.trace(f, *[spec(s, float32) for s in shapes]))).kernels


def test_facts_counted_by_hand() -> None:
    (k,) = kernels(lambda x, y: rg.exp(x * y) + rg.exp(x), (10, 3), (10, 3))
    found = facts(k)
    assert found.ops == {"mul": 1, "exp": 2, "add": 1}
    assert sorted(found.fused.split()) == ["add", "exp*2", "mul"]
    assert (found.operations, found.bytes) == (120, 3 * 120)
    assert found.definite
    assert "[30]" in describe(k)
    assert "360 bytes, 120 operations, at least " in describe(k)


def test_facts_of_named_sizes_become_numbers_with_these() -> None:
    n = Dim("N")
    (k,) = kernels(lambda x: x * 2.0, (n, 4))
    assert (facts(k).operations, facts(k).bytes, facts(k).definite) == (4 * n, 32 * n, False)
    assert "at least" not in describe(k)
    assert facts(k, {"N": 3})[1:3] == (12, 96)
    assert facts(k, {"N": 3000}).least > facts(k, {"N": 3}).least


def test_threads_and_one_thread() -> None:
    def lines(n: int) -> str:
        return KernelPlan(rg.trace(lambda x: rg.exp(rg.cumsum(rg.exp(x), 1)).sum(1),
                                   spec((n, 100), float32))).explain()  # fmt: skip

    assert "row by row: 50000 rows" in lines(50000)
    assert "row by row" not in lines(5)
