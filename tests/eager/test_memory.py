"""Memory stays flat over a long run, and the cost of a long history is linear."""

import gc
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import leaf, trace_buffer
from retrograd.ir import Node


def living() -> tuple[int, int]:
    """How many nodes and how many tensors there are."""
    gc.collect()
    objects = gc.get_objects()
    return (
        sum(issubclass(type(x), Node) for x in objects),
        sum(issubclass(type(x), rg.Tensor) for x in objects),
    )


def resident() -> float:
    """The memory of this process, in MB."""
    pages = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.parametrize(
    ("backend", "steps"), [("llvm", 2000), pytest.param("reference", 500, marks=pytest.mark.slow)]
)
def test_a_training_loop_keeps_nothing(backend, steps):
    rng = np.random.default_rng(0)
    w = rg.tensor(rng.normal(size=(4, 2)).astype(np.float32), requires_grad=True)
    x = rng.normal(size=(8, 4)).astype(np.float32)
    seen, memory = [], []
    total = 0.0
    with rg.backend(backend):
        for i in range(steps):
            loss = (rg.tanh(x @ w) ** 2).mean()
            loss.backward()
            assert w.grad is not None
            w.replace(w.numpy() - 0.01 * w.grad.numpy())
            w.grad = None
            total += loss.item()
            if i in (20, steps // 2, steps - 1):
                seen.append(living())
                if Path("/proc/self/statm").exists():
                    memory.append(resident())
    assert seen[0] >= seen[1] >= seen[2]
    # From the middle on: at first, pages that other tests have left behind come back into use.
    assert memory == [] or memory[2] - memory[1] < 4, memory
    tables = (leaf.PENDING, leaf.VALUES, leaf.FREED)
    assert sum(ref() is not None for ref in trace_buffer.BUFFERS) < 50
    assert max(len(t) for t in tables) < 50


def test_losses_may_be_kept_and_summed_without_their_history():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    kept, total = [], rg.tensor(0.0)
    nodes = []
    for _ in range(5):
        h = x * x
        nodes.append(weakref.ref(h.node))
        loss = h.sum()
        loss.backward()
        kept.append(loss)
        total = total + loss
        x.grad = None
        del h
    total.numpy()
    gc.collect()
    assert total.item() == 25
    assert [loss.item() for loss in kept] == [5] * 5
    assert all(ref() is None for ref in nodes)


@pytest.mark.filterwarnings("ignore::retrograd.RecompilationWarning")  # that is what it does
def test_signatures_of_a_jit_function_are_bounded(monkeypatch):
    monkeypatch.setattr("retrograd.transforms.jit.jit.CAPACITY", 8)
    f = rg.jit(lambda x: x + 1)
    with rg.backend("reference"):
        for n in range(30):
            f(rg.ones(n))
        assert f(rg.ones(3)).tolist() == [2, 2, 2]
    assert f.cache_stats()["signatures"] <= 8


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_chain_is_differentiated(length):
    x = rg.tensor(0.5, requires_grad=True)
    y = x
    with rg.backend("reference"):
        for _ in range(length):
            y = y * 1.00001
        y.backward()
        assert x.grad is not None
        factor = float(np.float32(1.00001))
        assert x.grad.item() == pytest.approx(factor**length, rel=2e-2)  # so many roundings
