"""Convolutions that read windows where the image lies: to the bit what they give where windows are
laid out, inside their memory, on all machines."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.target import Target
from retrograd.ir import Dim, Graph, float32, float64, spec
from retrograd.runtime import compiler
from retrograd.runtime.executable import Executable
from retrograd.tuning import TUNING
from tests.codegen.gemm.known_sizes import same
from tests.runtime.agreement import GuardedProgram
from tests.runtime.fuzz_checks import Threaded, gather_threads

# Images, kernels, and how these are laid: rows that fill vectors, rows of which a vector has parts
# of two to four, one long row, few channels and so many that sums have several blocks, more weights
# than stay in the cache, groups, kernels in any number, every second place, images of few places.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 18, 18), (16, 3, 3, 3), {}),
    ((2, 16, 32, 32), (13, 16, 3, 3), {"padding": 1}),
    ((1, 20, 9, 32), (6, 20, 3, 3), {"padding": 1}),
    ((2, 4, 7, 63), (9, 4, 3, 1), {}),
    ((1, 4, 20, 39), (8, 4, 5, 5), {"dilation": 2, "padding": 4}),
    ((2, 6, 5, 48), (14, 3, 3, 3), {"padding": 1, "groups": 2}),
    ((1, 5, 9, 34), (33, 5, 2, 3), {"stride": (2, 1)}),
    ((2, 3, 29, 30), (7, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 6, 40, 21), (9, 6, 1, 1), {"stride": 2}),
    ((3, 4, 8, 7), (10, 4, 3, 3), {"padding": 1}),
    ((2, 7, 12, 7), (6, 7, 1, 3), {}),
    ((1, 420, 10, 13), (360, 420, 1, 3), {}),
]


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of other settings must not be found where programs are kept."""
    monkeypatch.setenv("RETROGRAD_CACHE_DIR", "off")


def convolution(case: Any, dtype: Any = float32) -> Graph:
    x, w, given = case

    def f(x: Any, w: Any) -> Any:
        return rg.nn.functional.conv2d(x, w, **given)

    return rg.trace(f, spec(x, dtype), spec(w, dtype))


def draw(case: Any, dtype: Any = float32) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype.dtype) for shape in case[:2]]


def laid_out(case: Any, monkeypatch: pytest.MonkeyPatch, dtype: Any = float32) -> Any:
    """The result where windows are laid out."""
    with monkeypatch.context() as m:
        m.setattr(TUNING, "windows_rows", 1 << 60)
        program = Executable(convolution(case, dtype))
        assert not reads_in_place(program)
        return program(draw(case, dtype))[0]


def reads_in_place(program: Any) -> bool:
    nests = [n for kernel in program.plan.every for n in kernel.nests]
    return any(getattr(n, "windows", None) is not None for n in nests)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.sample(4)
def test_bits_do_not_tell(case: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = GuardedProgram(convolution(case, dtype))
    assert reads_in_place(program)
    found = program(draw(case, dtype))[0]
    program.check_guards()
    same(found, laid_out(case, monkeypatch, dtype), case)


def test_weights_that_are_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the left matrix may be what lies apart; of those that are not there, nothing is
    seen, whatever is read for them."""

    def f(x: Any, w: Any) -> Any:
        return rg.nn.functional.conv2d(x, rg.permute_dims(w, (3, 0, 1, 2)), padding=1)

    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 5, 16, 16), (5, 3, 3, 13)))
    graph = rg.trace(f, x, w)
    program = GuardedProgram(graph)
    assert reads_in_place(program)
    found = program([x, w])[0]
    program.check_guards()
    monkeypatch.setattr(TUNING, "windows_rows", 1 << 60)
    same(found, Executable(graph)([x, w])[0], "turned")


def test_named_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named number of images needs nothing else; named rows are laid out, to the same bits."""
    case = CASES[1]
    x, w = draw(case)

    def f(x: Any, w: Any) -> Any:
        return rg.nn.functional.conv2d(x, w, padding=1)

    for shape, there in [((Dim("N"), *x.shape[1:]), True), ((*x.shape[:3], Dim("W")), False)]:
        program = Executable(rg.trace(f, spec(shape), spec(w.shape)))
        assert reads_in_place(program) is there
        same(program([x, w])[0], laid_out(case, monkeypatch), shape)


@pytest.mark.parametrize("images", [1, 5])
def test_threads(images: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They share images, or rows of the result of one."""
    gather_threads()
    case = ((images, 8, 32, 32), (30, 8, 3, 3), {"padding": 1})
    program = Threaded(convolution(case), 3)
    found = program(draw(case))[0]
    program.check_guards()
    same(found, laid_out(case, monkeypatch), images)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "registers"), [(16, 32), (8, 16), (4, 32), (4, 16), (2, 16)])
@pytest.mark.sample(1)
def test_other_machines(monkeypatch: pytest.MonkeyPatch, width: int, registers: int) -> None:
    """Tiles of every shape; all of them give the same bits."""
    here, made = compiler.Compiler(), compiler.Compiler()
    made.machine = Target(width, registers, here.machine.fma)
    for dtype, case in itertools.product((float32, float64), CASES):
        found = []
        for one in (here, made):
            monkeypatch.setattr(compiler, "_ENGINE", one)
            found.append(Executable(convolution(case, dtype))(draw(case, dtype))[0])
        same(found[0], found[1], case)
