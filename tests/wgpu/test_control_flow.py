"""Loops and choices on the GPU, against native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)


def recurrence(x: Any, reverse: bool = False) -> Any:
    start = rg.zeros((5,), dtype=x.dtype)
    return rg.scan(lambda c, r: (c * 0.5 + r, (c * r).sum()), start, x, reverse=reverse)


CASES: dict[str, Callable[[Any], Any]] = {
    "scan": recurrence,
    "reverse": lambda x: recurrence(x, reverse=True),
    "gradient": rg.grad(lambda x: (recurrence(x)[1] ** 2).sum()),
    "nested": lambda x: rg.scan(
        lambda c, r: (c + recurrence(x * r.sum())[0], c[0]), rg.zeros((5,)), x
    ),
    "none": lambda x: recurrence(x[:0]),
    "while": lambda x: rg.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x),
    "while, not once": lambda x: rg.while_loop(lambda c: c.sum() > 1e9, lambda c: c * 2, x),
    "cond": lambda x: rg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x),
    "other": lambda x: rg.cond(x.sum() > 1e9, lambda x: x * 2, lambda x: x - 1, x),
}


@pytest.mark.parametrize("name", CASES)
def test_as_native_code(name: str) -> None:
    expected, found = (_flat(b, CASES[name]) for b in ("llvm", "wgpu"))
    for y, r in zip(found, expected, strict=True):
        assert y.dtype == r.dtype
        np.testing.assert_allclose(y, r, rtol=2e-5, atol=1e-5)


def _flat(backend: str, f: Callable[[Any], Any]) -> list[np.ndarray[Any, Any]]:
    with rg.backend(backend):
        found = rg.jit(f)(rg.tensor(X))
        listed = found if isinstance(found, tuple) else (found,)
        return [y.numpy() for y in listed]


def test_a_loop_has_an_end() -> None:
    def forever(x: Any) -> Any:
        return rg.while_loop(lambda c: c.sum() < 1, lambda c: c, x, max_steps=3)

    with rg.backend("wgpu"), pytest.raises(rg.LoopLimitError, match="3"):
        rg.jit(forever)(rg.zeros((2,)))


def test_many_steps_reuse_the_place_of_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.wgpu import run, specialization

    monkeypatch.setattr(specialization, "WORDS_BYTES", 64 * specialization.ALIGNMENT)
    monkeypatch.setattr(specialization, "LEAST_WORDS", 4)
    monkeypatch.setattr(run, "FLUSH", 10)
    x = np.arange(200, dtype=np.float32)
    with rg.backend("wgpu"):
        total, seen = rg.jit(lambda x: rg.scan(lambda c, r: (c + r, c), rg.zeros(()), x))(
            rg.tensor(x)
        )
        assert total.item() == x.sum()
        np.testing.assert_array_equal(seen.numpy(), np.cumsum(x) - x)
