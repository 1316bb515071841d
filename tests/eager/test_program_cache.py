"""Programs remembered by the structure of what they compute."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import program_cache
from retrograd.eager.program_cache import (
    clone_graph,
    hoist_scalars,
    is_argument,
    is_free,
    required_nodes,
)
from retrograd.ir import Graph, spec
from retrograd.ops.elementwise import add, exp, mul
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.shape import expand
from retrograd.runtime.executors.reference import ReferenceProgram


def test_programs_in_the_cache_are_bounded(monkeypatch):
    monkeypatch.setattr(program_cache, "CAPACITY", 8)
    with rg.backend("reference"):
        for n in range(30):
            (rg.ones(n) + 1).numpy()
    assert rg.cache_stats()["programs"] <= 8


def made(what: Any) -> tuple[int, Any]:
    """How many programs are made for it, and what it gives."""
    before = rg.cache_stats()["misses"]
    found = what()
    return rg.cache_stats()["misses"] - before, found


def test_equal_structures_share_a_program_whatever_the_numbers() -> None:
    """But for 0, 1, 2 and their like, which are simplified away, and for infinities: what exp(-inf)
    hides need not be computed."""
    x = rg.tensor(np.arange(7, dtype=np.float32))

    def step(rate: float) -> list[float]:
        return (rg.sin(x) * rate - x).tolist()

    made(lambda: step(0.125))
    for rate in (0.25, -3.5, 1e-3):
        count, found = made(lambda r=rate: step(r))
        assert count == 0
        np.testing.assert_allclose(found, np.sin(x.numpy()) * np.float32(rate) - x.numpy(), 1e-6)
    assert is_argument(constant(np.float32(0.3)))
    for value in (0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf):
        assert not is_argument(constant(np.float32(value)))
        assert not is_free(value)
    assert not is_argument(constant(np.ones(2, np.float32)))
    assert not is_argument(constant(np.int64(3)))


def test_what_is_computed_ends_at_what_is_at_hand() -> None:
    x, w = (input_node(spec((2,)), n) for n in "xw")
    y = mul(x, x)
    z, unused = add(exp(y), w), exp(w)
    found = required_nodes([z], {y: 1, w: 1}.get)
    assert found.order == [z.inputs[0], z]
    assert found.inputs == [y, w]
    assert unused not in found.order
    with pytest.raises(rg.TraceError, match="stands for any array"):
        required_nodes([z], lambda n: None)


def test_a_copy_of_a_graph_keeps_nothing_alive() -> None:
    x = input_node(spec((2,)), "x")
    c = constant(np.float32(0.3))
    y = mul(x, expand(c, (2,), (0,)))
    graph = hoist_scalars([x], [c], [y, x])
    assert len(graph.inputs) == 2
    assert not set(graph.nodes) & {x, c, y}
    a, rate = np.array([1, 2], np.float32), np.array(0.3, np.float32)
    found = ReferenceProgram(graph)([a, rate])
    np.testing.assert_array_equal(found[0], a * rate)
    np.testing.assert_array_equal(found[1], a)
    assert str(clone_graph([x], [y])) == str(Graph([x], [y]))
    ref = weakref.ref(y)
    del y
    gc.collect()
    assert ref() is None
