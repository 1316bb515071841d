"""Schedules: shape, both kinds of step, no recompilation."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim

schedules: Any = optim.schedules


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
    with pytest.raises(rg.OptionError, match=r"linear, cosine or polynomial, not 'step'"):
        schedules.Decay("step", 1.0, 5)


MAKERS: dict[str, Any] = {
    "constant": (schedules.constant(0.3), lambda lib, o: lib.LambdaLR(o, lambda _: 1.0)),
    "step": (schedules.step(0.3, 7, 0.5), lambda lib, o: lib.StepLR(o, 7, 0.5)),
    "multistep": (
        schedules.multistep(0.3, [5, 20, 20], 0.5),
        lambda lib, o: lib.MultiStepLR(o, [5, 20, 20], 0.5),
    ),
    "exponential": (schedules.exponential(0.3, 0.9), lambda lib, o: lib.ExponentialLR(o, 0.9)),
    "polynomial": (
        schedules.polynomial(0.3, 20, 2.0),
        lambda lib, o: lib.PolynomialLR(o, 20, 2.0),
    ),
    "linear": (schedules.linear(0.3, 20, end=0.03), lambda lib, o: lib.LinearLR(o, 1, 0.1, 20)),
    "restarts": (
        schedules.warm_restarts(0.3, 5, 1, 0.01),
        lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 5, 1, 0.01),
    ),
    "longer restarts": (
        schedules.warm_restarts(0.3, 2, 3, 0.01),
        lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 2, 3, 0.01),
    ),
    "one cycle": (schedules.one_cycle(0.3, 60), lambda lib, o: lib.OneCycleLR(o, 0.3, 60)),
    "three phases": (
        schedules.one_cycle(0.3, 60, 0.2, "linear", 10.0, 100.0, True),
        lambda lib, o: lib.OneCycleLR(
            o, 0.3, 60, pct_start=0.2, anneal_strategy="linear", div_factor=10.0,
            final_div_factor=100.0, three_phase=True,
        ),
    ),
    "cyclic": (schedules.cyclic(0.1, 0.3, 7), lambda lib, o: lib.CyclicLR(o, 0.1, 0.3, 7)),
    "lower cycles": (
        schedules.cyclic(0.1, 0.3, 7, 3, "triangular2"),
        lambda lib, o: lib.CyclicLR(o, 0.1, 0.3, 7, 3, "triangular2"),
    ),
    "fading cycles": (
        schedules.cyclic(0.1, 0.3, 7, 3, "exp_range", 0.99),
        lambda lib, o: lib.CyclicLR(o, 0.1, 0.3, 7, 3, "exp_range", 0.99),
    ),
    "warm-up": (
        schedules.warmup(0.3, 6, 0.25, "constant"),
        lambda lib, o: lib.ConstantLR(o, 0.25, 6),
    ),
    "sequence": (
        schedules.sequence([0.03, schedules.exponential(0.3, 0.9)], [5]),
        lambda lib, o: lib.SequentialLR(
            o, [lib.ConstantLR(o, 0.1, 9), lib.ExponentialLR(o, 0.9)], [5]
        ),
    ),
    "product": (
        schedules.step(0.3, 7, 0.5) * schedules.exponential(1.0, 0.9),
        lambda lib, o: lib.ChainedScheduler([lib.StepLR(o, 7, 0.5), lib.ExponentialLR(o, 0.9)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_rates_are_those_of_the_scheduler(name: str) -> None:
    """Which are PyTorch's, see `test_lr_scheduler.py`; also of tensors, in one program."""
    rate, make = MAKERS[name]
    opt = optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=0.3, momentum=0.9)
    scheduler = make(optim.lr_scheduler, opt)
    compiled = rg.jit(rate)
    for i in range(60):
        assert rate(i) == pytest.approx(opt.param_groups[0]["lr"], rel=1e-12)
        assert isinstance(rate(i), float)
        if i in (0, 1, 2, 5, 7, 8, 10, 17, 26, 59):
            assert compiled(rg.tensor(i)).item() == pytest.approx(rate(i), rel=1e-12)
        scheduler.step()
    assert compiled.cache_stats()["compilations"] == 1
    assert compiled(rg.tensor(3)).dtype == rg.float64


def test_each_restart_begins_at_the_peak() -> None:
    """Though the logarithm that finds it is rounded, up or down."""
    for first in (2, 3, 5, 7, 10):
        for multiplier in (2, 3, 5):
            rate = schedules.warm_restarts(1.0, first, multiplier)
            start, length = 0, first
            for _ in range(8):
                assert rate(start) == 1.0
                assert start == 0 or rate(start - 1) < 0.51
                start, length = start + length, length * multiplier


def test_warm_up() -> None:
    rate = schedules.warmup(schedules.exponential(1.0, 0.5), 4, 1e-2, "exponential")
    expected = [10**-1.5, 0.1, 10**-0.5, 1.0, 1.0, 0.5, 0.25]
    assert [rate(i) for i in range(7)] == pytest.approx(expected)
    rate = schedules.warmup(2.0, 4, start=0.5)
    assert [rate(i) for i in range(6)] == pytest.approx([1.25, 1.5, 1.75, 2, 2, 2])
    assert rate(rg.tensor(1)).item() == 1.5
    rate = schedules.inverse_sqrt(1.0, 4)
    assert [rate(i) for i in (0, 3, 15)] == pytest.approx([0.25, 1.0, 0.5])


def test_plateau_falls_with_the_scheduler_under_jit() -> None:
    options: list[Any] = [
        {"factor": 0.5, "patience": 1},
        {"factor": 0.5, "patience": 0, "cooldown": 2, "threshold": 0.3},
        {"factor": 0.1, "patience": 1, "mode": "max", "threshold_mode": "abs", "threshold": 0.3},
    ]
    for given in options:
        plateau = schedules.Plateau(**given)
        update = rg.jit(plateau.update)
        opt = optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=1.0)
        scheduler = optim.lr_scheduler.ReduceLROnPlateau(opt, eps=0.0, **given)
        state = plateau.init()
        for value in np.random.default_rng(2).normal(size=25):
            state = update(state, rg.tensor(value))
            scheduler.step(value)
            assert plateau.scale(state).item() == pytest.approx(opt.lr, rel=1e-12)
        assert opt.current_lr < 0.1


def test_more_that_makes_no_sense() -> None:
    wrong: list[Any] = [
        lambda: schedules.step(1.0, 0),
        lambda: schedules.exponential(1.0, 0.0),
        lambda: schedules.cyclic(0.1, 0.2, mode="square"),
        lambda: schedules.one_cycle(1.0, 10, pct_start=2.0),
        lambda: schedules.one_cycle(1.0, 10, anneal_strategy="step"),
        lambda: schedules.warmup(1.0, 3, kind="square"),
        lambda: schedules.warmup(1.0, 3, kind="exponential"),
        lambda: schedules.sequence([1.0, 2.0], [3, 4]),
        lambda: schedules.sequence([1.0, 2.0, 3.0], [4, 3]),
        lambda: schedules.product(),
        lambda: schedules.Plateau(factor=1.0),
        lambda: schedules.Plateau(mode="up"),
    ]
    for make in wrong:
        with pytest.raises(rg.OptionError):
            make()
