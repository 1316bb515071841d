"""Nodes are named in messages as the user names them."""

from __future__ import annotations

import pytest

import retrograd as rg
from retrograd import gnn
from retrograd.errors import CycleError


def test_a_cycle_is_told_by_the_names_of_its_nodes() -> None:
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    g = gnn.from_networkx(networkx.DiGraph([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]))
    named = r"of 3 nodes: 'a' -> 'b' -> 'c' -> 'a'$"
    for look in (gnn.topological_order, gnn.levels):
        with pytest.raises(CycleError, match=named):
            look(g)
    with pytest.raises(CycleError, match=named):
        gnn.dag_scan(lambda a, x: a + x, g, rg.ones((4, 1)))


def test_names_have_numbers_in_the_order_in_which_they_come() -> None:
    names = gnn.Names(["a", "b"])
    assert [names.add("b"), names.add((1, 2)), names["a"]] == [1, 2, 0]
    assert (len(names), names.labels) == (3, ["a", "b", (1, 2)])
    assert "c" not in names
    with pytest.raises(KeyError):
        names["c"]
