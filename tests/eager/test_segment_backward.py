"""Gradients through segments: the order of additions, and very many segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as rg
from retrograd.eager import (
    segment_backward,
)
from retrograd.eager.leaf import leaf_handle
from tests.eager.cutting import cut_after, never, same


@pytest.mark.slow
def test_a_history_of_very_many_segments():
    """Nothing goes through it by recursion, neither the gradient, nor nodes, nor letting go."""
    with cut_after(2):
        x = rg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(6000):
            y = y * 1.0001
        z = y * 1.5
        z.backward()
        assert x.grad is not None
        assert x.grad.item() == pytest.approx(1.5 * 1.0001**6000, rel=1e-3)
        del z
        y.backward()
        del y
        y = x
        for _ in range(6000):
            y = y * 1.0001
        assert sum(1 for _ in itertools.islice(_nodes(y.node), 20000)) > 12000
        del y


def _nodes(node: Any) -> Iterator[Any]:
    todo, seen = [node], {node}
    for n in todo:
        yield n
        for x in n.inputs:
            if x not in seen:
                seen.add(x)
                todo.append(x)


def test_a_wrong_order_of_additions_is_noticed(monkeypatch):
    """That bits are compared is worth something only if a wrong order shows."""
    real = segment_backward.backward_segment

    def wrong(segment: Any, given: Any, asks: Any, found: dict[Any, Any]) -> None:
        before = {x: found.pop(x) for x in list(found) if leaf_handle(x) is not None}
        real(segment, given, asks, found)
        for x, g in before.items():
            found[x] = found[x] + g if x in found else g

    def run() -> list[Any]:
        x = rg.tensor([0.1, 0.7, 0.3], requires_grad=True)
        y = x
        for k in range(30):
            y = rg.sin(y * x + 0.1 * k) / (x + (1.3 + 0.01 * k))  # written once
        (y * x).sum().backward()
        assert x.grad is not None
        return [x.grad.numpy()]

    with never():
        expected = run()
    with cut_after(3):
        same(run(), expected)
    monkeypatch.setattr(segment_backward, "backward_segment", wrong)
    with cut_after(3), pytest.raises(AssertionError):
        same(run(), expected)
