"""What runs at once has the bits of what is recorded, and makes programs for kinds of calls."""

import math
import random
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import trace_buffer, trace_cache
from retrograd.eager.immediate import call_kind, dispatch
from retrograd.eager.immediate_base import compiled
from retrograd.eager.program_cache import PROGRAMS
from retrograd.eager.trace_buffer import CURRENT, TraceBuffer
from retrograd.eager.trace_cache import SITES, TraceSite
from retrograd.runtime.executors.tiered import TieredProgram
from retrograd.tuning import TUNING
from tests.eager import test_bits


@pytest.fixture
def at_once(monkeypatch):
    """Operations run at once from the first one on."""
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)


def fresh():
    trace_buffer.end_run()
    trace_buffer.CURRENT.buffer.close()
    SITES.clear()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(4)
def test_bits_are_those_of_a_recording(seed, monkeypatch):
    steps = test_bits.steps_of(seed)
    expected = test_bits.computed(steps)
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    fresh()
    assert test_bits.computed(steps) == expected
    fresh()
    assert test_bits.computed(steps, random.Random(seed)) == expected


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(4)
def test_bits_where_a_run_begins_in_the_middle(seed, monkeypatch):
    """Some of a program is recorded, and the rest runs at once, or the other way round."""
    steps = test_bits.steps_of(seed)
    expected = test_bits.computed(steps)
    choose = random.Random(seed)
    monkeypatch.setattr(trace_cache.TraceSite, "opens", lambda self: choose.random() < 0.5)
    for k in range(3):
        fresh()
        assert test_bits.computed(steps, random.Random(k)) == expected


def mlp_step(n, params, data):
    x, y = rg.tensor(data[:n]), rg.tensor(np.arange(n) % 3)
    h = rg.relu(x @ params[0] + params[1])
    loss = rg.nn.functional.cross_entropy(h @ params[2], y)
    loss.backward()
    got = [p.grad.numpy() for p in params]
    for p in params:
        p.grad = None
    return loss.item(), got


def parameters():
    rng = np.random.default_rng(0)
    shapes = (5, 8), (8,), (8, 3)
    return [rg.tensor(rng.normal(size=s), requires_grad=True) for s in shapes]


def test_sizes_that_change_make_no_programs():
    """After some steps of other sizes, all that is needed is there for any size."""
    params, data = parameters(), np.random.default_rng(1).normal(size=(64, 5))
    for n in (2, 7, 3, 11, 5, 13, 64, 6, 9, 31, 33):
        mlp_step(n, params, data)
    before, kept = rg.cache_stats()["misses"], len(PROGRAMS)
    for n in range(34, 60):
        mlp_step(n, params, data)
    assert rg.cache_stats()["misses"] == before
    assert len(PROGRAMS) == kept


def test_gradients_of_sizes_that_change_are_those_of_a_recording(monkeypatch):
    params, data = parameters(), np.random.default_rng(1).normal(size=(64, 5))
    found = [mlp_step(n, params, data) for n in (9, 2, 1, 17, 5, 33, 1, 2)]
    monkeypatch.setattr(TUNING, "unknown_recordings", 10**6)
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    fresh()
    for n, (loss, got) in zip((9, 2, 1, 17, 5, 33, 1, 2), found, strict=True):
        expected, gradients = mlp_step(n, params, data)
        assert loss == pytest.approx(expected, rel=1e-14)
        for a, b in zip(got, gradients, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def tree(rng, w):
    """The loss of a random tree, whose structure is another one each time."""
    nodes = [w[rng.randrange(4)] for _ in range(rng.randrange(2, 9))]
    while len(nodes) > 1:
        i = rng.randrange(len(nodes) - 1)
        nodes[i : i + 2] = [rg.tanh(nodes[i] * nodes[i + 1] + nodes[i][::2].sum() * 0.3)]
    return nodes[0].sum()


def test_structures_that_change_make_no_programs():
    rng = random.Random(0)
    w = rg.tensor(np.random.default_rng(0).normal(size=(4, 6)), requires_grad=True)
    for _ in range(16):
        tree(rng, w).backward()
    before = rg.cache_stats()["misses"]
    for _ in range(20):
        tree(rng, w).backward()
    assert rg.cache_stats()["misses"] == before


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(5))
def test_gradients_of_trees_against_finite_differences(seed):
    data = np.random.default_rng(seed).normal(size=(4, 6))
    w = rg.tensor(data, requires_grad=True)
    tree(random.Random(seed), w).backward()
    for i, j in ((0, 0), (1, 3), (3, 5)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = data.copy()
            moved[i, j] += step
            ends.append(tree(random.Random(seed), rg.tensor(moved)).item())
        assert w.grad is not None
        assert w.grad.numpy()[i, j] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def loop(x, n):
    for _ in range(n):
        y = (x * 1.5).sum()
        y.backward()
        x.grad.numpy()
        x.grad = None


def runs_until_recorded(weight=1.0):
    """How often something has to return."""
    return math.ceil(TUNING.returned_runs / (TUNING.call_nodes + weight))


def test_what_returns_is_recorded_again():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    loop(x, runs_until_recorded())
    site = next(iter(SITES.values()))
    assert not site.recording
    loop(x, 1)
    assert site.recording
    made = rg.cache_stats()["misses"]
    loop(x, 10)
    assert site.recording
    assert rg.cache_stats()["misses"] <= made + 2
    loop(rg.tensor([1.0, 2.0, 3.0], requires_grad=True), 1)  # once is not often enough to give up
    assert site.recording


def test_what_does_not_return_costs_half_as_often_each_time():
    """What is recorded in vain is, of so many runs, what grows as their logarithm."""
    site = TraceSite()
    recordings = []
    for _ in range(100 * runs_until_recorded()):
        if site.opens():
            site.ran(7, 1.0)
        else:
            site.learns()  # other than before
            recordings.append(site)
    assert len(recordings) <= 7 * (TUNING.unknown_recordings + 1)


def test_what_is_looked_at_after_every_few_operations_ceases_to_be_recorded():
    x, site = rg.tensor([1.0, 2.0], requires_grad=True), TraceSite()
    site.recording = site.proven = True
    before = site.patience
    buffer = TraceBuffer(site)
    CURRENT.buffer = buffer
    buffer.begin()
    y = x
    for k in range(TUNING.looks):
        assert site.recording, k
        y = y * 1.5
        y.sum().item()
    assert not site.recording
    assert site.patience == TUNING.given_up * before
    assert y.tolist() == [1.5**TUNING.looks, 2 * 1.5**TUNING.looks]


def test_several_things_have_to_return_more_often_and_many_are_not_recorded():
    few, many = TraceSite(), TraceSite()
    most = 4 * 4 * runs_until_recorded()  # a program for each, and each returns less often
    for i in range(most // 2):
        few.ran(i % 4, 1.0)
        assert not few.recording
    for i in range(most // 2 + 4):
        few.ran(i % 4, 1.0)
    assert few.recording
    for i in range(400 * runs_until_recorded()):
        many.ran(i % (TUNING.recorded_kinds + 1), 1.0)
    assert not many.recording


def test_what_may_soon_be_recorded_is_not_compiled_before(monkeypatch):
    """Though it has run more often than other calls do before they are."""
    monkeypatch.setattr(TUNING, "interpreted_nodes", 5)
    monkeypatch.setattr(TUNING, "compiled_node", 0)
    monkeypatch.setattr(TUNING, "node_s", math.inf)  # the time that passes does not count
    monkeypatch.setattr(TUNING, "background_idle_s", 3600.0)
    for table in (PROGRAMS, call_kind._BY_SHAPES, call_kind._BY_CALL, call_kind._SEEN):
        table.clear()
    fresh()

    def compiled():
        found = [p for p in PROGRAMS.values() if isinstance(p, TieredProgram)]
        return [p.is_compiled for p in found]

    x = rg.tensor([1.0, 2.0], requires_grad=True)
    loop(x, runs_until_recorded())
    assert not any(compiled())
    loop(x, 2)
    assert compiled()[-1]
    site = TraceSite()
    for k in range(3):
        site.ran(k, 1.0)
        assert not site.returns
    for k in range(1000):
        site.ran(k % TUNING.recorded_kinds, 1.0)
    assert not site.returns or site.recording


def test_a_single_call_is_not_recorded():
    """A program of its own would be the same again."""
    x = rg.tensor(np.zeros((200, 200)))
    for _ in range(4 * runs_until_recorded()):
        rg.exp(x).numpy()
    assert not any(site.recording for site in SITES.values())


def test_larger_arrays_are_recorded_sooner():
    small, large = TraceSite(), TraceSite()
    for _ in range(5):
        small.ran(7, 1.0)
        large.ran(7, TUNING.returned_runs / 4)
    assert not small.recording
    assert large.recording


@pytest.mark.usefixtures("at_once")
def test_a_long_run_is_recorded(monkeypatch):
    """A chain that repeats within itself is cut and compiled before it ends."""
    x = y = rg.tensor(0.5, requires_grad=True)
    for _ in range(TUNING.long_run_calls + 100):
        y = y * 1.01
    assert trace_buffer.CURRENT.run is None
    assert trace_buffer.CURRENT.buffer.open
    y.backward()
    assert x.grad is not None
    expected = 1.0
    for _ in range(TUNING.long_run_calls + 100):
        expected = float(np.float32(expected * np.float32(1.01)))
    assert x.grad.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.usefixtures("at_once")
def test_what_cannot_run_at_once_is_recorded():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(rg.ShapeError, match="test_dispatch"):
        x + rg.ones(3)
    with pytest.raises(IndexError, match="test_dispatch"):
        x[5].item()
    y = rg.take(x, rg.tensor([7]))
    with pytest.raises(rg.errors.IndexRangeError, match="test_dispatch"):
        y.numpy()
    assert (x * 2.0).sum().item() == 6


@pytest.mark.usefixtures("at_once")
def test_operands_that_are_the_same():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 6]
    y = rg.asarray(x.detach().numpy())
    z = rg.tensor(y.numpy(), requires_grad=True)
    (z * y).sum().backward()  # the same numbers, but only one of them gets a gradient
    assert z.grad is not None
    assert z.grad.tolist() == [2, 3]


@pytest.mark.usefixtures("at_once")
def test_without_gradients_nothing_is_remembered():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    with rg.no_grad():
        y = rg.exp(x) * 2.5
    assert y.is_dehydrated()
    assert not y.requires_grad


@pytest.mark.usefixtures("at_once")
def test_composites_are_one_call():
    x = rg.tensor(np.eye(3), requires_grad=True)
    trace_buffer.end_run()
    x * 2.5  # a run begins
    run = trace_buffer.CURRENT.run
    assert run is not None
    before = run.calls
    loss = rg.nn.functional.cross_entropy(x, rg.tensor([0, 2, 1]))
    assert run.calls == before + 1
    loss.backward()
    p = np.exp(np.eye(3)) / np.exp(np.eye(3)).sum(1, keepdims=True)
    p[[0, 1, 2], [0, 2, 1]] -= 1
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), p / 3, rtol=1e-12)


@pytest.mark.skipif(compiled is None, reason="C serves no calls here")
@pytest.mark.parametrize("shape", [(3, 4), (300, 400)])
def test_constants_are_operands_that_c_knows(shape, monkeypatch):
    """`rg.zeros` and its like make no array at each call, and send none to Python."""
    calls = []
    run_call = dispatch.run_call

    def counted(*args, **kwargs):
        calls.append(1)
        return run_call(*args, **kwargs)

    monkeypatch.setattr(dispatch, "run_call", counted)
    w = rg.tensor(np.full(shape, 2.0), requires_grad=True)
    for make in (rg.zeros, rg.ones):
        y = make(shape, dtype=rg.float64)
        expected = 2.0 + (make is rg.ones)
        for _ in range(2000):  # C has the program once that is native code
            calls.clear()
            found = w + y
            if not calls:
                break
        assert not calls
        assert (found.detach().numpy() == expected).all()
    assert rg.ones(shape).tolist() == np.ones(shape).tolist()


def test_the_first_step_is_told_from_none_of_those_after_it(monkeypatch):
    """Neither by what tracing a function for the first time takes, nor by how the model was made:
    so a loop is known to return after two steps."""
    seen = []
    ran = TraceSite.ran

    def noted(site, what, weight):
        seen.append(what)
        ran(site, what, weight)

    monkeypatch.setattr(TraceSite, "ran", noted)
    fresh()
    w = rg.tensor(np.ones((5, 3), np.float32), requires_grad=True)
    rg.exp(w.detach() * 0.5)  # a run that goes on until something ends it
    optimizer = rg.optim.SGD([w], lr=0.1)
    seen.clear()
    for _ in range(3):
        h = rg.nn.functional.layer_norm(rg.nn.functional.gelu(w), (3,))
        loss = rg.nn.functional.cross_entropy(h * 1.0625, np.array([0, 1, 2, 1, 0]))
        loss.backward()
        optimizer.step()
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_constants_of_a_size_with_a_name_are_recorded():
    """They have no elements before a call says how many, and none are asked for."""
    n: Any = rg.Dim("N")
    for _ in range(3):
        z = rg.zeros((n, 4))
        assert (z * z + 1.0).shape == (n, 4)
        assert rg.exp(z).sum(axis=0).shape == (4,)
        assert rg.grad(lambda z: (z * z).sum())(z).shape == (n, 4)


def test_arrays_that_others_can_edit_are_not_copied_and_results_are_their_own():
    """Where no gradient is asked for; where one is, what the operation used stays."""
    array = np.arange(6.0, dtype=np.float32)
    x = rg.asarray(array)
    results = []
    for _ in range(3):
        results += [rg.reshape(x, (2, 3)), x + 1, rg.expand_dims(x, axis=0), rg.flip(x), x[1:3]]
    before = [np.array(y) for y in results]
    w = rg.ones(6, requires_grad=True)
    loss = (w * x).sum()
    array[:] = 7
    for y, right in zip(results, before, strict=True):
        np.testing.assert_array_equal(y.numpy(), right)
    np.testing.assert_array_equal((x + 1).numpy(), np.full(6, 8.0))
    loss.backward()
    np.testing.assert_array_equal(w.grad.numpy(), np.arange(6.0))
