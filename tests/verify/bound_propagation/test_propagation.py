"""The table of rules is whole, and the walk gives every node a value."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.ir.registry import REGISTRY
from retrograd.verify.bound_propagation import rules
from retrograd.verify.bound_propagation.interval import point
from retrograd.verify.bound_propagation.propagation import (
    RULES,
    outputs_of,
    propagate,
    without_rules,
)


def test_every_op_has_a_rule():
    assert rules
    assert without_rules() == []
    assert set(RULES) <= set(REGISTRY)


def test_an_op_without_a_rule_is_named(monkeypatch):
    graph = rg.trace(rg.sin, rg.spec((2,)))
    monkeypatch.delitem(RULES, "sin")
    assert without_rules() == ["sin"]
    with pytest.raises(BackendError, match=r"'sin'.*f32\[2\]"):
        outputs_of(graph, [point(np.zeros(2))])


def test_each_node_has_a_value():
    graph = rg.trace(lambda x: rg.softmax(x).sum(), rg.spec((3,)))
    x = point(np.array([1, 2, 3], np.float32))
    values = propagate(graph, [x])
    assert set(values) == set(graph.nodes)
    (last,) = outputs_of(graph, [x])
    assert last.lower == values[graph.outputs[0]].lower
