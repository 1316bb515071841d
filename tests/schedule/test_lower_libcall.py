"""Calls of routines in a plan: a check behind those that may refuse, workspace for those that need
it."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, float64, spec
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan


def plan(f, *shapes) -> KernelPlan:
    return KernelPlan(rg.trace(f, *[spec(s, float64) for s in shapes]))


def kinds(p: KernelPlan) -> list[list[str]]:
    return [[n.kind for n in k.nests] for k in p.kernels]


def test_a_check_follows_what_may_refuse_an_item() -> None:
    found = kinds(plan(rg.linalg.cholesky, (4, 3, 3)))
    assert "call" in found[0]
    assert found[1] == ["check"]
    assert ["check"] not in kinds(plan(rg.linalg.qr, (4, 3, 3)))


def test_workspace_and_codes_belong_to_each_item() -> None:
    n = Dim("N")
    p = plan(rg.linalg.eigh, (n, 5, 5))
    call = next(k for k in p.kernels if any(x.kind == "call" for x in k.nests))
    extra = [b for b in call.outs if b.kind == "temporary"]
    assert extra
    assert all(b.bytes == n * b.type.shape[1] * 8 for b in extra if b.type.rank == 2)


def test_items_lie_one_after_the_other() -> None:
    """In a stack of two axes, whose operands differ in size; the right side is not overwritten."""
    program = Executable(rg.trace(
        lambda a, b: (rg.linalg.solve_triangular(a, b, lower=True), b),
        spec((2, 3, 4, 4), float64), spec((2, 3, 4, 2), float64),
    ))  # fmt: skip
    rng = np.random.default_rng(0)
    a, b = np.tril(rng.random((2, 3, 4, 4))) + np.eye(4), rng.random((2, 3, 4, 2))
    found, same = program([a, b])
    np.testing.assert_allclose(a @ found, b, 1e-13)
    np.testing.assert_array_equal(same, b)


def test_an_empty_batch_is_no_error() -> None:
    program = Executable(rg.trace(rg.linalg.cholesky, spec((Dim("N"), 2, 2), float64)))
    assert program([np.zeros((0, 2, 2))])[0].shape == (0, 2, 2)
    with pytest.raises(rg.errors.LinAlgError, match=r"\[1\]"):
        program([np.stack([np.eye(2), -np.eye(2)])])
