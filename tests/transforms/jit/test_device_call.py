"""Calls like an earlier one, on a device that is no more than the definition of each operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import backend_registry, pytree
from retrograd.runtime.device_array import DeviceArray, device_copy, numbers_for, pending
from retrograd.runtime.executors.reference import ReferenceProgram
from retrograd.transforms.jit.jit import Jit


class Engine(ReferenceProgram):
    """A program that leaves its results where they have to be fetched."""

    backend = "stand_in"
    fails = False

    def resident(self, arrays: Any) -> list[Any]:
        if Engine.fails:
            raise rg.MemoryLimitError("the device is full")
        results = super().__call__([self.there(a) for a in arrays])
        return [
            pending(y.shape, y.dtype, SimpleNamespace(**self.place, fetch=y.copy)) for y in results
        ]

    @property
    def place(self) -> dict[str, str]:
        return {"backend": self.backend, "device": self.backend}

    def there(self, array: Any) -> Any:
        copy = device_copy(array, self.backend)
        return numbers_for(array, self.backend) if copy is None else copy.fetch()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The backend; and how many calls went the long way."""
    engine = SimpleNamespace(missing=lambda: None, program=Engine)
    monkeypatch.setitem(sys.modules, "engine_of_tests", engine)
    monkeypatch.setitem(backend_registry.ENGINES, "stand_in", "engine_of_tests")
    long_way, found = Jit._call, []

    def counted(self: Any, *args: Any) -> Any:
        found.append(1)
        return long_way(self, *args)

    monkeypatch.setattr(Jit, "_call", counted)
    with rg.backend("stand_in"):
        yield found


def training_step() -> Any:
    def step(state: Any, x: Any, rate: Any) -> Any:
        w, v = state
        value, g = rg.value_and_grad(lambda w: ((w * x) ** 2).sum())(w)
        v = 0.5 * v + g
        return (w - rate * v, v), value

    return rg.jit(step, donate=("state",))


def test_a_loop_goes_the_short_way(device: list[int]) -> None:
    losses: dict[str, list[float]] = {}
    for name in ("stand_in", "reference"):
        with rg.backend(name):
            step = training_step()
            state = rg.tensor([1.0, 2.0]), rg.tensor([0.0, 0.0])
            losses[name] = []
            for k in range(5):
                x = rg.tensor([k + 1.0, 2.0])
                state, value = step(state, x, 0.01 * (k + 1))
                losses[name].append(value.item())
            if name == "stand_in":
                assert len(device) == 1
                assert step.cache_stats() == {"calls": 5, "compilations": 1, "signatures": 1}
    assert losses["stand_in"] == losses["reference"]


def test_what_is_donated_is_gone(device: list[int]) -> None:
    step = training_step()
    state, _ = step((rg.tensor([1.0]), rg.tensor([0.0])), rg.tensor([1.0]), 0.1)
    later, _ = step(state, rg.tensor([1.0]), 0.1)
    with pytest.raises(rg.DonatedError):
        state[0].numpy()
    assert type(later[0]._state) is DeviceArray
    assert len(device) == 1


def test_a_call_that_fails_takes_nothing(
    device: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = training_step()
    state, _ = step((rg.tensor([1.0]), rg.tensor([0.0])), rg.tensor([1.0]), 0.1)
    with monkeypatch.context() as m:
        m.setattr(Engine, "fails", True)
        with pytest.raises(rg.MemoryLimitError):
            step(state, rg.tensor([1.0]), 0.1)
    assert step(state, rg.tensor([1.0]), 0.1)[1].item() == pytest.approx(0.64)
    with pytest.raises(rg.DonatedError):
        state[1].numpy()


def test_what_differs_goes_the_long_way(device: list[int]) -> None:
    f = rg.jit(lambda x, mode, n: (x * 2 if mode else x + n).sum(), static_argnames="mode")
    x = rg.tensor([1.0, 2.0])
    f(x, True, 1)
    for other, value in (
        ((rg.tensor([1.0, 2.0], dtype=rg.float64), True, 1), 6.0),
        ((rg.tensor([[1.0, 2.0]]), True, 1), 6.0),
        ((rg.tensor([1.0, 2.0, 3.0]), True, 1), 12.0),
        ((x, False, 1), 5.0),
        ((x, True, 1.0), 6.0),
        ((x, True, 2**70), 6.0),
        ((np.array([1.0, 2.0], np.float32), True, 1), 6.0),
        ((x + 1, True, 1), 10.0),
    ):
        before = len(device)
        assert f(*other).item() == value
        assert len(device) == before + 1, other
    before = len(device)
    assert f(x, True, 5).item() == 6.0  # as it is remembered by the last of these
    assert len(device) == before


def test_gradients_through_a_call(device: list[int]) -> None:
    f = rg.jit(lambda w: (w * w).sum())
    w = rg.tensor([3.0], requires_grad=True)
    with rg.no_grad():
        assert f(w).item() == f(w).item() == 9.0
    f(w).backward()
    assert w.grad is not None
    assert w.grad.tolist() == [6.0]


def test_an_edit_of_a_tensor_is_seen(device: list[int]) -> None:
    f = rg.jit(lambda x: x * 2)
    x = rg.tensor([1.0, 2.0])
    assert f(x).tolist() == [2.0, 4.0]
    x[0] = 5.0
    assert f(x).tolist() == [10.0, 4.0]
    memory = np.array([1.0, 2.0], np.float32)
    shared = rg.from_dlpack(memory)
    assert f(shared).tolist() == [2.0, 4.0]
    memory[1] = 7.0
    assert f(shared).tolist() == [2.0, 14.0]


class OtherEngine(Engine):
    """The same on another device."""

    backend = "other"


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> str:
    engine = SimpleNamespace(missing=lambda: None, program=OtherEngine)
    monkeypatch.setitem(sys.modules, "other_engine_of_tests", engine)
    monkeypatch.setitem(backend_registry.ENGINES, "other", "other_engine_of_tests")
    return "other"


def test_tensors_of_two_backends_do_not_meet(device: list[int], other: str) -> None:
    f = rg.jit(lambda x, y: x * y)
    one = rg.tensor([1.0, 2.0])
    x = f(one, one)
    with rg.backend(other):
        y = f(one, one + 1)  # made on the host: of any backend
        around = rg.jit(lambda y: x * y)  # from around the function, as if it were an argument
        for together in (
            lambda: f(x, y),
            lambda: f(y, x),
            lambda: (x + y).numpy(),
            lambda: around(y),
        ):
            with pytest.raises(
                rg.BackendError, match=r"float32\[2\].*'stand_in'.*'other'.*x.cpu()"
            ):
                together()
        z = x + y
        with pytest.raises(rg.BackendError, match="one backend"):
            z.numpy()
        x.cpu()
        assert z.tolist() == [3.0, 10.0]  # nothing is lost
        assert f(x, y).tolist() == around(y).tolist() == [2.0, 24.0]
    with pytest.raises(rg.BackendError, match=r"'other'.*'stand_in'"):
        f(y, x)
    with rg.backend("llvm"):  # the CPU takes what all have
        assert (x + y).tolist() == [3.0, 10.0]


def test_what_is_on_the_cpu_is_for_all(device: list[int], other: str) -> None:
    with rg.no_grad():
        model = rg.jit(lambda m: pytree.map(lambda w: w * 0 + 2, m))(rg.nn.Linear(2, 2))
    x = rg.tensor([1.0, 2.0])
    deferred = x * 3
    assert deferred.cpu() is deferred
    double = rg.jit(lambda x: x.cpu() + x.to("cpu"))
    assert double(x).tolist() == [2.0, 4.0]
    with rg.backend(other):
        assert (deferred + 1).tolist() == [4.0, 7.0]
        with pytest.raises(rg.BackendError, match=r"model\.cpu\(\)"):
            model(x).numpy()
        assert model.to("cpu") is model
        assert model(x).detach().tolist() == [8.0, 8.0]
