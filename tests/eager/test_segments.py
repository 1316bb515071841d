"""Long recordings are cut into segments, and nobody can tell but by time and memory."""

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.eager import (
    grad_fn,
    segments,
    trace_buffer,
)
from retrograd.eager.immediate_base import CallBase
from tests.eager.cutting import cut_after, never, same
from tests.functions.programs import random_program

CUTS = (1, 2, 3, 5, 8)


def losses(seed: int, dtype: Any, look: float = 0.0) -> list[Any]:
    """Values and gradients of two losses of a random program that share most of it."""
    rng = np.random.default_rng(seed)
    p = random_program(seed, dtype, length=14)
    leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
    values = list(leaves)
    for step in p.steps:
        values.append(step.of_tensors(*[values[i] for i in step.inputs]))
        if rng.random() < look:
            values[int(rng.integers(len(values)))].numpy()
    first, second = rg.sin(values[-1]).sum(), (values[-1] * values[-2].sum()).sum()
    if first.requires_grad:
        first.backward()
    if second.requires_grad:
        second.backward(retain_graph=True)
        second.backward()
    grads = [x.grad.numpy() if x.grad is not None else None for x in leaves]
    return [first.numpy(), second.numpy(), values[-2].numpy(), *grads]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(4)
def test_segments_give_the_bits_of_one_program(seed):
    dtype = np.float32 if seed % 2 else np.float64
    with never():
        expected = losses(seed, dtype)
    for n in CUTS:
        with cut_after(n):
            same(losses(seed, dtype), expected)
        with cut_after(n):
            same(losses(seed, dtype, look=0.3), expected)


def network(steps: int) -> list[Any]:
    nn.init.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 3))
    opt = optim.AdamW(model, lr=0.01)
    x = rg.tensor(np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    labels = np.arange(8) % 3
    found = []
    total = rg.tensor(0.0)
    for _ in range(steps):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optim.clip_grad_norm(model, 1.0)
        opt.step()
        total = total + loss.detach()
    found.append(total.numpy())
    return found + [p.numpy() for p in model.parameters()]


@pytest.mark.parametrize("n", CUTS)
@pytest.mark.sample(2)
def test_training_gives_the_bits_of_one_program(n):
    with never():
        expected = network(3)
    with cut_after(n) as cuts:
        same(network(3), expected)
        assert cuts


@pytest.mark.torch
@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_a_recurrent_network_against_torch(backend):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    rng = np.random.default_rng(0)
    w, u, b, x = (rng.normal(size=s) * 0.4 for s in [(6, 6), (3, 6), (6,), (5, 3)])

    def loss(given: Any, tanh: Any) -> Any:
        w, u, b, x = given
        h = x @ u
        total = 0.0
        for k in range(60):
            h = tanh(h @ w + x @ u + b) * (1 - 0.001 * k)
            total = total + (h * h).mean()
        return total + h.sum()

    given = [torch.tensor(a, requires_grad=True) for a in (w, u, b, x)]
    expected = loss(given, torch.tanh)
    expected.backward()
    with rg.backend(backend), cut_after(50) as cuts:
        mine = [rg.tensor(a, requires_grad=True) for a in (w, u, b, x)]
        value = loss(mine, rg.tanh)
        value.backward()
        assert len(cuts) > 5
        np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
        for a, t in zip(mine, given, strict=True):
            assert a.grad is not None
            np.testing.assert_allclose(a.grad.numpy(), t.grad.numpy(), rtol=1e-9, atol=1e-12)


def chain(n: int, x: Any) -> Any:
    y = x
    for _ in range(n):
        y = rg.tanh(y * 1.001 + 0.01)
    return y


@pytest.mark.slow
def test_a_chain_that_repeats_is_one_form():
    x = rg.tensor(0.5, requires_grad=True)
    chain(3000, x).backward()
    assert x.grad is not None
    first = x.grad.numpy()
    known = rg.cache_stats()["misses"]
    x.grad = None
    y = chain(3000, x)
    segment = grad_fn_of(y)
    y.backward()
    same([x.grad.numpy()], [first])  # type: ignore[attr-defined]
    assert rg.cache_stats()["misses"] == known
    assert segment is not None
    assert len(segment.site.trace_nodes) < 3 * trace_buffer.FULL


def grad_fn_of(y: rg.Tensor) -> Any:
    """The segment before the one in which a tensor is being computed."""
    found = y._buffer.arrays[0].prim
    return found.grad_fn and found.grad_fn.segment  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_long_chain_takes_little_memory():
    def resident() -> float:
        pages = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc to read the memory of this process from")
    x = rg.tensor(0.5, requires_grad=True)
    chain(2000, x).backward()
    before = resident()
    y = chain(60_000, x)
    assert resident() - before < 40
    y.backward()
    assert resident() - before < 60
    assert x.grad is not None
    assert 0 <= x.grad.item() < 1


def test_a_recording_that_never_repeats():
    """It is interpreted, in bounded pieces, and its tables are bounded."""
    rng = np.random.default_rng(1)
    x = rg.tensor(0.5, requires_grad=True)
    y: Any = x
    z: Any = 0.5
    slope: Any = 1.0
    for k in rng.integers(0, 4, 1500):
        if k == 0:
            y, z, slope = y * 1.01, z * np.float32(1.01), slope * 1.01
        elif k == 1:
            y, z = y + 0.125, z + np.float32(0.125)
        elif k == 2:
            y, slope, z = rg.tanh(y), slope * (1 - np.tanh(z) ** 2), np.tanh(z)
        else:
            y, z, slope = -y, -z, -slope
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "LONGEST", 512)
        y.backward()
    assert x.grad is not None
    np.testing.assert_allclose(y.item(), z, rtol=1e-4)
    np.testing.assert_allclose(x.grad.item(), slope, rtol=1e-3)


# -- the rules -------------------------------------------------------------------------------------
def longer(x: Any, n: int = 12) -> Any:
    for k in range(n):
        x = x * (1.0 + 0.25 * k)
    return x


@pytest.fixture
def cutting() -> Iterator[None]:
    with cut_after(4):
        yield


def leaf(*values: float) -> rg.Tensor:
    return rg.tensor(list(values) or [1.0, 2.0], requires_grad=True)


FACTOR = float(np.prod([1.0 + 0.25 * k for k in range(12)]))


@pytest.mark.usefixtures("cutting")
class TestRules:
    """What holds of tensors holds of those that were computed in segments."""

    def test_a_second_backward_is_an_error_unless_the_first_retains_the_graph(self) -> None:
        x = leaf()
        loss = longer(x).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 2 * FACTOR, rtol=1e-6)
        with pytest.raises(rg.GradientError, match="second time"):
            loss.backward()
        with pytest.raises(rg.GradientError, match=r"second time.*test_segments\.py"):
            (longer(x).sum() + longer(loss)).backward()

    def test_losses_share_a_trunk(self) -> None:
        x = leaf()
        h = longer(x)
        one, two = longer(h).sum(), (h * h).sum()
        one.backward()
        two.backward()
        assert x.grad is not None
        expected = FACTOR**2 + 2 * FACTOR**2 * np.array([1.0, 2.0])
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)

    def test_a_parameter_that_was_changed_meanwhile(self) -> None:
        x = leaf()
        loss = longer(x).sum()
        x.replace(np.array([5.0, 5.0], np.float32))
        with pytest.raises(rg.GradientError, match="optimizer"):
            loss.backward()
        np.testing.assert_allclose(loss.item(), 3 * FACTOR, rtol=1e-6)

    def test_seeds(self) -> None:
        x = leaf()
        y = longer(x)
        for seed in (np.array([1.0, 3.0], np.float32), rg.tensor([1.0, 3.0]), [1.0, 3.0]):
            y.backward(seed, retain_graph=True)
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 3 * FACTOR * np.array([1, 3]), rtol=1e-6)
        with pytest.raises(rg.ShapeError, match="seed"):
            y.backward(rg.ones(3))
        with pytest.raises(rg.GradientError, match="scalar"):
            y.backward()

    def test_frozen_for_a_while(self) -> None:
        x, w = leaf(), leaf()
        loss = longer(x * w).sum()
        x.requires_grad_(False)
        loss.backward(retain_graph=True)
        assert x.grad is None
        x.requires_grad_()
        loss.backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), FACTOR * w.numpy(), rtol=1e-6)

    def test_switching_gradients_on_a_result(self) -> None:
        x = leaf()
        y = longer(x)
        z = longer(y * 1.0)
        assert not y.is_leaf
        y.requires_grad_(False)
        z.sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), FACTOR**2, rtol=1e-5)
        assert y.is_leaf

    def test_no_grad_and_detach_cut_the_history(self) -> None:
        x = leaf()
        y = longer(x)
        with rg.no_grad():
            z = longer(y)
        assert not z.requires_grad
        ((z + longer(y.detach())) * x).sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 2 * FACTOR**2 * np.array([1, 2]), rtol=1e-5)

    def test_nodes_are_those_of_the_whole_history(self) -> None:
        x = leaf()
        y = longer(x)
        z = longer(y)
        count, todo = 0, [z.node]
        seen = set(todo)
        for node in todo:
            count += node.op == "mul"
            todo += [n for n in dict.fromkeys(node.inputs) if n not in seen]
            seen.update(node.inputs)
        assert count == 24
        assert x.node in seen
        assert y.node in seen
        (z * y).sum().backward()  # on nodes, half of it
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 2 * FACTOR**3 * np.array([1, 2]), rtol=1e-4)

    def test_transforms_go_through(self) -> None:
        x = leaf()
        y = longer(x)
        g = rg.grad(lambda a: (a * a * y).sum())(y)  # the closure counts as constant
        np.testing.assert_allclose(g.numpy(), 2 * FACTOR**2 * np.array([1, 4]), rtol=1e-5)
        h = rg.grad(lambda a: rg.grad(lambda b: longer(b * b * b).sum())(a).sum())(x)
        np.testing.assert_allclose(h.numpy(), 6 * FACTOR * x.numpy(), rtol=1e-5)
        rg.grad(lambda a: longer(a * a).sum())(y).sum().backward()
        assert x.grad is not None  # d/dx of 2 F (F x)
        np.testing.assert_allclose(x.grad.numpy(), 2 * FACTOR**2, rtol=1e-5)
        assert rg.jit(lambda a: a * 2.0)(y).tolist() == (y.numpy() * 2).tolist()
        v = rg.vmap(lambda a: longer(a))(y)
        np.testing.assert_allclose(v.numpy(), FACTOR**2 * np.array([1, 2]), rtol=1e-5)

    def test_a_tape_starts_in_the_middle(self) -> None:
        x = leaf()
        y = longer(x)
        with rg.Tape() as tape:
            z = y + 1.0
        assert [e.op for e in tape][-1] == "add"
        (longer(z)).sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), FACTOR**2, rtol=1e-5)

    def test_errors_come_when_somebody_looks_and_name_the_line(self) -> None:
        x = leaf()
        bad = rg.take(x * 1.5, rg.tensor([0, 7]))  # the line that is named
        line = longer.__code__.co_firstlineno  # some other line
        z = longer(bad)
        with pytest.raises(rg.errors.IndexRangeError, match=r"test_segments\.py:\d+") as found:
            z.numpy()
        assert "the line that is named" in str(found.value)
        assert f":{line + 2} " not in str(found.value)
        assert longer(x).numpy().shape == (2,)

    def test_an_index_out_of_range_in_the_gradient_names_the_line(self) -> None:
        x = leaf(1.0, 2.0, 3.0)
        i = rg.tensor([0, 2])
        y = longer(rg.take(longer(x), i))
        y.sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), FACTOR**2 * np.array([1, 0, 1]), rtol=1e-5)

    def test_looks_without_end(self) -> None:
        x = leaf()
        y = x
        for k in range(40):
            y = y * 1.0625
            if k % 2:
                y.numpy()
        y.sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 1.0625**40, rtol=1e-5)

    def test_contractions_are_not_computed_twice(self) -> None:
        w = rg.tensor(np.eye(3, dtype=np.float32) * 1.5, requires_grad=True)
        y = rg.ones((3, 3))
        for _ in range(10):
            y = rg.tanh(y @ w)
        y.sum().numpy()
        last: Any = grad_fn.grad_fn_of(y.leaf_or_node)
        found: list[Any] = [grad_fn.grad_fn_of(x) for x in last.segment.arrays]
        kept = [f.node.op for before in found if before for f in before.segment.values]
        assert "dot_general" in kept

    @pytest.mark.slow
    def test_history_is_let_go(self) -> None:
        def alive() -> int:
            gc.collect()
            return sum(isinstance(x, grad_fn.GradFn | CallBase) for x in gc.get_objects())

        before = alive()
        x = leaf()
        y = longer(x, 400).sum()
        assert alive() > before + 20
        y.backward()
        assert alive() == before
        y = longer(x, 400).sum()
        del y
        longer(rg.tensor(1.0)).numpy()  # until then the buffer knows what was in it
        assert alive() == before

    def test_threads_extend_one_history(self) -> None:
        x = leaf()
        y = longer(x)
        results: list[Any] = [None] * 4

        def work(k: int) -> None:
            for _ in range(20):
                results[k] = longer(y * float(k + 1)).numpy()

        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
        for k, found in enumerate(results):
            np.testing.assert_allclose(found, (k + 1) * FACTOR**2 * x.numpy(), rtol=1e-5)
        y.sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), FACTOR, rtol=1e-5)


def test_a_fan_of_different_numbers_is_converted_at_once():
    """A program of a segment takes its numbers as parts of one row, each rounded as NumPy does."""
    numbers = [0.1 + k / 7 for k in range(40)] + [5, 2**53, -7, 1e300, 1e-60]

    def fan():
        x = rg.tensor([1.0, -2.0], requires_grad=True)
        y = x
        for c in numbers:
            y = y + x * c
        return x, y, y._buffer

    fan()
    x, y, p = fan()
    y.numpy()
    (plan,) = [found[1] for found in p.site.plans.values()]
    rows = [a for a in plan._numbers(p.numbers) if a.base is not None]
    assert len(rows) == len(numbers)
    assert len({id(a.base) for a in rows}) == 1
    with np.errstate(over="ignore"):
        expected = [np.float32(c) for c in numbers]
    assert sorted(a.item() for a in rows) == sorted(c.item() for c in expected)
    y.backward(rg.ones(2))
    assert x.grad is not None
    assert x.grad.numpy()[0] == np.inf
