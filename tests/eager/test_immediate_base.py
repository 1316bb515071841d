"""What C and Python have in common of calls that run at once."""

import importlib
import sys

import pytest

from retrograd import accelerate
from retrograd.accelerate import is_compiled
from retrograd.eager import immediate_base


@pytest.fixture
def in_python(monkeypatch):
    """The same module where there is no C compiler."""
    monkeypatch.setitem(sys.modules, "retrograd.accelerate._immediate", None)
    monkeypatch.delattr(accelerate, "_immediate", raising=False)
    spec = importlib.util.find_spec("retrograd.eager.immediate_base")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.compiled is None
    return module


class Call:
    run = None


@pytest.mark.skipif(not is_compiled("immediate"), reason="no C compiler was found")
def test_runs_are_told_apart_by_the_same_numbers(in_python):
    runs = [immediate_base.Run("site"), in_python.Run("site")]
    for x in (0, 1, -1, 5, 2**63, 140234567890123, 2**64 - 1):
        for run in runs:
            run.mix(x)
        assert runs[0].what == runs[1].what
    assert runs[0].what not in (0, in_python.Run("site").what)
    assert [(run.site, run.calls) for run in runs] == [("site", 0)] * 2


def test_a_run_lists_the_calls_that_somebody_holds(in_python):
    run = in_python.Run("site")
    calls = [Call() for _ in range(200)]
    for call in calls:
        run.enlist(call)
        assert call.run is run
    assert run.alive() == calls
    del calls[10:], call
    assert run.alive() == calls
    run.enlist(Call())
    assert run.alive() == calls
    run.forget()
    assert run.alive() == []
