"""Regions read sizes and cursors from the block, and leave with what is wrong."""

from __future__ import annotations

import pytest

import retrograd as rg


def test_carries_that_change_places():
    f = rg.jit(
        lambda a, b, n: rg.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (a, b)),
        static_argnames="n",
    )
    for n in range(8):
        pair = [0, 1]
        for _ in range(n):
            pair = [pair[1], sum(pair)]
        assert [x.item() for x in f(rg.tensor(0), rg.tensor(1), n)] == pair


def test_an_index_that_is_out_of_range_in_some_step():
    f = rg.jit(lambda x, i: rg.scan(lambda c, k: (c + x[k], None), rg.tensor(0.0), i)[0])
    x = rg.tensor([1.0, 2.0, 3.0])
    assert f(x, rg.tensor([0, 2, 1])).item() == 6
    with pytest.raises(IndexError, match="the index 7 on axis 0 of size 3") as caught:
        f(x, rg.tensor([0, 7, 1])).item()
    assert "test_region_emitter.py" in str(caught.value)
    assert f(x, rg.tensor([2, 2, 2])).item() == 9


@pytest.mark.slow
def test_sizes_that_become_known_one_inside_of_another():
    """The gradient of a loop of unknown length in a loop of unknown length, and in a scan."""

    def inner(x):
        return rg.while_loop(lambda y: y < 9, lambda y: y * x + 1, x)

    def outer(x):
        return rg.while_loop(lambda y: y < 500, lambda y: y + inner(1 + x / 3) * x, x)

    def each(x):
        return rg.scan(lambda c, t: (c + inner(x + t), None), x * 0, rg.tensor([0.5, 1.0, 3.0]))[0]

    for f in (outer, each):
        x = rg.tensor(1.75, dtype=rg.float64)
        g = rg.jit(rg.grad(rg.grad(f)))(x).item()
        with rg.backend("reference"):
            expected = rg.grad(rg.grad(f))(x).item()
        assert g == pytest.approx(expected, rel=1e-10)
