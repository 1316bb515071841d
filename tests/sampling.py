"""Sweeps over many cases: all of them, or with `--sample`, as `make test` has it, a sample."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

# Set by tests/conftest.py, before any test module is imported.
is_sampling = False


def sampled(cases: Iterable[T], count: int, seed: str = "") -> list[T]:
    """All cases; with `--sample` `count` of them, in their order: the same ones in every run,
    others for another seed."""
    found = list(cases)
    if not is_sampling or len(found) <= count:
        return found
    chosen = random.Random(seed).sample(range(len(found)), count)
    return [found[i] for i in sorted(chosen)]


def mostly_exhaustive(cases: Iterable[Any], count: int, seed: str = "") -> list[Any]:
    """All cases, as parameters; `count` of them belong to `make test-all`, the others to
    `make test-exhaustive`."""
    found = list(cases)
    chosen = {*random.Random(seed).sample(range(len(found)), min(count, len(found)))}
    return [
        case if i in chosen else pytest.param(case, marks=pytest.mark.exhaustive)
        for i, case in enumerate(found)
    ]


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """What the marker `sample` leaves out of the parameters of each test function."""
    groups: dict[tuple[str, int], list[pytest.Item]] = {}
    counts: dict[tuple[str, int], int] = {}
    for item in items:
        if (marker := item.get_closest_marker("sample")) is not None:
            function, _, _ = item.nodeid.partition("[")
            axis = marker.kwargs.get("per")
            assert isinstance(item, pytest.Function)
            value = None if axis is None else item.callspec.params[axis]
            key = function, id(value)
            groups.setdefault(key, []).append(item)
            (counts[key],) = marker.args
    found: set[pytest.Item] = set()
    for key, group in groups.items():
        found |= {*group} - {*sampled(group, counts[key], group[0].name)}
    return found


def examples(count: int) -> settings:
    """Of a property, so many examples; with `--sample` an eighth of them."""
    return settings(max_examples=count // 8 if is_sampling else count)
