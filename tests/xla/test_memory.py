"""What takes more memory than there is is refused before it runs, by what XLA has planned."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import memory_limit
from retrograd.xla import memory

jax = pytest.importorskip("jax", reason="the extra xla is not installed")


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of 16 kB, on which small arrays are looked at, too."""
    monkeypatch.setattr(memory_limit, "UNNOTICED", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 14)
    with rg.backend("xla"):
        yield


def test_a_result_that_does_not_fit(little: None, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = rg.jit(lambda x: x[:, None] * x)
    assert outer(rg.ones(60)).shape == (60, 60)  # 14,400 bytes
    with pytest.raises(rg.MemoryLimitError, match=r"(?s)needs 16\.4 kB, more than.*: mul"):
        outer(rg.ones(64))
    monkeypatch.undo()  # more memory: the same call goes on
    assert outer(rg.ones(64)).shape == (64, 64)


def test_temporary_arrays_count(little: None) -> None:
    f = rg.jit(lambda x: rg.sort(x[:, None] * x, axis=0)[0].sum())
    with pytest.raises(rg.MemoryLimitError, match="mul"):
        f(rg.ones(100))


def test_memory_that_is_given_away_is_not_counted_twice(little: None) -> None:
    def doubled(s: rg.Tensor) -> rg.Tensor:
        return s * 2

    state = np.ones(4000, np.float32)
    kept = rg.jit(doubled)
    given = rg.jit(doubled, donate=("s",))
    assert given(rg.tensor(state))[0].item() == 2.0
    with pytest.raises(rg.MemoryLimitError):  # one array more
        kept(rg.tensor(np.ones(4100, np.float32)))
    assert given(rg.tensor(np.ones(4100, np.float32)))[0].item() == 2.0


def planned(**sizes: int) -> Any:
    """A compiled program with this plan."""
    zero = dict.fromkeys(("temp_size_in_bytes", "output_size_in_bytes", "alias_size_in_bytes"), 0)
    return SimpleNamespace(memory_analysis=lambda: SimpleNamespace(**zero | sizes))


def test_virtual_devices_share_the_memory_of_the_host(little: None) -> None:
    graph = rg.trace(lambda x: x + 1, rg.spec((3,)))
    cpus = [SimpleNamespace(platform="cpu")] * 4
    memory.check_program(planned(temp_size_in_bytes=4000), graph, cpus)
    with pytest.raises(rg.MemoryLimitError, match=r"20 kB"):
        memory.check_program(planned(temp_size_in_bytes=5000), graph, cpus)


def test_of_a_gpu_what_it_tells(little: None) -> None:
    graph = rg.trace(lambda x: x + 1, rg.spec((3,)))

    def gpu(stats: dict[str, int] | None) -> Any:
        return SimpleNamespace(platform="gpu", memory_stats=lambda: stats)

    fuller = [gpu({"bytes_limit": 10_000, "bytes_in_use": n}) for n in (1000, 4000)]
    memory.check_program(planned(output_size_in_bytes=6000), graph, fuller)
    with pytest.raises(rg.MemoryLimitError, match=r"6\.1 kB, more than the 6 kB available on"):
        memory.check_program(planned(output_size_in_bytes=6100), graph, fuller)
    memory.check_program(planned(output_size_in_bytes=1 << 40), graph, [gpu(None)])
    memory.check_program(SimpleNamespace(memory_analysis=lambda: None), graph, fuller)
