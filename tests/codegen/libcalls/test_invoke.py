"""Calls of routines, item by item: each with its own memory, the first that refuses is named."""

import numpy as np
import pytest

import retrograd as rg
from tests.codegen.libcalls.arrays import N, close, compiled, drawn, positive


def test_items_of_a_stack_are_those_alone() -> None:
    """With workspace and without, on one thread and on three."""

    def f(x):
        return *rg.linalg.qr(x), rg.linalg.inv(x)

    x = drawn("float64", 5, 4, 9, 9)
    stack, alone = compiled(f, "float64", (N, 4, 9, 9)), compiled(f, "float64", (9, 9))
    for threads in (1, 3):
        with rg.num_threads(threads):
            found = stack(x)
        for i in np.ndindex(5, 4):
            for y, z in zip(found, alone(x[i]), strict=True):
                np.testing.assert_array_equal(y[i], z)
    assert [y.shape[0] for y in stack(x[:0])] == [0, 0, 0]


def test_the_first_item_that_is_refused_is_named() -> None:
    program = compiled(rg.linalg.cholesky, "float64", (N, 3, 3))
    x = positive("float64", 6, 3, 3)
    close(program(x)[0] @ np.swapaxes(program(x)[0], 1, 2), x, "float64")
    x[[5, 2]] *= -1
    with pytest.raises(rg.errors.LinAlgError, match=r"\[2\]"):
        program(x)
