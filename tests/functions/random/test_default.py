"""The stream of random numbers of the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4))
C = rng.normal(size=(2, 3, 4))
I = np.array([[0, 2, 1], [3, 3, 0]])  # noqa: E741


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    with rg.backend("reference"):
        yield


def test_one_stream_of_random_numbers() -> None:
    def drawn() -> list[Any]:
        layer = rg.nn.Linear(2, 1)
        return [
            rg.randn(2).tolist(), rg.randint(9, (3,)).tolist(), layer.weight.tolist(),
            rg.rand_like(rg.ones(2)).tolist(), rg.zeros(2).normal_().tolist(),
        ]  # fmt: skip

    rg.manual_seed(3)
    first = drawn()
    state = rg.get_rng_state()
    then = drawn()
    assert then != first
    rg.set_rng_state(state)
    assert drawn() == then
    rg.manual_seed(3)
    assert drawn() == first
    assert rg.initial_seed() == 3
    g = rg.random.Generator(5)
    with_own = rg.jit(lambda g: rg.randn(2, generator=g))
    assert with_own(g).tolist() == rg.randn(2, generator=rg.random.Generator(5)).tolist()
    rg.manual_seed(0)


def test_random_numbers_are_those_of_their_distributions() -> None:
    rg.manual_seed(0)
    z, u = rg.randn(20000).numpy(), rg.rand(20000).numpy()
    assert abs(z.mean()) < 0.03
    assert abs(z.std() - 1) < 0.03
    assert abs(u.mean() - 0.5) < 0.02
    assert 0 <= u.min() <= u.max() < 1
    assert sorted(rg.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    rows = rg.multinomial(rg.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]), 500, replacement=True)
    assert rows.shape == (2, 500)
    assert set(rows[0].tolist()) == {1}
    assert 200 < sum(rows[1].tolist()) < 300
    assert sorted(rg.multinomial(rg.ones(3), 3).tolist()) == [0, 1, 2]
    x = rg.zeros(4000).uniform_(2.0, 3.0).numpy()
    assert 2 <= x.min() < 2.01
    assert 2.99 < x.max() < 3


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [("bool", 1), ("int8", 127), ("uint8", 255), ("int64", 2**63 - 1), ("uint64", 2**63 - 1),
     ("float16", 2**11), ("bfloat16", 2**8), ("float32", 2**24), ("float64", 2**53)],
)  # fmt: skip
def test_all_the_integers_of_a_dtype(dtype, largest):
    x = rg.zeros(1000, dtype=dtype).random_()
    found = [int(v) for v in x.astype("float64" if "float" in dtype else "int64").tolist()]
    assert min(found) >= 0
    assert largest >= max(found) > 0.9 * largest
    assert rg.zeros(50, dtype=dtype).random_(1).tolist() == [0] * 50
