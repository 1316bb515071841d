"""Schedules: shape, both kinds of step, no recompilation."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim

schedules = optim.schedules


def test_linear():
    f = schedules.linear(0.01, 1000)
    assert [f(i) for i in (0, 500, 999, 1000, 2000)] == pytest.approx([0.01, 0.005, 1e-5, 0, 0])
    f = schedules.linear(1.0, 10, end=0.2, warmup=4)
    assert [f(i) for i in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert f(4) == 1.0
    assert f(7) == pytest.approx(0.6)
    assert f(50) == pytest.approx(0.2)


def test_cosine():
    f = schedules.cosine(2.0, 10, end=1.0)
    expected = [1 + 0.5 * (1 + math.cos(math.pi * i / 10)) for i in range(11)]
    assert [f(i) for i in range(11)] == pytest.approx(expected)
    f = schedules.cosine(2.0, 10, warmup=5)
    assert max(f(i) for i in range(11)) == f(4) == f(5) == 2.0


@pytest.mark.parametrize("make", [schedules.linear, schedules.cosine])
@pytest.mark.parametrize("warmup", [0, 3, 10])
def test_numbers_and_tensors_agree(make, warmup):
    f = make(0.3, 10, end=0.01, warmup=warmup)
    compiled = rg.jit(f)
    for i in range(14):
        step = rg.tensor(i)
        assert f(step).item() == pytest.approx(f(i), rel=1e-12)
        assert compiled(step).item() == pytest.approx(f(i), rel=1e-12)
    assert compiled.cache_stats()["compilations"] == 1
    assert f(np.int64(3)) == f(3)


def test_equal_schedules_are_equal():
    assert schedules.linear(1.0, 5) == schedules.linear(1.0, 5)
    assert "warmup=2" in repr(schedules.cosine(1.0, 5, warmup=2))


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"steps": 5, "warmup": 6}, {"steps": 5, "warmup": -1}]
)
def test_what_makes_no_sense(options):
    with pytest.raises(rg.OptionError):
        schedules.linear(1.0, **options)


def test_a_fall_of_another_name_is_refused():
    with pytest.raises(rg.OptionError, match=r"linear or cosine, not 'step'"):
        schedules.Schedule("step", 1.0, 5)  # type: ignore[arg-type]
