"""Operations that run at once, in C: the bits of what Python makes of them, and without Python."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.accelerate import is_compiled
from retrograd.eager import immediate_base, trace_buffer
from retrograd.eager.grad_fn import Output
from retrograd.eager.immediate import call_kind, dispatch
from retrograd.eager.immediate.function_call import FunctionCall
from retrograd.eager.program_cache import PROGRAMS
from retrograd.eager.trace_cache import SITES
from retrograd.tuning import TUNING
from tests.eager import test_bits

pytestmark = pytest.mark.skipif(not is_compiled("immediate"), reason="no C compiler was found")


def begin_anew():
    trace_buffer.end_run()
    trace_buffer.CURRENT.buffer.close()
    SITES.clear()


def forget_programs():
    """Those that others have made may not be compiled yet."""
    for table in (PROGRAMS, call_kind._BY_SHAPES, call_kind._BY_CALL, call_kind._SEEN):
        table.clear()
    immediate_base.compiled.clear()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Operations run at once from the first one on, and are compiled at once."""
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    monkeypatch.setattr(TUNING, "interpreted_nodes", 0)
    for name in ("compiled_node", "compiled_product", "compiled_named_product"):
        monkeypatch.setattr(TUNING, name, 0)
    begin_anew()
    forget_programs()
    yield
    begin_anew()


@pytest.fixture
def in_python(monkeypatch):
    """The calls that Python has served, and ways back."""
    seen = []
    for owner, name in ((dispatch, "_run"), (FunctionCall, "pulled")):
        original = getattr(owner, name)

        def served(*args, original=original, name=name):
            seen.append(name)
            return original(*args)

        monkeypatch.setattr(owner, name, served)
    return seen


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(4)
def test_bits_are_those_of_a_recording(seed, monkeypatch):
    steps = test_bits.steps_of(seed)
    monkeypatch.setattr(TUNING, "unknown_recordings", 10**9)
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    expected = test_bits.computed(steps)
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    for _ in range(3):  # by Python, then by C where it can
        begin_anew()
        assert test_bits.computed(steps) == expected


def gradient(x):
    """The gradient of a leaf, which there is."""
    assert x.grad is not None
    return x.grad


def network(x, w, b, scale):
    return (rg.tanh(x @ w + b) * scale).mean()


def test_the_second_call_is_without_python(in_python):
    r = np.random.default_rng(0)
    w = rg.tensor(r.normal(size=(6, 5)), requires_grad=True)
    b = rg.tensor(r.normal(size=5), requires_grad=True)
    x = rg.tensor(r.normal(size=(7, 6)))
    found = []
    for _ in range(3):
        del in_python[:]
        w.grad = b.grad = None
        network(x, w, b, 1.7).backward()
        found.append((gradient(w).tolist(), gradient(b).tolist()))
    assert in_python == []
    assert found[0] == found[1] == found[2]


def test_sizes_that_have_names_are_served_whatever_they_are(in_python):
    r = np.random.default_rng(0)
    w = rg.tensor(r.normal(size=(6, 5)), requires_grad=True)
    b = rg.tensor(r.normal(size=5), requires_grad=True)
    for n in (7, 9, 12, 11, 10, 9):
        del in_python[:]
        x = r.normal(size=(n, 6))
        w.grad = None
        network(rg.tensor(x), w, b, 1.7).backward()
        y = np.tanh(x @ w.numpy() + b.numpy())
        slope = 1.7 * (1 - y * y) / (n * 5)
        np.testing.assert_allclose(gradient(w).numpy(), x.T @ slope, rtol=1e-12, atol=1e-15)
    assert in_python == []


def test_functions_of_several_results_are_served(in_python):
    """Tuples, lists and named tuples; results that have no gradient, or that nobody uses."""
    r = np.random.default_rng(0)
    x = rg.tensor(r.normal(size=(4, 6)), requires_grad=True)
    other = rg.tensor(r.normal(size=(4, 6)))
    a = x.numpy()
    for _ in range(3):
        del in_python[:]
        x.grad = None
        first, _unused, last = rg.split(x, 3, axis=1)
        largest = rg.topk(x, 2)
        values, places = rg.topk(other, 2)  # of which no gradient is asked for
        (first * last).sum().backward(retain_graph=True)
        y = (largest.values * 2.5).sum()
        y.backward()
        assert type(largest).__name__ == "TopK"
        assert largest.values.requires_grad
        assert not any(y.requires_grad for y in (largest.indices, values, places))
        order = np.argsort(-other.numpy(), 1)[:, :2]
        np.testing.assert_array_equal(places.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(other.numpy(), order, 1))
        expected = np.zeros_like(a)
        expected[:, :2], expected[:, 4:] = a[:, 4:], a[:, :2]
        rows = np.arange(4)[:, None]
        expected[rows, np.argsort(-a, 1)[:, :2]] += 2.5
        np.testing.assert_allclose(gradient(x).numpy(), expected, rtol=1e-15)
        with pytest.raises(rg.GradientError, match="second time"):
            y.backward()
    assert in_python == []


def test_numbers_are_told_apart_where_it_matters():
    x = rg.tensor([1.5, -2.0], dtype=rg.float32)
    for _ in range(3):
        for k in (3, 3.0, 2.5, 2, 2.0, 1, 0.0, -0.0, 1e300, 2**60, True):
            with np.errstate(over="ignore"):
                expected = x.numpy() * np.float32(k)
            assert (x * k).numpy().tobytes() == expected.tobytes(), k
        assert (x**2).tolist() == [2.25, 4.0]
        assert (2 - x).tolist() == [0.5, 4.0]
        assert (rg.tensor([1, 2]) * 3).tolist() == [3, 6]


def test_options_are_told_apart():
    x = rg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for _ in range(3):
        assert x.sum(axis=0).tolist() == [3, 5, 7]
        assert x.sum(axis=1).tolist() == [3, 12]
        assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
        assert rg.sum(x, axis=(0, 1)).item() == 15
        assert x.reshape(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
        assert x.reshape(6, 1).shape == (6, 1)
        assert rg.clip(x, 1, 4).sum().item() == 1 + 1 + 2 + 3 + 4 + 4
        assert rg.clip(x, 1.5, 4).sum().item() == 1.5 + 1.5 + 2 + 3 + 4 + 4
        assert rg.astype(x, rg.float32).dtype == rg.float32
        assert rg.astype(x, rg.int32).dtype == rg.int32


def test_the_same_tensor_twice_is_not_two_alike():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    y = rg.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(3):
        x.grad = y.grad = None
        (x * x).sum().backward()
        assert gradient(x).tolist() == [4, 6]
        (x * y).sum().backward()
        assert (gradient(x).tolist(), gradient(y).tolist()) == ([6, 9], [2, 3])


def test_modes_are_looked_at_each_time():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(3):
        assert (x * 2.5).requires_grad
        with rg.no_grad():
            assert not (x * 2.5).requires_grad
        with rg.backend("reference"):
            assert (x * 2.5).tolist() == [5, 7.5]
        with rg.Tape() as tape:
            y = (x * 2.5).sum()
        assert len(tape) > 0
        assert y.item() == 12.5
        assert rg.trace(lambda x: x * 2.5, x)(x).tolist() == [5, 7.5]
        assert rg.grad(lambda x: (x * 2.5).sum())(x).tolist() == [2.5, 2.5]


def test_errors_are_those_of_python():
    x = rg.tensor([2.0, 3.0])
    for _ in range(3):
        assert (x + x).tolist() == [4, 6]
        with pytest.raises(rg.ShapeError, match="test_immediate"):
            x + rg.ones(3)
        with pytest.raises(rg.errors.IndexRangeError, match="test_immediate"):
            rg.take(x, rg.tensor([5])).numpy()
        assert rg.take(x, rg.tensor([1])).tolist() == [3]


def test_empty_arrays_and_arrays_laid_out_otherwise():
    for _ in range(3):
        assert (rg.tensor(np.ones((0, 3))) * 2.5).shape == (0, 3)
        assert rg.tensor(np.ones((0, 3))).sum(axis=0).tolist() == [0, 0, 0]
        x = rg.asarray(np.arange(6.0).reshape(2, 3).T)
        assert (x * 2.5).tolist() == (np.arange(6.0).reshape(2, 3).T * 2.5).tolist()


@pytest.mark.slow
def test_a_long_chain_is_freed_without_recursion():
    x = rg.tensor([2.0], requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y * 1.0
    assert isinstance(y._state, Output)
    y.sum().backward()
    assert gradient(x).tolist() == [1]
    del y
    gc.collect()


def test_nothing_is_kept_alive():
    x = rg.tensor(np.ones(1000), requires_grad=True)
    for _ in range(3):
        y = rg.exp(x) * 2.5
        watched = weakref.ref(y._state.call)
        z = y.sum()
        del y
        assert watched() is not None  # the sum needs it
        z.backward()
        del z
        assert watched() is None
    array = rg.exp(x).numpy()
    assert sys.getrefcount(array) <= 3


def test_a_second_gradient_is_refused_or_kept():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert gradient(x).tolist() == [8, 12]
        with pytest.raises(rg.GradientError, match="second time"):
            y.backward()
        with pytest.raises(rg.GradientError, match="second time"):
            (y * 2.5).backward()


def test_nodes_are_made_when_somebody_asks():
    x = rg.tensor([2.0, 3.0], requires_grad=True)
    for _ in range(3):
        y = rg.exp(x) * x
        assert (y.node.op, y.node.inputs[0].op) == ("mul", "exp")
        second = rg.grad(lambda v: rg.grad(lambda u: (rg.exp(u) * u).sum())(v).sum())(x)
        np.testing.assert_allclose(second.numpy(), np.exp(x.numpy()) * (x.numpy() + 2))


def test_threads_share_kernels():
    failed = []

    def work(seed):
        r = np.random.default_rng(seed)
        w = rg.tensor(r.normal(size=(4, 3)), requires_grad=True)
        for _ in range(60):
            n = int(r.integers(2, 300))
            x = r.normal(size=(n, 4))
            k = float(r.normal())
            w.grad = None
            (rg.tanh(rg.tensor(x) @ w) * k).sum().backward()
            y = np.tanh(x @ w.numpy())
            if not np.allclose(gradient(w).numpy(), x.T @ (k * (1 - y * y)), rtol=1e-9, atol=1e-12):
                failed.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert failed == []


def test_large_arrays_run_without_the_lock_and_on_several_threads():
    r = np.random.default_rng(0)
    x, w = r.normal(size=(300, 200)), r.normal(size=(200, 180))
    for threads in (1, 2):
        with rg.num_threads(threads):
            for _ in range(4):
                a = rg.tensor(x, requires_grad=True)
                (a @ rg.tensor(w)).sum().backward()
                np.testing.assert_allclose(
                    gradient(a).numpy(), np.broadcast_to(w.sum(1), x.shape), rtol=1e-12
                )


def test_many_arrays_are_joined():
    r = np.random.default_rng(0)
    for n in (9, 30, 90):
        xs = [rg.tensor(r.normal(size=(2, 3)), requires_grad=True) for _ in range(n)]
        z = rg.stack(xs, axis=1) * 2.5
        assert z.shape == (2, n, 3)
        (z * z).sum().backward()
        for x in xs:
            np.testing.assert_allclose(gradient(x).numpy(), 12.5 * x.numpy())
        z = rg.concat(xs, axis=-1)
        assert z.shape == (2, 3 * n)
        np.testing.assert_array_equal(z.numpy(), np.concatenate([x.numpy() for x in xs], -1))
        with pytest.raises(rg.ShapeError):
            rg.stack([*xs, rg.ones(2)])


def test_whole_numbers_that_are_sizes_need_no_array():
    """To the program each is an operand without an array, whatever the stack had in its place."""
    generator = rg.random.Generator(0)
    for n in range(3, 40):
        drawn = generator.uniform((n, 1 + n % 5)).numpy()
        moved = rg.reshape(rg.tensor(drawn), (1 + n % 5, n)) * 2.0
        np.testing.assert_array_equal(moved.numpy(), drawn.reshape(1 + n % 5, n) * np.float32(2))


@pytest.mark.parametrize("n", [59, 60, 61, 200])
def test_more_operands_and_sizes_than_there_is_room_for(n):
    x = rg.tensor([2.0, 3.0])
    for _ in range(3):
        many = rg.stack([x] * (n - 1) + [x * 3.0])
        np.testing.assert_array_equal(many.numpy()[-1], [6.0, 9.0])
        assert rg.reshape(x * 2.0, (2,) + (1,) * 31).shape == (2,) + (1,) * 31
