"""Threefry: published vectors, reproducibility, and rough statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from retrograd.ops.random.threefry import FEW, RandomBits, threefry, threefry_of_numbers
from retrograd.verify.rule_checks import check_result


# kat_vectors of Random123 1.14: threefry2x32, 20 rounds; counter, key, result.
@pytest.mark.parametrize(
    ("counter", "key", "result"),
    [
        ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(counter: Any, key: Any, result: Any) -> None:
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    assert tuple(int(w[0]) for w in threefry(*words)) == result
    assert threefry_of_numbers(*key, *counter) == result


def test_few_numbers_are_the_first_of_many() -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 32, (50, 2), np.uint32)
    op, more = RandomBits((2, 2)), RandomBits((FEW + 1,))
    for key in keys:
        np.testing.assert_array_equal(op.reference(key).ravel(), more.reference(key)[:4])
    assert RandomBits((0,)).reference(keys[0]).shape == (0,)


def bits(key: Any, shape: tuple[int, ...]) -> Any:
    return check_result(RandomBits(shape), [np.array(key, np.uint32)])


def test_the_shape_only_arranges_the_numbers() -> None:
    flat = bits([1, 2], (24,))
    np.testing.assert_array_equal(bits([1, 2], (2, 3, 4)).ravel(), flat)
    np.testing.assert_array_equal(bits([1, 2], (10,)), flat[:10])
    assert bits([0, 0], ()) == 0x6B200159


def test_a_stack_of_keys_gives_a_stack_of_results() -> None:
    stack = bits([[1, 2], [3, 4]], (5,))
    np.testing.assert_array_equal(stack[0], bits([1, 2], (5,)))
    np.testing.assert_array_equal(stack[1], bits([3, 4], (5,)))


def test_every_key_bit_matters() -> None:
    results = {bits([1 << i, 0], (2,)).tobytes() for i in range(32)}
    results |= {bits([0, 1 << i], (2,)).tobytes() for i in range(32)}
    assert len(results) == 64


def test_statistics() -> None:
    """Bits are fair, numbers uniform, neighbours and streams uncorrelated."""
    n = 1 << 15
    x = bits([123, 456], (n,))
    ones = np.array([(x >> np.uint32(i) & 1).sum() for i in range(32)])
    assert np.abs(ones - n / 2).max() < 5 * np.sqrt(n / 4)
    u = (x.astype(np.float64) + 0.5) / 2**32
    assert scipy.stats.kstest(u, "uniform").pvalue > 1e-3
    v = bits([123, 457], (n,)) / 2**32
    for a, b in ((u[1:], u[:-1]), (u, v)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(n)
