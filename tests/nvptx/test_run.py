"""One call: arguments of launches, memory, and what the host reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.device_code import DeviceCode, SpecializedCode
from retrograd.nvptx.emit.launch import Argument, Launch, Scratch, Status, Word
from retrograd.nvptx.run import CudaRun
from tests.nvptx.interpreted_device import InterpretedDevice


def prepared(n: int = 5) -> tuple[CudaRun, Any]:
    """A call of `x * N + 1` at a size, with memory for its arrays."""
    graph = rg.trace(lambda x: rg.cumsum(x * x.shape[0], 0), rg.spec((rg.Dim("N"),)))
    device = InterpretedDevice()
    code = DeviceCode(graph, device)
    shaped = SpecializedCode(code, {"N": n})
    arena = device.new_memory(shaped.bytes + 256)
    assert arena is not None
    plan = code.plan
    places = {b: arena + at for b, at in shaped.offsets.items()}
    for b in (*plan.inputs, *plan.outputs):
        places[b] = device.new_memory(4 * n)  # type: ignore[assignment]
    status = device.new_memory(4)
    assert status is not None
    return CudaRun(shaped, places, shaped.sizes, arena, status), plan


def test_kernels_in_order() -> None:
    run, plan = prepared()
    x = np.arange(5, dtype=np.float32)
    run.write(plan.inputs[0], x)
    assert run.bytes_of(plan.inputs[0]) == 20
    run.kernels(plan.kernels)
    np.testing.assert_array_equal(run.read(plan.outputs[0]), np.cumsum(x * 5))
    assert run.count() == run.device.launches  # type: ignore[attr-defined]


def test_what_arguments_are() -> None:
    run, plan = prepared(7)
    own = Scratch(lambda sizes: 100)
    run.code._scratches.append([Scratch(lambda sizes: 300), own])
    launch = Launch("k", (), 1, {"first": 12})
    twice: Any = 2 * rg.Dim("N")
    asked: list[Argument] = [plan.inputs[0], twice, Word("first"), own, Status()]
    found = [run._argument(a, launch) for a in asked]
    scratch = run._scratch
    assert found == [run.places[plan.inputs[0]], 14, 12, scratch + 512, run._status]
    with run.working_in(1 << 40):  # of a step of a loop, beside that of others
        assert run._argument(own, launch) == (1 << 40) + 512
    assert run._argument(own, launch) == scratch + 512


def test_numbers_are_converted_and_copied() -> None:
    run, plan = prepared()
    run.write(plan.inputs[0], np.arange(10.0)[::2])  # float64, and not contiguous
    np.testing.assert_array_equal(run.read(plan.inputs[0]), np.arange(10, dtype=np.float32)[::2])
    there, here = run.places[plan.outputs[0]], run.places[plan.inputs[0]]
    run.copy(there, here, 12)
    np.testing.assert_array_equal(run.read(plan.outputs[0])[:3], [0, 2, 4])
    run.copy(there, there, 12)
    run.copy(there, 0, 0)  # of nothing there need be no memory


def test_a_library_is_asked_for_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = prepared()
    asked: list[Any] = []

    class Library:
        def run(self, product: Any, places: Any) -> None:
            asked.append((product, places))

    launch = Launch("none of these", (), 1, products=("one", "two"))
    monkeypatch.setattr(InterpretedDevice, "products", Library())
    run._launch(launch)
    assert [p for p, _ in asked] == ["one", "two"]
    assert all(places is run.places for _, places in asked)
    monkeypatch.setattr(InterpretedDevice, "products", None)
    with pytest.raises(KeyError):  # there it is a kernel
        run._launch(launch)
