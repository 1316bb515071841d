"""Cuts such that what reverse mode keeps fits into a number of bytes."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.ir import Dim, Graph, float32, spec
from retrograd.ops.elementwise import exp, sin
from retrograd.ops.leaf import input_node
from retrograd.ops.shape import Reshape
from retrograd.transforms import remat_budget
from retrograd.transforms.remat_budget import RematCosts
from tests.transforms.test_checkpoint import LAYERS, RNG, X, one_thread, peak, stack

__all__ = ["one_thread"]  # a fixture


@pytest.mark.slow
def test_the_planned_peak_is_a_small_part():
    """200 layers: at least 8 times less."""
    width, batch, depth = 64, 4096, 200
    ws, x = [rg.spec((width, width))] * depth, rg.spec((batch, width))
    unit = width * batch * 4

    def model(wrap: Any, group: int):
        def f(ws, x):
            for i in range(0, len(ws), group):
                x = wrap(lambda ws, x: _tanh(ws, x))(ws[i : i + group], x)
            return (x**2).sum()

        return peak(rg.value_and_grad(f), ws, x)

    plain = model(lambda f: f, 10)
    cut = model(rg.checkpoint, 10)
    assert cut * 8 < plain
    assert cut < 50 * unit
    for most in (100 * unit, 45 * unit):
        assert model(rg.checkpoint(policy=most), depth) <= most


def _tanh(ws, x):
    for w in ws:
        x = rg.tanh(x @ w)
    return x


def test_a_budget_that_is_too_small_says_what_is_enough():
    f = rg.grad(lambda x: rg.checkpoint(lambda x: stack(LAYERS, x), policy=300)(x).sum())
    with pytest.raises(rg.OptionError, match="least is about") as caught:
        f(X)
    least = int(str(caught.value).rsplit(" ", 1)[1].replace(",", ""))
    g = rg.grad(lambda x: rg.checkpoint(lambda x: stack(LAYERS, x), policy=least)(x).sum())
    np.testing.assert_allclose(
        g(X).numpy(), rg.grad(lambda x: stack(LAYERS, x).sum())(X).numpy(), rtol=1e-12
    )


@pytest.mark.slow
def test_a_budget_is_kept_by_the_gradient_of_a_part():
    """Whatever is around: what the part adds to the peak is within its budget."""
    w, x, unit = rg.spec((32, 32)), rg.spec((4096, 32)), 4 * 32 * 4096

    def f(w, x, policy):
        return (rg.checkpoint(lambda w, x: _tanh([w] * 40, x), policy=policy)(w, x) ** 2).sum()

    plain = peak(rg.value_and_grad(lambda w, x: (_tanh([w] * 40, x) ** 2).sum()), w, x)
    for units in (60, 40, 25):
        assert plain > units * unit
        most = f"{units * unit} B"
        assert peak(rg.value_and_grad(lambda w, x, p=most: f(w, x, p)), w, x) <= units * unit
    assert peak(rg.grad(lambda w, x: f(w, x, 100 * unit)), w, x) <= plain  # nothing again


@pytest.mark.slow
def test_a_budget_counts_gradients_of_what_is_differentiated():
    """With respect to the weights of 64 layers there are 64 gradients more."""
    ws, x = [rg.spec((256, 256))] * 64, rg.spec((256, 256))
    most = 60 * 256 * 256 * 4
    f = rg.checkpoint(lambda ws, x: _tanh(ws, x).sum(), policy=most)
    assert peak(rg.grad(f, 1), ws, x) <= most
    with pytest.raises(rg.OptionError, match="least is about"):
        rg.trace(rg.grad(f), ws, x)


@pytest.mark.slow
def test_budgets_for_named_sizes():
    f = rg.checkpoint(lambda x: rg.exp(rg.sin(x)), policy=1000)
    with pytest.raises(rg.OptionError, match=r'sizes=\{"N": ...\}'):
        rg.trace(f, rg.spec((rg.Dim("N"),)))
    g = rg.trace(rg.grad(lambda x: rg.checkpoint(rg.sin)(x).sum()), rg.spec((rg.Dim("N"),)))
    assert g(np.zeros(3, np.float32)).tolist() == [1, 1, 1]
    w, x = rg.spec((32, 32), rg.float64), rg.spec((rg.Dim("N"), 32), rg.float64)
    unit = 8 * 32 * 1024
    cut = rg.checkpoint(lambda w, x: _tanh([w] * 40, x), policy=30 * unit, sizes={"N": 1024})
    graph = rg.trace(rg.grad(lambda w, x: (cut(w, x) ** 2).sum()), w, x)
    for n in (1024, 500):
        assert (graph.stats({"N": n}).compiled_bytes or 0) <= 30 * unit
    given = RNG.normal(size=(32, 32)) / 4, RNG.normal(size=(7, 32))
    plain = rg.grad(lambda w, x: (_tanh([w] * 40, x) ** 2).sum())
    np.testing.assert_allclose(graph(*given), plain(*given), rtol=1e-9, atol=1e-12)


def test_cuts_are_looked_for_once():
    unit = X.nbytes
    f = rg.checkpoint(lambda x: stack(LAYERS, x).sum(), policy=40 * unit)
    rg.grad(f)(X).numpy()
    before = len(remat_budget._FOUND)
    for _ in range(3):
        rg.grad(f)(X + 1).numpy()
    assert len(remat_budget._FOUND) == before


def chain(count, n: Any = 10):
    """sin of sin of ...: derivatives read the input of each."""
    x = input_node(spec((n,), float32), "x")
    nodes, y = [], x
    for _ in range(count):
        y = sin(y)
        nodes.append(y)
    return x, nodes


def test_what_is_kept_is_what_derivatives_read():
    x, nodes = chain(5)
    known = RematCosts(nodes, nodes[-1:], {})
    assert known.entering == [x]
    assert known.kept == dict.fromkeys(range(4), 40)  # the last result is read by nobody
    assert known.through[:5] == [0, 40, 40, 40, 40]
    flat = Reshape((2, 5))(nodes[0])
    y = exp(flat)
    views = RematCosts([nodes[0], flat, y], [y], {})
    assert views.kept == {2: 40}  # exp reads its own result; a view is no memory of its own
    assert views.entering == [x]


def test_pieces_shrink_from_the_first_to_the_last():
    """With n equal layers, pieces of P, P-1, P-2, ... fit into the bytes of P layers."""
    _, nodes = chain(21)
    known = RematCosts(nodes, nodes[-1:], {})
    cuts = known.cuts(6 * 40)
    assert cuts is not None
    ends = [0, *cuts, 21]
    lengths = [b - a for a, b in pairwise(ends)]
    assert lengths == sorted(lengths, reverse=True)
    for j, length in enumerate(lengths):
        assert (j + length) * 40 <= 7 * 40
    assert known.cuts(21 * 40) == []  # nothing has to be computed again
    assert known.cuts(40) is None


def test_sizes_with_names_need_values():
    _, nodes = chain(2, Dim("N"))
    assert RematCosts(nodes, nodes[-1:], {"N": 3}).sizes[nodes[0]] == 12
    with pytest.raises(OptionError, match=r'sizes=\{"N": \.\.\.\}'):
        RematCosts(nodes, nodes[-1:], {})


def test_pieces_follow_one_another_and_the_last_is_not_computed_again(monkeypatch):
    x, nodes = chain(12, 1000)
    seen = []

    def build(pieces):
        seen.append(pieces)
        return nodes[-1:]

    monkeypatch.setattr(remat_budget, "_FOUND", {})
    monkeypatch.setattr(remat_budget, "_peak", lambda outputs, known: 0)
    pieces = remat_budget.pieces_within(6 * 4000, nodes, nodes[-1:], build, {})
    assert [n for p in pieces for n in p.nodes] == nodes
    assert [p.again for p in pieces] == [True] * (len(pieces) - 1) + [False]
    assert len(pieces) > 1
    assert len(seen) == 1
    assert Graph([x], nodes[-1:]).inputs == (x,)
