"""The smaller one of two sizes."""

import itertools

import pytest

from retrograd.ir import Dim, at_least, evaluate, symbolic_min
from retrograd.ir.literal import LiteralReader

N, M = Dim("N"), Dim("M")
SIZES = [N, M, 3, 1, 0, N + 2, 2 * N, N * M, N // 2, (M + 1) // 2, M - symbolic_min(M, 2)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SIZES, repeat=2)))
def test_it_is_the_smaller_one(a, b):
    found = symbolic_min(a, b)
    assert symbolic_min(b, a) == found
    for n, m in itertools.product(range(7), repeat=2):
        sizes = {"N": n, "M": m}
        assert evaluate(found, sizes) == min(evaluate(a, sizes), evaluate(b, sizes))


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations([N, M, 3, 2 * N, N * M], 2)))
def test_neither_is_smaller_than_that(a, b):
    assert at_least(a, symbolic_min(a, b))
    assert at_least(b, symbolic_min(a, b))


def test_what_is_not_known():
    assert not at_least(N, M)
    assert not at_least(N, N + 1)
    assert not at_least(N, symbolic_min(M, 3))
    assert at_least(2 * N + M, N)


def test_it_can_be_read_back():
    size = symbolic_min(N, M + 1)
    assert LiteralReader(str(size)).size() == size
