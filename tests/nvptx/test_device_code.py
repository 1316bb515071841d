"""What a graph becomes before it is run: kernels, scratch memory, sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx.device import ALIGNMENT
from retrograd.nvptx.device_code import DeviceCode, SpecializedCode
from tests.nvptx.interpreted_device import InterpretedDevice

X = np.ones((6, 8), np.float32)


def code_of(f: object, *arrays: object) -> DeviceCode:
    return DeviceCode(rg.trace(f, *arrays), InterpretedDevice())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("f", "fixed"),
    [
        (lambda x: rg.softmax(x @ x.T), True),
        (lambda x: rg.scan(lambda c, r: (c + r, c), rg.zeros((8,)), x), True),
        (lambda x: rg.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), False),
        (lambda x: rg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, x), False),
        (lambda x: rg.linalg.inv(x[:, :6] + 9 * rg.eye(6)), False),  # by the host
    ],
)
def test_whether_all_commands_are_known_beforehand(f: object, fixed: bool) -> None:
    assert code_of(f, X).fixed is fixed


def test_calls_of_the_host_and_checks() -> None:
    code = code_of(lambda x, i: rg.linalg.inv(x[:, :6] + 9 * rg.eye(6))[i], X, np.array([0]))
    assert {c.result.type.dtype for c in code.calls.values()} >= {rg.float32}
    assert code.checks
    assert not code_of(lambda x: x + 1, X).checks


def test_scratch_of_different_kernels_is_the_same_memory() -> None:
    """They follow one another; that of one kernel lies side by side, aligned."""
    x = np.random.default_rng(0).standard_normal((1, 5000)).astype(np.float32)
    code = code_of(lambda x: rg.cumsum(rg.sort(x, 1)[:, ::-1], 1), x)
    groups = [g for g in code._scratches if g]
    assert len(groups) >= 2
    each = []
    for group in groups:
        places = [(code.scratch_at(s, {}), s.size({})) for s in group]
        assert all(at % ALIGNMENT == 0 for at, _ in places)
        for (at, size), (following, _) in itertools.pairwise(places):
            assert at + size <= following
        each.append(max(at + size for at, size in places))
    assert max(each) <= code.scratch_bytes({}) < max(each) + ALIGNMENT


def test_sizes_are_known_later() -> None:
    graph = rg.trace(lambda x: rg.flip(rg.cumsum(x * 2, 0), (0,)), rg.spec((rg.Dim("N"), 3)))
    code = DeviceCode(graph, InterpretedDevice())
    few, many = (SpecializedCode(code, {"N": n}) for n in (4, 4000))
    assert few.arena < many.arena
    assert many.scratch == many.arena
    for kernel in code.plan.kernels:
        one, two = (s.launches(kernel, s.sizes) for s in (few, many))
        assert one is few.launches(kernel, few.sizes)
        assert [launch.function for launch in one] == [launch.function for launch in two]
    assert one[0].threads == 12  # the last one moves each element
    assert two[0].threads == 12_000


def test_memory_is_predicted() -> None:
    graph = rg.trace(lambda x: x[:, None] * x, rg.spec((rg.Dim("N"),)))
    code = DeviceCode(graph, InterpretedDevice(memory=1 << 27))
    SpecializedCode(code, {"N": 5000})
    with pytest.raises(rg.MemoryLimitError, match=r"sizes \{'N': 6000\} needs 144 MB.*134 MB"):
        SpecializedCode(code, {"N": 6000})
