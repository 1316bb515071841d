"""What is used for the first time at a prompt compiles few small programs, and at a shape that is
new none: every public function, called at two sizes."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

import retrograd as rg
from benchmarks.calls import Arrays, calls, compute, differentiate, listed
from retrograd.runtime import denormals
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors import op_kernels
from retrograd.tuning import TUNING

SIZES = (5, 7)
NAMES = sorted(calls(Arrays(SIZES[0])))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each program computes that is made from here on, or found on disk, in a process that
    has none."""
    made: list[str] = []
    init = Executable.__init__

    def noted(self, graph, *args, **options):
        made.append(str(graph))
        init(self, graph, *args, **options)

    monkeypatch.setattr(Executable, "__init__", noted)
    monkeypatch.setattr(op_kernels, "_PROGRAMS", OrderedDict())
    monkeypatch.setattr(TUNING, "node_s", math.inf)  # the time that passes does not count
    monkeypatch.setattr(denormals, "_used", False)  # another test may have flushed them
    return made


def multiply_matrices() -> None:
    """All the products of matrices that there are: which ones a convolution is made of depends on
    its sizes."""
    for lead in ((), (2,)):
        for rows in (1, 3):
            (rg.ones((*lead, rows, 2)) @ rg.ones((*lead, 2, 4))).numpy()


def test_every_public_function_is_called():
    assert sorted(listed()) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(26)
def test_a_shape_never_seen_compiles_nothing(name, compiled):
    if "conv" in name:
        multiply_matrices()
    for size in SIZES:
        compiled.clear()
        arrays = Arrays(size, requires_grad=True)
        result = calls(arrays)[name]()
        compute(result)
        differentiate(arrays, result)
    assert not compiled


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("name", ["lstsq", "lu", "matrix_rank", "pinv", "qr", "svd"])
@pytest.mark.sample(3)
def test_a_matrix_of_other_sizes_compiles_nothing(name, dtype, compiled, monkeypatch):
    """But for which of them is the smaller one."""
    monkeypatch.setattr(TUNING, "unknown_recordings", 100)  # what runs at once has other programs
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    for shapes in (((5, 3), (7, 4), (9, 2)), ((3, 5), (4, 9), (2, 7)), ((4, 4), (6, 6))):
        for shape in shapes:
            compiled.clear()
            x = rg.tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype))
            more = (x[:, 0],) if name == "lstsq" else ()
            compute(getattr(rg.linalg, name)(x, *more))
        assert not compiled


def test_the_counter_sees_what_is_compiled(compiled):
    rg.exp(rg.ones(3) * 0.3).numpy()
    assert len(compiled) == 1
    assert "exp" in compiled[0]


def test_larger_work_is_compiled_again_once_that_pays(compiled):
    small, large = np.linspace(0.1, 0.9, 4, dtype=np.float32), np.full(1 << 16, 0.5, np.float32)
    first = rg.exp(rg.tensor(small)).numpy()
    assert len(compiled) == 1
    alone = rg.exp(rg.tensor(large)).numpy()
    assert len(compiled) == 1  # what there is does it once
    for i in range(4):
        again = rg.exp(rg.tensor(large + i * 0.0)).numpy()
    assert len(compiled) == 2
    assert again.tobytes() == alone.tobytes()
    assert rg.exp(rg.tensor(small)).numpy().tobytes() == first.tobytes()
    assert len(compiled) == 2
