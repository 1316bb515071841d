"""What the gradient of a loop keeps of its steps, and what it computes again."""

from typing import Any

import numpy as np
import pytest

from retrograd.ir import Graph, TensorType, float64, reachable
from retrograd.ops.control import Scan
from retrograd.ops.elementwise import exp, sin
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import run
from tests.ops.derive import cotangents

T = TensorType(float64, ())


def scans(body, recompute=False):
    """The loops that the gradient by `h` and `w` of `h -> body(w, h)`, five times, is made of,
    and its value at (0.3, 0.5)."""
    w, h = input_node(T), input_node(T)
    own = [input_node(T), input_node(T)]
    op = Scan(Graph(own, [body(*own)]), 1, 0, 5, False, recompute)
    (y,) = items(op(w, h))
    grads = cotangents(y, [w, h])
    found: Any = [n.prim for n in reachable(grads) if n.op == "scan"]
    forward = next((p for p in found if not p.reverse), op)
    (backward,) = [p for p in found if p.reverse]
    return forward, backward, run(Graph([w, h], grads), [np.array(0.3), np.array(0.5)])


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (lambda w, h: h + sin(w), 0),  # of w alone: computed again
        (lambda w, h: h * sin(w), 1),  # the state before each step
        (lambda w, h: w + sin(h), 1),  # cos(h) is one operation of the state
        (lambda w, h: w * sin(h), 2),  # sin(h) is there already
        (lambda w, h: w * exp(sin(h)), 2),
    ],
)
def test_kept(body, kept):
    forward, backward, _ = scans(body)
    assert backward.scanned == kept
    assert len(forward.body.outputs) == 1 + kept


@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_by_differences(recompute):
    def body(w, h):
        return w * exp(sin(h))

    def value(w, h):
        for _ in range(5):
            h = w * np.exp(np.sin(h))
        return h

    forward, backward, found = scans(body, recompute)
    assert backward.scanned == (1 if recompute else 2)
    assert len(forward.body.outputs) == 1 + backward.scanned
    e = 1e-6
    by_w = (value(0.3 + e, 0.5) - value(0.3 - e, 0.5)) / (2 * e)
    by_h = (value(0.3, 0.5 + e) - value(0.3, 0.5 - e)) / (2 * e)
    np.testing.assert_allclose(found, [by_w, by_h], rtol=1e-7)
