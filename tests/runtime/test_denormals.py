"""`rg.flush_subnormals`: tiny numbers count as zero, in every tier and on every thread."""

import threading
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend_registry import compile_graph
from retrograd.runtime.denormals import flushes

pytestmark = pytest.mark.skipif(not flushes(), reason="this processor has no such mode")
TINY = np.float32(1e-30)
LEFT = float(TINY * np.float32(1e-10))  # 1e-40, a subnormal number


def product():
    """Computed here and now, by the interpreter of recordings."""
    return float((rg.tensor(TINY) * rg.tensor(np.float32(1e-10))).item())


@pytest.fixture(autouse=True)
def unchanged():
    assert product() == LEFT
    yield
    assert product() == LEFT


def test_a_block_and_what_comes_after():
    with rg.flush_subnormals():
        assert product() == 0
        with rg.flush_subnormals(False):
            assert product() == LEFT
        assert product() == 0
    assert product() == LEFT


def test_only_a_boolean_switches():
    wrong: list[Any] = ["off", 1, None, product]
    for bad in wrong:
        with pytest.raises(rg.OptionError, match="True or False"):
            rg.flush_subnormals(bad)


def test_from_here_on():
    before = rg.flush_subnormals()
    assert product() == 0
    rg.flush_subnormals(False)
    assert product() == LEFT
    with before:  # entered later: the block ends with what was there before it
        assert product() == 0


def test_a_setting_used_as_a_context_leaves_things_as_they_were():
    with rg.flush_subnormals():
        pass
    assert product() == LEFT


def test_a_block_is_left_by_an_error():
    with pytest.raises(ZeroDivisionError), rg.flush_subnormals():
        raise ZeroDivisionError


def test_a_decorator():
    flushed = rg.flush_subnormals()(product)
    assert product() == LEFT
    assert flushed() == 0
    assert product() == LEFT


def test_other_threads_do_not_notice():
    found = []
    ready, done = threading.Event(), threading.Event()

    def other():
        with rg.flush_subnormals():
            ready.set()
            done.wait(30)
            found.append(product())

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(30)
    assert product() == LEFT
    done.set()
    thread.join(30)
    assert found == [0]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("op", ["mul", "exp", "arguments"])
def test_compiled_programs_obey(backend, op):
    f = {
        "mul": lambda x: x * np.float32(1e-10),
        "exp": lambda x: rg.exp(x - 100),
        "arguments": lambda x: (x * 0 + LEFT) * np.float32(1e20),
    }[op]
    x = np.full(37, TINY, np.float32)
    with rg.backend(backend):
        step = rg.jit(f)
        for _ in range(3):
            exact = step(x).numpy()
            with rg.flush_subnormals():
                flushed = step(x).numpy()
            assert (exact > 0).all()
            assert (flushed == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_workers_and_long_calls_obey(threads):
    """So many elements that the call is shared, and made by a thread that can be interrupted."""
    f = rg.jit(lambda x: rg.sin(rg.sin(rg.sin(rg.sin(x)))) * np.float32(1e-10))
    x = np.full(1 << 23, TINY, np.float32)
    with rg.num_threads(threads):
        for _ in range(2):
            assert (f(x).numpy() > 0).all()
            with rg.flush_subnormals():
                assert (f(x).numpy() == 0).all()


def test_what_is_compiled_does_not_depend_on_the_mode(monkeypatch, tmp_path):
    """Constants are not flushed while a program is made, else the cache would keep it."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", str(tmp_path))
    graph = rg.trace(lambda x: x + LEFT * np.float32(1), rg.spec((5,), rg.float32))
    zeros = [np.zeros(5, np.float32)]
    with rg.flush_subnormals():
        made = compile_graph(graph, "llvm")
        assert (made(zeros)[0] == 0).all()
    assert (made(zeros)[0] > 0).all()
    assert (compile_graph(graph, "llvm")(zeros)[0] > 0).all()


def test_normal_numbers_keep_their_bits():
    x = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    f = rg.jit(lambda x: rg.softmax(rg.tanh(x) @ x.T))
    exact = f(x).numpy()
    with rg.flush_subnormals():
        np.testing.assert_array_equal(f(x).numpy(), exact)
