"""Loops that repeat are looked up, not recorded again; and nobody can tell by the results."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.eager import (
    call_cache,
    lazy_tensor,
    quick_dispatch,
    trace_buffer,
    trace_cache,
)
from retrograd.eager.trace_cache import SITES
from tests.eager.recorded import X, Z, parameter


@pytest.fixture
def dissolved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The handles for whose nodes somebody has asked."""
    found: list[Any] = []
    real = trace_buffer.materialized_node

    def watched(h: Any) -> Any:
        found.append(h)
        return real(h)

    monkeypatch.setattr(lazy_tensor, "materialized_node", watched)
    return found


def plain(x: rg.Tensor) -> Callable[[], Any]:
    w, opt = (p := parameter(4, 1)), optim.SGD([p], lr=0.1)

    def step() -> Any:
        opt.zero_grad()
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step


def seen_early(x: rg.Tensor) -> Callable[[], Any]:
    w, opt = (p := parameter(4, 1)), optim.Adam([p], lr=0.1)

    def step() -> Any:
        opt.zero_grad()
        loss = ((x @ w) ** 2).mean()
        value = loss.item()
        loss.backward()
        opt.step()
        return value

    return step


def accumulated(x: rg.Tensor) -> Callable[[], Any]:
    w, opt = (p := parameter(4, 1)), optim.SGD([p], lr=0.1, momentum=0.9)

    def step() -> Any:
        opt.zero_grad()
        for k in range(3):
            loss = ((x * (1.3 + k) @ w) ** 2).mean() / 3
            loss.backward()
            loss.item()
        optim.clip_grad_norm([w], 1.0)
        opt.step()
        return w.tolist()

    return step


def with_total(x: rg.Tensor) -> Callable[[], Any]:
    w, opt = (p := parameter(4, 1)), optim.SGD([p], lr=0.1)
    box = [rg.tensor(0.0)]

    def step() -> Any:
        opt.zero_grad()
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        opt.step()
        box[0] = box[0] + loss
        return w.tolist()

    return step


def network(x: rg.Tensor) -> Callable[[], Any]:
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 3))
    opt = optim.AdamW(model, lr=0.01)
    noise = rg.random.Generator(3)
    labels = np.arange(8) % 3

    def step() -> Any:
        opt.lr = 0.01 * 0.9**3
        opt.zero_grad()
        logits = model(x + 0.1 * noise.normal((8, 4)))
        loss = nn.functional.cross_entropy(logits[::-1], labels[::-1])
        loss.backward()
        opt.step()
        with rg.no_grad():
            right = (model(x).argmax(axis=1) == labels).sum()
        return loss.item(), right.item()

    return step


LOOPS = [plain, seen_early, accumulated, with_total, network]


@pytest.mark.parametrize("make", LOOPS)
def test_a_loop_hits_on_every_iteration_but_the_first(make, dissolved):
    step = make(rg.tensor(X))
    step(), step()  # the second may start from state that the first has made
    dissolved.clear()
    before = rg.cache_stats()
    step()
    looks = rg.cache_stats()["hits"] - before["hits"]
    for _ in range(5):
        step()
    after = rg.cache_stats()
    assert after["misses"] == before["misses"]
    assert after["hits"] - before["hits"] == 6 * looks > 0
    assert dissolved == []


def test_the_second_iteration_hits():
    before = rg.cache_stats()
    step = plain(rg.tensor(X))
    step()
    between = rg.cache_stats()
    step()
    after = rg.cache_stats()
    assert between["misses"] - before["misses"] <= 1
    assert (after["hits"] - between["hits"], after["misses"] - between["misses"]) == (1, 0)


def test_calls_of_jit_functions_are_counted_too():
    f = rg.jit(lambda x: x * 2 + 1)
    before = rg.cache_stats()
    for _ in range(4):
        f(rg.tensor(X))
    after = rg.cache_stats()
    assert after["jit_misses"] - before["jit_misses"] == 1
    assert after["jit_hits"] - before["jit_hits"] == 3


@pytest.mark.parametrize("make", LOOPS)
def test_looked_up_or_recorded_on_nodes_the_bits_are_the_same(make, monkeypatch):
    def run() -> list[Any]:
        nn.init.seed(0)
        step = make(rg.tensor(X))
        return [step() for _ in range(5)]

    first = run()
    assert run() == first  # from the start with everything known
    SITES.clear()
    assert run() == first
    monkeypatch.setattr(quick_dispatch, "buffer_for", lambda handles: None)
    assert run() == first


def test_updates_stay_in_buffers(dissolved):
    x = rg.tensor(np.zeros((4, 3), np.float32), requires_grad=True)
    rows = np.array([0, 2, 0])
    for k in range(3):
        y = x * 2.5
        y = y.at[rows].add(rg.ones((3, 3)) * 1.5)
        y = y.at[1:2].set(y[0:1] * 3.5)
        y = y.at[rg.tensor([1, 2]) + 1].add(y[0:2])
        before = rg.cache_stats()["misses"]
        y.sum().backward()
        assert y.tolist() == [[3] * 3, [10.5] * 3, [4.5] * 3, [10.5] * 3]
        assert x.grad is not None
        assert x.grad.tolist() == [[22.5] * 3, [0] * 3, [2.5] * 3, [2.5] * 3]
        x.grad = None
        assert rg.cache_stats()["misses"] == before or k == 0
    assert dissolved == []


def test_numbers_of_numpy(dissolved):
    x = rg.tensor([1.5, -2.0])
    for _ in range(2):
        for value in (np.float32(0.3), np.float64(0.3), np.int64(3), np.sqrt(2), np.bool_(True)):
            y = x * value
            assert y.tolist() == pytest.approx([1.5 * value, -2.0 * value], rel=1e-6)
            assert y.dtype is rg.float32
    assert dissolved == []


def test_axes_that_are_equal_but_not_the_same():
    x = rg.tensor(X)
    assert x.sum(1).shape == (8,)
    assert x.sum(axis=(0, 1)).shape == ()
    assert x.sum(0, keepdims=True).shape == (1, 4)
    assert x.sum(0, keepdims=False).shape == (4,)
    assert x[0].shape == (4,)
    assert x[0:1].shape == (1, 4)
    assert x[:, None].shape == (8, 1, 4)


def test_names_and_lines_in_errors_are_those_of_this_time():
    x, i = rg.tensor([1.0, 2.0]), rg.tensor([0, 5])
    messages = []
    for _ in range(2):
        with pytest.raises(rg.errors.IndexRangeError) as first:
            rg.take(x, i).numpy()
        with pytest.raises(rg.errors.IndexRangeError) as second:
            rg.take(x, i).numpy()
        messages.append((str(first.value), str(second.value)))
    assert messages[0] == messages[1]
    assert messages[0][0] != messages[0][1]  # the line differs
    assert "test_trace_cache.py" in messages[0][0]


def test_no_grad_cuts_what_is_looked_up():
    w = parameter(2)
    for off in (False, True, False):
        if off:
            with rg.no_grad():
                y = w * w
        else:
            y = w * w
        assert y.requires_grad is not off
    assert not (w > 0).requires_grad


def test_recordings_nobody_holds_let_their_arrays_go():
    a = np.ones(1000, np.float32)
    for _ in range(trace_buffer.FULL + 10):
        x = rg.asarray(np.ones(10, np.float32)) + 1.5
    array = rg.asarray(a)
    ref = weakref.ref(array.node)
    y = array * 1.5
    y.numpy()
    del x, y, array
    gc.collect()
    assert ref() is None
    assert len(trace_buffer.CURRENT.buffer.arrays) <= trace_buffer.FULL + 10


def test_what_never_repeats_is_forgotten(monkeypatch):
    monkeypatch.setattr(trace_cache, "PLANS", 8)
    monkeypatch.setattr(trace_cache, "TRACE_NODES", 200)
    monkeypatch.setattr(trace_cache, "CAPACITY", 4)
    with rg.backend("reference"):
        for n in range(60):
            x = rg.tensor(np.ones(n + 1, np.float32))
            for k in range(n % 5):
                x = x * (1.5 + k) + x
            assert x.sum().item() >= n
            assert len(SITES) <= 4
            assert all(len(p.plans) <= 9 and len(p.trace_nodes) < 250 for p in SITES.values())


def test_a_running_total_does_not_grow():
    w, total = parameter(4), rg.tensor(0.0)
    for _ in range(20):
        loss = (w * w).sum()
        loss.backward()
        w.replace(w.numpy() - 0.1 * w.grad.numpy())
        w.grad = None
        total = total + loss
        assert len(total._buffer.arrays) < 10
    assert total.item() > 0


# -- optimizers -----------------------------------------------------------------------------------
def test_options_changed_on_the_way_take_effect():
    def run(change: Callable[[optim.Optimizer], None]) -> list[float]:
        w = parameter(2)
        opt = optim.AdamW([w], lr=0.1)
        for k in range(6):
            if k == 3:
                change(opt)
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
        return w.tolist()

    base = run(lambda opt: None)
    for name, value in [("weight_decay", 0.5), ("betas", (0.5, 0.9)), ("lr", 0.3), ("eps", 0.1)]:
        changed = run(lambda opt, n=name, v=value: opt.param_groups[0].update({n: v}))  # type: ignore[misc]
        assert changed != base
        assert run(lambda opt, n=name, v=value: opt.param_groups[0].update({n: v})) == changed  # type: ignore[misc]


class Growing(optim.SGD):
    """A user's optimizer, which depends on more than its options."""

    factor = 1.0

    def move(self, p: Any, g: Any, slots: Any, shared: Any, options: Any) -> Any:
        self.factor += 1
        return super().move(p, g * self.factor, slots, shared, options)


def test_an_optimizer_of_the_user_is_asked_in_every_step():
    w = rg.tensor(0.0, requires_grad=True)
    opt = Growing([w], lr=1.0)
    seen = []
    for _ in range(4):
        opt.zero_grad()
        (w * 1.0).backward()
        opt.step()
        seen.append(w.item())
    assert seen == [-2, -5, -9, -14]


def test_threads_share_parameters():
    w = parameter(4, 1)
    results: list[Any] = [None] * 4

    def work(k: int) -> None:
        x = rg.tensor(X[k:])
        found = []
        for n in range(50):
            y = x @ w
            for _ in range(n % 4):
                y = y * (1.5 + k) + w.sum()
            found.append((y * y).sum().item())
        results[k] = found

    alone = []
    for k in range(4):
        work(k)
        alone.append(results[k])
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == alone


@pytest.mark.slow
def test_threads_look_at_what_another_is_recording():
    """What a thread records may be looked at by others at any moment, and used by them."""
    x = rg.tensor(X)
    made: list[Any] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set() or made:
            try:
                k, y = made.pop()
            except IndexError:
                continue
            try:
                np.testing.assert_allclose((y * 2.5 + y).numpy(), X * 1.5**k * 3.5, rtol=1e-5)
                np.testing.assert_allclose(y.numpy(), X * 1.5**k, rtol=1e-5)
            except BaseException as error:
                failures.append(error)

    others = [threading.Thread(target=look) for _ in range(3)]
    for t in others:
        t.start()
    y = x
    for n in range(600):
        y = y * 1.5 if n % 12 else x
        made.append((n % 12, y))
    done.set()
    for t in others:
        t.join()
    assert failures == []


def test_keys_of_calls_tell_equal_values_of_other_types_apart():
    x = rg.tensor(Z) * 1.0
    alike: tuple[tuple[Any, ...], ...] = (
        (1, True, 1.0, "1.0", (1,), [1]), (0, False, 0.0, -0.0, (), []),
        ((None, 1, None), slice(1), [None, 1, None]), (rg.float32, rg.float64, id(rg.float32)),
    )  # fmt: skip
    for values in alike:
        keys = [call_cache.options(x._buffer, (x, v), {}, []) for v in values]
        keys.append(call_cache.options(x._buffer, (x,), {"axis": values[0]}, []))
        assert None not in keys
        assert len(set(keys)) == len(values) + 1
    for v in (np.float32(1), np.ones(2), [1.5], ((1,), 2), object(), rg.int32.dtype):
        assert call_cache.options(x._buffer, (x, v), {}, []) is None


def test_calls_that_were_seen_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is looked up, nothing is looked up the long way when it comes for the third
    time, but where an index is an array, or the result what was given."""
    long: list[Any] = []
    made = call_cache._Key

    def key(f: Callable[..., Any]) -> Any:
        long.append(f)
        return made(f)

    x = rg.tensor(Z) * 1.0

    def use(x: rg.Tensor) -> list[Any]:
        y = x * 2.0
        return [
            rg.where(y > 0, y, 0.5), rg.concat([y, x, y], axis=1), rg.reshape(y, (4, 6)),
            y[1:, None], rg.clip(y, 0.5, 2.5), rg.sum(y, axis=(0, 1)), rg.astype(y, rg.float64),
            y[..., 0], rg.einsum("ijk,ijk->i", y, x), rg.matmul(y, rg.swapaxes(y, 1, 2)),
        ]  # fmt: skip

    for _ in range(3):
        monkeypatch.setattr(call_cache, "_Key", key)
        long.clear()
        for y in use(x):
            y.numpy()
    assert long == []
