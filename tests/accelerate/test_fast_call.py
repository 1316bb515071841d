"""`fast_call.c` by itself: arrays are compared as they should be, and wrong descriptions refused.
Calls are the same where there is no compiler."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrograd.runtime import fast_call
from retrograd.runtime.fast_call import OWNED, READABLE

compiled: Any = fast_call.compiled
ROOT = Path(__file__).resolve().parents[2]
needs_c = pytest.mark.skipif(compiled is None, reason="no C compiler was found at installation")
F32 = np.dtype(np.float32)


def entry(frame: np.ndarray, flags: int = READABLE, most: int = sys.maxsize):
    """One that takes an array of shape (4, 6), and gives none."""
    specs = compiled.ArraySpecs([(0, F32, (4, 6), flags, most)])
    return compiled.Entry(specs, compiled.ArraySpecs([]), frame.ctypes.data, 0, 0, False)


@needs_c
def test_arrays_are_told_apart():
    frame = np.zeros(1, np.int64)
    base = np.zeros((4, 6), np.float32)
    cases: list[tuple[Any, bool]] = [
        (base, True), (base + 1, True), (base[:2], False), (base.T, False),
        (base.astype(np.float64), False), (np.asfortranarray(base), False),
        (base[..., None], False), (base.view(np.recarray), False), (base.astype(">f4"), False),
        (None, False), (1.0, False), ([base], False),
    ]  # fmt: skip
    for array, fits in cases:
        frame[0] = 0
        assert entry(frame).enter([array], []) == (0 if fits else -1)
        assert frame[0] == (array.ctypes.data if fits else 0)
    assert entry(frame).enter([base, base], []) == -1
    assert entry(frame).enter([base], [base]) == -1


@needs_c
def test_who_else_has_an_array_and_whose_memory_it_is():
    frame = np.zeros(1, np.int64)
    strict = entry(frame, OWNED, 1)

    def fits(arrays) -> bool:
        return strict.enter(arrays, []) == 0

    def make():
        return np.zeros((4, 6), np.float32)

    shared, locked = make(), [make()]
    locked[0].flags.writeable = False
    assert fits([make()])
    assert not fits([shared])
    assert not fits([np.zeros((8, 6), np.float32)[:4]])
    assert not fits(locked)


@needs_c
@pytest.mark.parametrize("donates", [False, True])
@pytest.mark.parametrize("failed", [0, 3])
def test_nothing_is_left_of_a_list_whose_arrays_were_overwritten(donates, failed):
    """Not even where the caller is interrupted before anything else."""
    signature = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    program = ctypes.CFUNCTYPE(*signature)(lambda *_: failed)
    address = ctypes.cast(program, ctypes.c_void_p).value
    frame, none = np.zeros(1, np.int64), compiled.ArraySpecs([])
    specs = compiled.ArraySpecs([(0, F32, (2,), OWNED, 1)])
    watch = np.array([0, 1], np.int64)
    run = compiled.Entry(specs, none, frame.ctypes.data, address, watch.ctypes.data, donates)
    arrays = [np.zeros(2, np.float32)]
    assert run.enter(arrays, []) == failed
    assert len(arrays) == (0 if donates and not failed else 1)
    wrong = [np.zeros(3, np.float32)]
    assert run.enter(wrong, []) == -1
    assert len(wrong) == 1


@needs_c
@pytest.mark.parametrize("wrong", [
    lambda: compiled.ArraySpecs([(0, "float32", (4,), 0, 0)]),
    lambda: compiled.ArraySpecs([(0, F32, ("a",), 0, 0)]),
    lambda: compiled.ArraySpecs([(0, F32)]),
    lambda: compiled.ArraySpecs(3),
    lambda: compiled.Entry(1, 2, 3, 4, 5, False),
    lambda: compiled.CallRoute([(0, 1)]),
    lambda: compiled.CallRoute([(1, 0, tuple, 2, False, [])]),
    lambda: compiled.CallRoute([]).offer([]),
    lambda: compiled.CallRoute([]).offer((1,)),
    lambda: compiled.CallRoute([]).offer((compiled.CallRecord(0, [], [], [], [], 0, 0, 0, 0, 0),)),
    lambda: compiled.CallRoute([]).serve((), {}),
    lambda: compiled.CallRecord(0, [], [("float32", 0, ())], [], [], 0, 0, 0, 0, 0),
    lambda: compiled.CallRecord(0, [], [], [(0, 1, (), [])], [], 0, 0, 0, 0, 0),
    lambda: compiled.CallRecord(0, [], [], [], [(0,)], 0, 0, 0, 0, 0),
    lambda: compiled.CallRecord(0, [], [], [], [], 0, 0, 0, 0, 0).arrange(None),
    lambda: compiled.install(int, None),
])  # fmt: skip
def test_wrong_descriptions_are_refused(wrong):
    with pytest.raises(TypeError):
        wrong()


@pytest.mark.slow
@needs_c
def test_tests_of_calls_pass_without_a_compiler():
    jit = [f"transforms/jit/test_{name}" for name in ("fast_call", "donation")]
    files = [*jit, "schedule/memory/test_aliasing"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--recorder", "python", "-p", "no:cacheprovider",
         "-p", "no:xdist", *[f"tests/{f}.py" for f in files]],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
