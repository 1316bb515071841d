"""Functions that differ in constants alone are one."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.program.merge_functions import MOST, merge_functions
from retrograd.codegen.program.module_context import KernelCall
from retrograd.runtime.executable import Executable


def body(*offsets: int, size: int = 8) -> str:
    lines = [f"  %r{k} = add nsw i64 {n}, %lo" for k, n in enumerate(offsets)]
    return "\n".join(["start:", *lines, f"  %s = mul nsw i64 %lo, {size}", "  ret i64 0"])


def calls_of(n: int, check: int = 0) -> list[list[KernelCall]]:
    return [[KernelCall(k, [], check, k)] for k in range(n)]


def test_what_differs_is_a_word_behind_the_slots():
    bodies = [body(5, 7, 5), body(6, 7, 6), body(9, 7, 9)]
    functions, calls = merge_functions({b: k for k, b in enumerate(bodies)}, calls_of(3, check=2))
    (text,) = functions
    assert [(c.function, list(c.constants)) for (c,) in calls] == [(0, [5]), (0, [6]), (0, [9])]
    assert "  %own0.k = getelementptr i64, ptr %slots, i64 1\n" in text  # behind the status
    assert text.count("add nsw i64 %own0, %lo") == 2
    assert "add nsw i64 7, %lo" in text


def test_others_stay_as_they_are_and_numbers_follow_one_another():
    bodies = [body(5), body(5, size=9), body(6), body(7, 7)]
    functions, calls = merge_functions({b: k for k, b in enumerate(bodies)}, calls_of(4))
    assert [*functions.values()] == [0, 1, 2]
    assert list(functions)[1:] == [bodies[1], bodies[3]]
    assert [(c.function, list(c.constants)) for (c,) in calls] == [
        (0, [5]), (1, []), (0, [6]), (2, [])
    ]  # fmt: skip
    many = [body(*range(k, k + MOST + 1)) for k in (0, 10)]
    functions, calls = merge_functions({b: k for k, b in enumerate(many)}, calls_of(2))
    assert list(functions) == many
    assert [c.function for (c,) in calls] == [0, 1]


def recurrent(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
    h = x[:, 0]
    for t in range(1, x.shape[1]):
        h = rg.tanh(h @ w + x[:, t])
    return h


def functions_of(steps: int) -> int:
    graph = rg.trace(recurrent, np.zeros((3, steps, 5), np.float32), np.zeros((5, 5), np.float32))
    return Executable(graph).functions


def test_a_loop_over_steps_has_as_many_functions_for_any_number_of_them():
    assert functions_of(9) == functions_of(17)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_step_reads_its_own_part(dtype):
    data = np.random.default_rng(0)
    x, w = data.normal(size=(3, 11, 5)).astype(dtype), data.normal(size=(5, 5)).astype(dtype)
    expected = x[:, 0]
    for t in range(1, 11):
        expected = np.tanh(expected @ w + x[:, t])
    given = rg.tensor(x), rg.tensor(w)
    np.testing.assert_allclose(rg.jit(recurrent)(*given).numpy(), expected, 1e-5, 1e-6)
    pulled = rg.grad(lambda x, w: (recurrent(x, w) ** 2).sum())
    np.testing.assert_array_equal(rg.jit(pulled)(*given).numpy(), pulled(*given).numpy())
