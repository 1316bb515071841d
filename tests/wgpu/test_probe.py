"""What is tried on a device, by a device that does it and by ones that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograd.wgpu import probe
from tests.wgpu.gpu import needs_gpu


@needs_gpu
def test_what_is_tried_is_what_shaders_do() -> None:
    """A product that is rounded before the sum is what the probe tells from `fma`."""
    from retrograd.wgpu.device import device

    gpu = device().gpu
    apart = probe._SOURCE.replace("fma(x[0], x[1], x[2])", "x[0]")
    numbers = np.array(probe._OPERANDS, np.float32)
    assert probe._tried(gpu, apart, numbers)[3] == numbers[0]
    assert probe.fuses(gpu) is device().facts.fused
    found = probe._tried(gpu, probe._WIDENED.replace(">= 27li", ">= 2li"), np.array([3, 0], "i4"))
    assert found.tolist() == [3, 1]


@pytest.mark.parametrize("fused", [True, False])
def test_a_product_is_rounded_or_is_not(monkeypatch: pytest.MonkeyPatch, fused: bool) -> None:
    def device(gpu: Any, source: str, data: Any) -> Any:
        a, b, c = data[:3]
        exact = np.float32(float(a) * float(b) + float(c))
        return np.array([a, b, c, exact if fused else np.float32(a * b) + c], np.float32)

    monkeypatch.setattr(probe, "_tried", device)
    assert probe.fuses(None) is fused


@pytest.mark.parametrize(("result", "well"), [(0, True), (1, False)])
def test_a_comparison_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, result: int, well: bool
) -> None:
    monkeypatch.setattr(probe, "_tried", lambda *_: np.array([3, result], np.int32))
    assert probe.widens(None) is well
