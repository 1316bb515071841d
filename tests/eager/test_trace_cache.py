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
from tests.functions.programs import random_program

X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)


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


def parameter(*shape: int) -> rg.Tensor:
    return rg.tensor(np.full(shape, 0.5, np.float32), requires_grad=True)


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
    monkeypatch.setattr(quick_dispatch, "page_of", lambda handles: None)
    assert run() == first


def test_updates_stay_on_pages(dissolved):
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


# -- what is told apart ---------------------------------------------------------------------------
def test_the_same_operations_on_other_operands():
    x, y = rg.tensor(2.0), rg.tensor(3.0)
    for a, b in [(x, y), (x, x), (y, y), (y, x), (x, y)]:
        c = a * b
        assert (c + a * a).item() == a.item() * b.item() + a.item() ** 2


@pytest.mark.parametrize(
    "value", [0.3, 0.7, 1, 1.0, 2, 0, 0.0, -0.0, 0.5, 3, True, float("inf"), float("nan"), 1e300]
)
def test_numbers_of_every_kind(value):
    x = rg.tensor([1.5, -2.0])
    with np.errstate(all="ignore"):
        right = np.float32(value)
        for _ in range(2):
            np.testing.assert_array_equal((x * value).numpy(), x.numpy() * right)
            np.testing.assert_array_equal((value - x).numpy(), right - x.numpy())
            signs = np.signbit((x * value).numpy())
            if value == value:
                np.testing.assert_array_equal(signs, np.signbit(x.numpy() * right))


def test_integers_keep_their_kind():
    i = rg.tensor([1, 2])
    assert [(i + n).dtype for n in (1, 1.0, True, 1)] == [rg.int64, rg.float32, rg.int64, rg.int64]
    with pytest.raises(rg.DTypeError, match="does not fit"):
        rg.tensor([1], dtype="int8") + 1000


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


# -- what somebody holds --------------------------------------------------------------------------
def test_what_is_held_is_computed_along_and_what_is_not_is_not():
    x = rg.tensor(np.tile(X, (8, 1)))
    h = x * 2.5
    y = (h + 1.5).sum()
    other = rg.exp(x)
    y.item()
    assert h.is_computed
    assert not other.is_computed
    np.testing.assert_allclose(other.numpy(), np.exp(x.numpy()), rtol=1e-6)


def test_gradients_are_computed_along_with_their_loss_and_the_other_way_round():
    w = parameter(3)
    for look in (lambda loss: loss.item(), lambda loss: w.grad.numpy()):
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        look(loss)
        assert loss.is_computed
        assert w.grad is not None
        assert w.grad.is_computed


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
    assert len(trace_buffer.CURRENT.page.arrays) <= trace_buffer.FULL + 10


def test_what_never_repeats_is_forgotten(monkeypatch):
    monkeypatch.setattr(trace_cache, "PLANS", 8)
    monkeypatch.setattr(trace_cache, "FORMS", 200)
    monkeypatch.setattr(trace_cache, "CAPACITY", 4)
    with rg.backend("reference"):
        for n in range(60):
            x = rg.tensor(np.ones(n + 1, np.float32))
            for k in range(n % 5):
                x = x * (1.5 + k) + x
            assert x.sum().item() >= n
            assert len(SITES) <= 4
            assert all(len(p.plans) <= 9 and len(p.forms) < 250 for p in SITES.values())


def test_a_running_total_does_not_grow():
    w, total = parameter(4), rg.tensor(0.0)
    for _ in range(20):
        loss = (w * w).sum()
        loss.backward()
        w.replace(w.numpy() - 0.1 * w.grad.numpy())
        w.grad = None
        total = total + loss
        assert len(total._page.arrays) < 10
    assert total.item() > 0


# -- nodes are asked for --------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("when", ["some", "all", "graph"])
@pytest.mark.sample(6)
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


def test_a_tape_sees_what_came_before_as_an_input():
    x = rg.tensor(2.0, requires_grad=True)
    y = x * x
    with rg.Tape() as tape:
        z = y + 1.0
    assert [e.op for e in tape] == ["input", "constant", "add"]
    assert [e.value for e in tape] == [4, 1, 5]
    assert z.item() == 5


def test_two_pages_meet():
    w = parameter(2)
    first = (w * w).sum()
    first.item()  # tracked, and its page is left
    second = (w * 3.5).sum()
    second.item()
    (first * second).backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), [1 * 3.5 + 0.5 * 3.5] * 2)


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


def test_a_function_that_returns_what_it_was_given_may_be_called_again():
    """What is on a page under the name of an array has no value of its own to compute."""
    x = rg.tensor([2.0, -3.0])
    for _ in range(3):
        assert (+x).tolist() == rg.positive(x).tolist() == [2, -3]
        assert rg.reshape(x, (2,)).tolist() == rg.permute_dims(x, (0,)).tolist() == [2, -3]


Z = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
T = rg.tensor(Z)
B = rg.tensor(Z > 2)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    # Arguments that are equal, or nearly so, and mean something else.
    *[(rg.Tensor.__getitem__, (T, key), {}) for key in (
        0, 1, True, False, -1, None, ..., (0,), (0, 1), (1, 0), (None, 0), (0, None), (..., 0),
        (0, ...), slice(1), slice(None, 1), slice(0, 1), slice(1, None), slice(None, None, 2),
        (slice(1, None), 0), (0, slice(1, None)), (slice(None), None), [1, 0], [0, 1], (),
    )],
    *[(rg.sum, (T,), options) for options in (
        {}, {"axis": 0}, {"axis": 1}, {"axis": (0,)}, {"axis": (0, 1)}, {"axis": [0, 1]},
        {"axis": 0, "keepdims": True}, {"axis": 1, "keepdims": False}, {"keepdims": True},
        {"dtype": rg.float64}, {"dtype": rg.float32}, {"dtype": "float64"},
    )],
    (rg.sum, (T, 0), {}), (rg.sum, (T, 1), {}),
    *[(rg.reshape, (T, shape), {}) for shape in ((24,), (-1,), 24, [24], (4, 6), (6, 4), [4, 6])],
    *[(rg.clip, (T, low, high), {}) for low, high in (
        (0, 1), (0.0, 1.0), (-0.0, 1.0), (0, 1.5), (0.5, 1), (None, 1), (1, None), (False, True),
    )],
    (rg.clip, (T,), {"min": 1}), (rg.clip, (T,), {"max": 1}), (rg.clip, (T, 1), {}),
    *[(rg.where, given, {}) for given in (
        (B, T, T), (B, T, -T), (B, -T, T), (B, T, 0), (B, T, 0.5), (B, T, 1), (B, T, True),
        (B, 0.5, T), (~B, T, 0),
    )],
    *[(rg.concat, (parts,), options) for options in ({}, {"axis": 1}, {"axis": None}) for parts in (
        [T, -T], (T, -T), [-T, T], [T, T, T], [T],
    )],
    *[(rg.astype, (T, dtype), {}) for dtype in (rg.float64, rg.float32, rg.int32, rg.bool)],
    *[(rg.einsum, given, {}) for given in (
        ("ijk,ijk->i", T, T), ("ijk,ijk->j", T, T), ("ijk,ijk->i", T, -T), ("ijk->kji", T),
    )],
    (rg.take, (T, rg.tensor([1, 0])), {"axis": 1}), (rg.take, (T, rg.tensor([0, 1])), {"axis": 1}),
    (rg.full_like, (T, 1), {"dtype": None}), (rg.full_like, (T, True), {"dtype": None}),
    (rg.take, (T, [1, 0]), {"axis": 1}), (rg.take, (T, np.array([1, 0])), {"axis": 1}),
]  # fmt: skip


def outcomes(calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]) -> list[str]:
    """What calls give that are recorded one after the other, before any is computed."""
    found: list[Any] = []
    for f, args, options in calls:
        try:
            found.append(f(*args, **options))
        except (rg.RetrogradError, TypeError) as error:
            found.append(type(error).__name__)
    return [
        y if isinstance(y, str) else f"{y.dtype} {y.shape} {y.numpy().tobytes().hex()}"
        for y in found
    ]


def test_calls_on_one_line_are_told_apart_by_their_arguments():
    """However often a line has run, with whatever arguments, a call gives what it gives alone."""
    alone = []
    for call in CALLS:
        SITES.clear()
        alone += outcomes([call])
    assert len(set(alone)) > 50
    for _ in range(3):
        assert outcomes(CALLS) == alone
        assert outcomes(CALLS[::-1]) == alone[::-1]


def test_keys_of_calls_tell_equal_values_of_other_types_apart():
    x = rg.tensor(Z) * 1.0
    alike: tuple[tuple[Any, ...], ...] = (
        (1, True, 1.0, "1.0", (1,), [1]), (0, False, 0.0, -0.0, (), []),
        ((None, 1, None), slice(1), [None, 1, None]), (rg.float32, rg.float64, id(rg.float32)),
    )  # fmt: skip
    for values in alike:
        keys = [call_cache.options(x._page, (x, v), {}, []) for v in values]
        keys.append(call_cache.options(x._page, (x,), {"axis": values[0]}, []))
        assert None not in keys
        assert len(set(keys)) == len(values) + 1
    for v in (np.float32(1), np.ones(2), [1.5], ((1,), 2), object(), rg.int32.dtype):
        assert call_cache.options(x._page, (x, v), {}, []) is None


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


@pytest.mark.parametrize("grad", [True, False])
def test_gradients_through_calls_that_were_seen(grad: bool) -> None:
    def use(a: rg.Tensor, b: rg.Tensor) -> rg.Tensor:
        y = rg.concat([a * b, b], axis=0)
        y = rg.where(y > 0.1, y, a[0, 0]) + rg.concat([b, b], axis=0)
        return (rg.clip(y, -1.0, 1.0)[1:, ::2] * rg.reshape(y, (2, -1))[0, 0]).sum()

    rng = np.random.default_rng(0)
    for _ in range(5):
        arrays = [rng.normal(size=(2, 4)) for _ in range(2)]
        a, b = [rg.tensor(x, requires_grad=True) for x in arrays]
        expected = rg.grad(use, argnums=(0, 1))(*arrays)
        if grad:
            use(a, b).backward()
            assert [x.grad.numpy().tobytes() for x in (a, b)] == [
                g.numpy().tobytes() for g in expected
            ]
        else:
            with rg.no_grad():
                y = use(a, b)
            assert not y.requires_grad
            assert use(a, b).requires_grad
