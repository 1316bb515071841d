"""Every public function and every layer, run at once: results and gradients have the bits of a
recording, and no gradient is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from benchmarks.calls import Arrays, calls
from retrograd import nn
from retrograd.eager import trace_buffer
from retrograd.eager.trace_cache import SITES
from retrograd.pytree import flatten
from retrograd.tuning import TUNING
from tests.nn.layers.test_against_torch import CASES

NEVER = 10**9


def begin_anew() -> None:
    trace_buffer.end_run()
    trace_buffer.CURRENT.buffer.close()
    SITES.clear()


def of_function(name: str) -> list[Any]:
    """The results of a call of a public function, and the gradients of what it was given."""
    arrays = Arrays(5, requires_grad=True)
    return results_of(calls(arrays)[name], lambda: arrays.made)


def of_layer(case: int) -> list[Any]:
    """The same of a layer and its parameters."""
    name, args, options, inputs = CASES[case]
    nn.init.default_generator.cache_clear()  # so that the same weights are drawn
    layer = getattr(nn, name)(*args, **options)
    given = [rg.tensor(a, requires_grad=a.dtype.kind == "f") for a in inputs]
    return results_of(lambda: layer(*given), lambda: [*given, *layer.parameters()])


def results_of(call: Callable[[], Any], leaves: Callable[[], list[Any]]) -> list[Any]:
    results = [x for x in flatten(call())[0] if isinstance(x, rg.Tensor)]
    total: Any = 0.0
    for k, x in enumerate(results):
        if x.requires_grad:
            part = (abs(x) if x.dtype.is_complex else x) * (0.3 + k)
            total = total + part.sum()
    if isinstance(total, rg.Tensor):
        total.backward()
    found = [x.grad for x in leaves()]
    return [None if x is None else x.numpy() for x in [*results, *found]]


def check(compute: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    begin_anew()
    monkeypatch.setattr(TUNING, "unknown_recordings", NEVER)
    monkeypatch.setattr(TUNING, "returned_runs", 0)
    expected = compute()
    monkeypatch.setattr(TUNING, "unknown_recordings", 0)
    for _ in range(3):  # by Python, then by C where it can
        begin_anew()
        found = compute()
        assert [x is None for x in found] == [x is None for x in expected]
        for x, y in zip(found, expected, strict=True):
            if x is not None:
                assert (x.shape, x.dtype) == (y.shape, y.dtype)
                assert x.tobytes() == y.tobytes(), np.max(np.abs(x - y))


@pytest.mark.parametrize("name", sorted(calls(Arrays(5))))
@pytest.mark.sample(20)
def test_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda: of_function(name), monkeypatch)


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{i}")
@pytest.mark.sample(10)
def test_layers(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda: of_layer(case), monkeypatch)
