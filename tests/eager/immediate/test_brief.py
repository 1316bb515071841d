"""Programs that are handed over to C, and those that are not."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.accelerate import is_compiled
from retrograd.eager import immediate_base, trace_buffer
from retrograd.eager.immediate import call_kind
from retrograd.eager.program_cache import PROGRAMS
from retrograd.eager.trace_cache import SITES
from retrograd.runtime.executors.graph_family import FAMILIES
from retrograd.tuning import TUNING

pytestmark = pytest.mark.skipif(not is_compiled("immediate"), reason="no C compiler was found")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Operations run at once, by programs that are compiled at once and that nobody knows yet."""
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    monkeypatch.setattr(TUNING, "interpreted_nodes", 0)
    for name in ("compiled_node", "compiled_product", "compiled_named_product"):
        monkeypatch.setattr(TUNING, name, 0)
    trace_buffer.end_run()
    trace_buffer.CURRENT.buffer.close()
    for table in (
        SITES,
        PROGRAMS,
        FAMILIES,
        call_kind._BY_SHAPES,
        call_kind._BY_CALL,
        call_kind._SEEN,
    ):
        table.clear()
    immediate_base.compiled.clear()


def handed_over():
    """Of each kind of calls whether C has the program forward."""
    kinds = [kind for kind in call_kind._BY_SHAPES.values() if kind is not None]
    return [program.brief is not None for kind in kinds for program in kind._forward.values()]


def test_brief_programs_are():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        rg.exp(x * 2.5)
    assert handed_over() == [True, True]


def test_numbers_in_half_precision_are_not():
    x = rg.tensor([1.0, 2.0], dtype=rg.float16)
    for _ in range(3):
        assert (x * 2.5).tolist() == [2.5, 5.0]
    assert handed_over() == [False]


def test_complex_numbers_are_not():
    x = rg.tensor([1.0 + 2.0j])
    for _ in range(3):
        assert (x * x).tolist() == [-3 + 4j]
    assert handed_over() == [False]


def test_what_can_be_interrupted_is_not(monkeypatch):
    monkeypatch.setattr(TUNING, "interruptible_ns", 1.0)
    x = rg.tensor(np.ones((64, 64)))
    for _ in range(3):
        assert (x @ x).sum().item() == 64**3
    assert handed_over() == [False, False]
