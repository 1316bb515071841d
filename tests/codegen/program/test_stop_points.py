"""Where runs can be stopped: Ctrl-C in the middle of one long kernel, and none in brief ones."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import num_threads
from retrograd.codegen.launch_layout import STOPPED
from retrograd.codegen.program.stop_points import first_overwriting, is_stoppable, takes_long
from retrograd.ir import Dim, TensorType, int64, spec
from retrograd.runtime import executable as program_module
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan

N = 20_000_000


class Marked(Executable):
    """Whose outputs are full of NaN before it runs; the latest one is `result`."""

    result = np.zeros(0)

    @staticmethod
    def allocate(shape, dtype):
        mark = np.nan if dtype.kind == "f" else 0
        Marked.result = np.full(shape, mark, dtype)
        return Marked.result


def scattered(x, at):
    return rg.scatter_add(rg.zeros((1000,)), at, x)


def twice(x):
    return rg.scan(lambda y, _: (rg.tanh(y @ y), None), x, length=2)[0]


def first_of_rows(x):
    return rg.sum(rg.exp(rg.sin(x)), axis=1)


def backwards(x):
    return rg.flip(rg.cumsum(rg.flip(rg.sin(x))))


SQUARE = spec((1500, 1500))
CASES: dict[str, tuple[Callable[..., Any], list[TensorType]]] = {
    "product": (lambda x: x @ x, [SQUARE]),
    "of any size": (lambda x: x @ x, [spec((Dim("N"), Dim("N")))]),
    "in a loop": (twice, [SQUARE]),
    "running sum": (lambda x: rg.cumsum(rg.exp(x)), [spec((N,))]),
    "running sum from the end": (backwards, [spec((N,))]),
    "sum": (lambda x: rg.cumsum(x) + rg.sum(rg.exp(rg.sin(x))), [spec((N,))]),
    "rows": (first_of_rows, [spec((2, N // 2))]),
    "scatter": (scattered, [spec((N,)), spec((N,), int64)]),
    "factors": (lambda x: rg.linalg.svdvals(x), [spec((200, 150, 150))]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(3)
@pytest.mark.slow
def test_a_long_kernel_stops_before_its_end(monkeypatch, name, threads):
    f, types = CASES[name]
    shapes = [tuple(2000 if isinstance(n, Dim) else n for n in t.shape) for t in types]
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 1000, s) if t.dtype is int64 else rng.uniform(0, 1e-3, s).astype(np.float32)
        for t, s in zip(types, shapes, strict=True)
    ]

    def soon(call, stop):
        word = ctypes.c_int64.from_address(stop)
        word.value = 0
        other = threading.Timer(0.002, lambda: setattr(word, "value", 1))
        other.start()
        try:
            assert call() == STOPPED
        finally:
            other.join()
        raise KeyboardInterrupt

    program = Marked(rg.trace(f, *types))
    with num_threads(threads):
        expected = program(arrays)[0]
        assert not np.isnan(expected).any()
        assert program.last.long
        monkeypatch.setattr(program_module, "interruptible", soon)
        with pytest.raises(KeyboardInterrupt):
            program(arrays)
        assert not np.array_equal(Marked.result, expected)  # it was in the middle
        monkeypatch.undo()
        np.testing.assert_array_equal(program(arrays)[0], expected)


def test_what_is_brief_is_not_looked_at() -> None:
    def stops(f: Callable[..., Any], *types: TensorType) -> bool:
        return is_stoppable(KernelPlan(rg.trace(f, *types)))

    assert not stops(lambda x: x @ x, spec((10, 10)))
    assert stops(lambda x: x @ x, SQUARE)
    assert stops(lambda x: x + 1, spec((Dim("N"),)))
    assert stops(lambda x: rg.while_loop(lambda y: y < 5, lambda y: y * 2, x), spec(()))


def test_only_long_kernels_look_by_themselves() -> None:
    def looking(f: Callable[..., Any], *types: TensorType) -> list[bool]:
        plan = KernelPlan(rg.trace(f, *types))
        return [takes_long(k, group) for group in plan.tile_groups for k in group.kernels]

    assert looking(lambda x: x @ x, SQUARE) == [True]
    assert looking(lambda x: x @ x, spec((10, 10))) == [False]
    assert looking(lambda x: x @ x, spec((Dim("N"), Dim("N")))) == [True]


def test_the_first_kernel_that_overwrites_what_was_given() -> None:
    graph = rg.trace(lambda x, y: (rg.cumsum(y), x * 2.0), spec((7,)), spec((7,)))
    plain, given = KernelPlan(graph), KernelPlan(graph, donate=(0,))
    assert first_overwriting(plain) == -1
    at = first_overwriting(given)
    assert at >= 0
    assert given.inputs[0] in given.tile_groups[at].writes
    assert all(given.inputs[0] not in group.writes for group in given.tile_groups[:at])
