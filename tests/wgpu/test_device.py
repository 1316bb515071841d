"""The GPU's memory and pipelines, and what is said where there is no more memory."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import float32
from retrograd.wgpu.device import ALIGNMENT, Device, rounded_size
from retrograd.wgpu.dispatch import Dispatch
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu


@pytest.fixture
def own() -> Iterator[Device]:
    """The device, with nothing in its pool."""
    from retrograd.wgpu.device import device

    made = device()
    made.trim()
    yield made
    made.trim()


def test_sizes_that_the_pool_finds_again() -> None:
    sizes = [*range(1, 3000, 7), *(2**k + d for k in range(12, 34) for d in (-1, 0, 1, 12345))]
    for size in sizes:
        found = rounded_size(size)
        assert size <= found <= max(size * 1.125 + ALIGNMENT, ALIGNMENT)
        assert found % ALIGNMENT == 0
        assert rounded_size(found) == found
    assert len({rounded_size(n) for n in range(1 << 20, 1 << 21)}) <= 9


def test_what_is_given_back_is_given_out_again(own: Device) -> None:
    before = own.in_use
    a, b = own.allocate(5000), own.allocate(5000)
    assert own.in_use == before + a.size + b.size
    for buffer in (b, a):
        own.release(buffer)
    assert (own.in_use, own.pooled) == (before, a.size + b.size)
    assert own.allocate(4900) is a  # the first one that was made
    assert own.allocate(10) is not b
    own.trim()
    assert own.pooled == 0
    assert own.allocate(5000) is not b


def test_the_pool_does_not_keep_more_than_is_in_use(
    own: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrograd.wgpu import device as module

    monkeypatch.setattr(module, "POOL_BYTES", 1000)
    monkeypatch.setattr(own, "in_use", 0)
    some = [own.allocate(4096) for _ in range(4)]
    for buffer in some:
        own.release(buffer)
    assert own.pooled == 2 * 4096  # then the half of four is more than what is in use


@pytest.mark.parametrize("failures", [1, 2])
def test_memory_is_short(own: Device, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """The pool is emptied, and asked again; then it is an error that says how much there was."""
    create, left = own.gpu.create_buffer, [failures]

    def asked(**given: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise own.wgpu.GPUOutOfMemoryError("no")
        return create(**given)

    monkeypatch.setattr(own, "gpu", SimpleNamespace(create_buffer=asked))
    own.release(SimpleNamespace(size=256, label="0"))
    own.in_use += 256
    trims = own.trimmed
    if failures == 1:
        assert own.allocate(5000).size >= 5000
    else:
        with pytest.raises(rg.MemoryLimitError, match=r"no 5\.12 kB left beside the"):
            own.allocate(5000)
    assert own.trimmed == trims + 1
    assert own.pooled == 0


def test_numbers_come_back(own: Device) -> None:
    buffer = own.allocate(64)
    own.write(buffer, np.arange(5, dtype=np.float32), 16)
    np.testing.assert_array_equal(own.read(buffer, 16, 20, float32), np.arange(5))
    own.write(buffer, np.zeros(0, np.float32))  # which would be an error of the driver


def shader(value: str) -> Dispatch:
    source = (
        "@group(0) @binding(1) var<storage, read_write> x: array<f32>;\n"
        f"@compute @workgroup_size(1) fn main() {{ x[0] = {value}; }}"
    )
    return Dispatch(source, (None,), (), 1)  # type: ignore[arg-type]


def test_a_shader_is_compiled_once(own: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compiled = Device._compiled

    def noted(self: Device, dispatch: Dispatch) -> Any:
        made.append(dispatch.source)
        return compiled(self, dispatch)

    monkeypatch.setattr(Device, "_compiled", noted)
    some = [shader(f"{k}.0625f") for k in (1, 2, 1)]
    own.pipelines(some)
    own.pipelines(some[:1])
    assert own.pipeline(some[2]) is own.pipeline(some[0])
    assert sorted(made) == sorted({d.source for d in some})


def test_a_shader_that_is_wrong_is_shown(own: Device) -> None:
    with pytest.raises(rg.BackendError, match=r"(?s)refused a shader.*x\[0\] = nothing_of_this"):
        own.pipeline(shader("nothing_of_this"))


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("GPUOutOfMemoryError", rg.MemoryLimitError, "ran out of memory: why"),
        ("GPUValidationError", rg.BackendError, "stopped answering.*why.*last checkpoint"),
    ],
)
def test_errors_while_waiting(own: Device, name: str, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said), own.answering():
        raise getattr(own.wgpu, name)("why")
    with pytest.raises(ValueError, match="another"), own.answering():
        raise ValueError("another")
