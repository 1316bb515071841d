"""One call: what is encoded, when it is submitted, and what of it is done again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.wgpu.executable import WgpuProgram
from retrograd.wgpu.run import CommandEncoder
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
X = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


def chain(x: Any) -> Any:
    return rg.sort(rg.cumsum(rg.flip(rg.cumsum(x, 1), (0,)), 0), 1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often an encoder did what."""
    found: Counter[str] = Counter()

    def counted(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def f(self: Any, *args: Any) -> Any:
            found[name] += 1
            return own(self, *args)

        return f

    for name in ("step", "replay", "submit"):
        monkeypatch.setattr(CommandEncoder, name, counted(name, getattr(CommandEncoder, name)))
    return found


def test_a_call_is_one_submission(calls: Counter[str]) -> None:
    program = WgpuProgram(rg.trace(chain, X))
    program.resident([X])
    assert calls["submit"] == 1
    assert calls["step"] >= 4


def test_a_loop_of_calls_is_encoded_again_without_python(calls: Counter[str]) -> None:
    """On the same memory, which the pool gives."""
    program = WgpuProgram(rg.trace(lambda x: rg.flip(rg.cumsum(x, 0), (1,)), X))
    (x,), expected = [X], X
    for k in range(8):
        before = calls["step"]
        (x,) = program.resident([x])
        expected = np.cumsum(expected, 0)[:, ::-1] * 1
        if k >= 4:
            assert calls["step"] == before
    assert calls["replay"] >= 4
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-4, atol=1e-2)


def test_the_gpu_starts_before_all_is_encoded(
    calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrograd.wgpu import run

    (expected,) = WgpuProgram(rg.trace(chain, X))([X])
    calls.clear()
    monkeypatch.setattr(run, "FLUSH", 2)
    (found,) = WgpuProgram(rg.trace(chain, X))([X])
    assert calls["submit"] > calls["step"] // 2
    np.testing.assert_array_equal(found, expected)


def test_what_was_taken_from_the_pool_goes_back() -> None:
    program = WgpuProgram(rg.trace(chain, X))
    program([X])
    before = program.device.in_use
    for _ in range(3):
        program([X])
    assert program.device.in_use == before


def test_memory_goes_back_where_a_call_fails() -> None:
    program = WgpuProgram(rg.trace(lambda x, i: rg.cumsum(x, 0)[i], X, np.array([0])))
    program([X, np.array([1])])
    before = program.device.in_use
    with pytest.raises(rg.IndexRangeError):
        program([X, np.array([20])])
    assert program.device.in_use == before
    np.testing.assert_allclose(program([X, np.array([19])])[0][0], X.sum(0), rtol=1e-4, atol=1e-5)
