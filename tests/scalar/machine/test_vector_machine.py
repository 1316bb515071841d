"""Instructions that do one operation for many rows, against NumPy."""

import numpy as np
import pytest

from retrograd.scalar.machine.vector_machine import WORDS, can_run, kinds, runner

pytestmark = pytest.mark.skipif(not can_run(), reason="LLVM cannot be had here")


class Program:
    """Instructions, and the lists of places that they have addresses of."""

    def __init__(self, values):
        self.values, self.grads = np.array(values, float), np.zeros(len(values))
        self.rows, self.keep = [], []

    def places(self, *numbers):
        self.keep.append(np.array(numbers, np.int32))
        return self.keep[-1].ctypes.data

    def add(self, name, n, out, **words):
        words = {"kind": kinds()[name], "n": n, "out": out, **words}
        self.rows.append([words.get(w, 0) for w in WORDS])

    def run(self):
        table = np.array(self.rows, np.int64)
        a, b, c = (x.ctypes.data for x in (table, self.values, self.grads))
        assert runner()(a, b, c, len(table)) == 0
        return self.values


def test_operands_from_lists_and_side_by_side():
    x = np.random.default_rng(0).normal(size=20)
    p = Program([*x, *[0.0] * 60])
    p.add("mul", 3, 20, a=p.places(5, 0, 2), b=p.places(1, 1, 19))
    p.add("sub.cc", 10, 23, a=0, b=10)
    p.add("add.cb", 10, 33, a=0, b=7)
    p.add("div.bc", 9, 43, a=3, b=1)
    p.add("neg.c", 9, 52, a=4)
    p.add("lt", 2, 61, a=p.places(0, 1), b=p.places(1, 0))
    found = p.run()
    np.testing.assert_array_equal(found[20:23], x[[5, 0, 2]] * x[[1, 1, 19]])
    np.testing.assert_array_equal(found[23:33], x[:10] - x[10:])
    np.testing.assert_array_equal(found[33:43], x[:10] + x[7])
    np.testing.assert_array_equal(found[43:52], x[3] / x[1:10])
    np.testing.assert_array_equal(found[52:61], -x[4:13])
    np.testing.assert_array_equal(found[61:63], [x[0] < x[1], x[1] < x[0]])


@pytest.mark.parametrize("form", ["dot", "dot.c"])
def test_contractions_there_and_back(form):
    """`y_k = init_k + sum_j a_kj b_kj`, with more factors than lanes."""
    size, x = 11, np.random.default_rng(1).normal(size=46)
    p = Program([*x, 0.0, 0.0])
    starts = np.array([[0, 11], [22, 33]])
    every = (starts[..., None] + np.arange(size)).reshape(2, -1)
    a, b = (p.places(*rows) for rows in (every if form == "dot" else starts))
    words = {"a": a, "b": b, "init": p.places(44, 45), "size": size}
    p.add(form, 2, 46, **words)
    p.add("seed", 0, 46)
    p.add("seed", 0, 47)
    p.add("seed", 0, 47)
    p.add(f"{form}.back", 2, 46, **words)
    found = p.run()[46:]
    left, right = x[every[0]].reshape(2, size), x[every[1]].reshape(2, size)
    np.testing.assert_allclose(found, (left * right).sum(1) + x[44:46], rtol=1e-12)
    expected = np.zeros(48)
    g = np.array([[1.0], [2.0]])
    expected[every[0]], expected[every[1]] = (g * right).ravel(), (g * left).ravel()
    expected[44:] = [1, 2, 1, 2]
    np.testing.assert_allclose(p.grads, expected, rtol=1e-12)
