"""What is recorded between two looks, and becomes nodes where somebody asks for these."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer, trace_cache
from tests.eager.recorded import X, parameter
from tests.functions.programs import random_program


# -- nodes are asked for --------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("when", ["some", "all", "graph"])
@pytest.mark.sample(4)
def test_asking_for_nodes_changes_nothing(seed, when):
    def gradients(ask: bool) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        p = random_program(seed)
        leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
        values = list(leaves)
        for step in p.steps:
            values.append(step.of_tensors(*[values[i] for i in step.inputs]))
            if ask and (when == "all" or rng.random() < 0.3):
                assert values[-1].node.type.shape == values[-1].shape
            if ask and when == "graph":
                rg.grad(lambda x: (x * x).sum())(leaves[0]).numpy()
        loss = rg.sin(values[-1]).sum()
        if loss.requires_grad:
            loss.backward()
        return [loss.numpy(), *[x.grad.numpy() for x in leaves if x.grad is not None]]

    for a, b in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_a_handle_has_one_node():
    x = rg.tensor(X)
    h = x * 2.5
    y, z = h + 1.5, h * h
    assert y.node.inputs[0] is h.node is z.node.inputs[0] is z.node.inputs[1]
    assert h.node.inputs[0] is x.node
    assert float(y.node.inputs[1].attrs["value"]) == 1.5


def test_two_buffers_meet():
    w = parameter(2)
    first = (w * w).sum()
    first.item()  # tracked, and its buffer is left
    second = (w * 3.5).sum()
    second.item()
    (first * second).backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), [1 * 3.5 + 0.5 * 3.5] * 2)


def test_a_step_of_an_optimizer_is_not_cut() -> None:
    """It does the same with each of many parameters, as what repeats does, and is one call."""
    w = [rg.tensor(np.full(3, float(k)), requires_grad=True) for k in range(80)]
    opt = rg.optim.Adam(w, lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        loss = sum([p.sum() * 0.5 for p in w])
        loss.backward()
        buffer = trace_buffer.CURRENT.buffer
        assert buffer.open
        opt.step()
        assert not buffer.ripe
        assert buffer.executions == 1  # all of it at once


def test_what_is_recorded_as_a_whole_leaves_room_behind_it() -> None:
    buffer = trace_buffer.TraceBuffer(trace_cache.TraceSite())
    buffer.limit = 0
    assert buffer.uncut(lambda: buffer.limit) == sys.maxsize
    assert buffer.limit == buffer.site.room > buffer.made()
    buffer.ripe, buffer.limit = True, 0  # it is cut behind that
    buffer.uncut(lambda: None)
    assert buffer.limit == 0
