"""Learning rates that are changed from outside of the optimizer, under PyTorch's names.

    scheduler = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)
    for epoch in range(100):
        ...
        opt.step()
        scheduler.step()

As there, most change the rate that the group has, so that several can act on one optimizer, and the
rates are PyTorch's to the bit. `state_dict` has its keys; the optimizer's own holds those of its
schedulers, so that they are saved along. In the pure form use `optim.schedules`.
"""

from __future__ import annotations

import math
import types
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from retrograd.errors import ArgumentError, FormatError, OptionError
from retrograd.optim.optimizer import Optimizer, require

Rates = list[float]
Factor = Callable[[int], float]


class LRScheduler:
    """Base class of schedulers. A subclass defines `get_lr`, the rate of each group after
    `last_epoch` calls of `step()`.

    `last_epoch` says where to go on, with an optimizer whose state was loaded; -1 is the start.

    `OptionError` for options out of range, `ArgumentError` for what is no optimizer with parameters
    or has a rate that is a function of the step.

    >>> import retrograd as rg
    >>> opt = rg.optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> scheduler = rg.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise OptionError(
                    f"last_epoch={last_epoch}, to go on, but group {i} of the optimizer has no "
                    "'initial_lr': load the optimizer's state first, or begin with -1"
                )
        self.base_lrs: Rates = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._is_initial = False
        optimizer.lr_schedulers.append(self)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    @property
    def _lrs(self) -> Rates:
        """The rates that the groups have."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> Rates:
        """The rate of each group, as the last `step()` left it."""
        return self._last_lr

    def get_lr(self) -> Rates:
        """The rate of each group at `last_epoch`."""
        raise NotImplementedError

    def closed_form(self) -> Rates:
        """The same whatever came before, for `step(epoch)`."""
        return self.get_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to a given one."""
        self._step_count += 1
        self._update(epoch)

    def _update(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self.closed_form())

    def _set(self, rates: Rates) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = self._lrs

    _left_out: tuple[str, ...] = ("optimizer", "_is_initial")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in self._left_out}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where the scheduler whose `state_dict()` this is stood. `FormatError` for the state
        of another kind, which changes nothing."""
        mine = self.state_dict()
        missing = sorted(mine.keys() - state_dict.keys())
        if missing:
            raise FormatError(
                f"this is no state of {type(self).__name__}: it lacks {', '.join(missing)}"
            )
        self.__dict__.update({k: state_dict[k] for k in mine})


def _checked(scheduler: Any, optimizer: Any) -> Optimizer:
    name = type(scheduler).__name__
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"{name} takes an optimizer, not {type(optimizer).__name__}")
    if not optimizer.param_groups:
        raise ArgumentError(
            f"{name}: the optimizer was made without parameters, for the pure form; pass one of "
            "optim.schedules as its lr"
        )
    if any(callable(group["lr"]) for group in optimizer.param_groups):
        raise ArgumentError(
            f"{name}: the optimizer's lr is a function of the step already; pass a number"
        )
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group."""
    if not isinstance(value, list | tuple):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise OptionError(
            f"{name} has {len(value)} values, the optimizer {len(optimizer.param_groups)} groups"
        )
    return list(value)


# -- factors -------------------------------------------------------------------------------------
class _OfFunctions(LRScheduler):
    """A scheduler of functions of the epoch, of which those that are objects are saved."""

    _left_out = ("optimizer", "_is_initial", "lr_lambdas")

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        _checked(self, optimizer)
        self.lr_lambdas: list[Any] = per_group("lr_lambda", optimizer, lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise ArgumentError(f"lr_lambda is a function, not {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "lr_lambdas": [_attributes(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        functions = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = functions
        for f, attributes in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if attributes is not None:
                f.__dict__.update(attributes)


def _attributes(f: Any) -> dict[str, Any] | None:
    """What an object that can be called holds; nothing of a function."""
    plain = isinstance(f, types.FunctionType | types.BuiltinFunctionType)
    return None if plain or not hasattr(f, "__dict__") else dict(f.__dict__)


class LambdaLR(_OfFunctions):
    """The first rate times a function of the epoch, one or one per group."""

    def get_lr(self) -> Rates:
        return [
            base * f(self.last_epoch)
            for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_OfFunctions):
    """The rate is multiplied by a function of the epoch in each."""

    def get_lr(self) -> Rates:
        if self._is_initial:
            return self._lrs
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._lrs, strict=True)]


class StepLR(LRScheduler):
    """The rate is multiplied by `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        require(step_size >= 1, "step_size", step_size, "at least 1")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        stays = self.last_epoch == 0 or self.last_epoch % self.step_size != 0
        return self._lrs if stays else [lr * self.gamma for lr in self._lrs]

    def closed_form(self) -> Rates:
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate is multiplied by `gamma` at each milestone."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones: Counter[int] = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        times = self.milestones[self.last_epoch]
        return [lr * self.gamma**times for lr in self._lrs] if times else self._lrs

    def closed_form(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.milestones = Counter({int(k): v for k, v in dict(self.milestones).items()})


class ConstantLR(LRScheduler):
    """The rate times `factor` for `total_iters` epochs: a warm-up of one level."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        require(0 <= factor <= 1, "factor", factor, "from 0 to 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._lrs]
        if self.last_epoch != self.total_iters:
            return self._lrs
        if self.factor == 0:
            return self.base_lrs
        return [lr * (1.0 / self.factor) for lr in self._lrs]

    def closed_form(self) -> Rates:
        over = self.last_epoch >= self.total_iters
        return [lr * (self.factor + over * (1 - self.factor)) for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters`
    epochs: a linear warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        require(0 < start_factor <= 1, "start_factor", start_factor, "above 0, at most 1")
        require(0 <= end_factor <= 1, "end_factor", end_factor, "from 0 to 1")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._lrs]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [lr * (1.0 + rise / before) for lr in self._lrs]

    def closed_form(self) -> Rates:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [lr * (self.start_factor + rise * done / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate is multiplied by `gamma` in each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return self._lrs if self._is_initial else [lr * self.gamma for lr in self._lrs]

    def closed_form(self) -> Rates:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate falls to 0 as `(1 - epoch / total_iters)**power`."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        require(total_iters >= 1, "total_iters", total_iters, "at least 1")
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs
        now, before = (1.0 - e / self.total_iters for e in (self.last_epoch, self.last_epoch - 1))
        factor = (now / before) ** self.power
        return [lr * factor for lr in self._lrs]

    def closed_form(self) -> Rates:
        done = min(self.total_iters, self.last_epoch)
        return [lr * (1.0 - done / self.total_iters) ** self.power for lr in self.base_lrs]


# -- cosines -------------------------------------------------------------------------------------
class CosineAnnealingLR(LRScheduler):
    """The rate falls along half a cosine to `eta_min` in `T_max` epochs (Loshchilov, Hutter,
    arXiv:1608.03983), and rises again after them."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        require(T_max >= 1, "T_max", T_max, "at least 1")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self._is_initial:
            return self._lrs
        t, end, low = self.last_epoch, self.T_max, self.eta_min
        if self._step_count == 1 and t > 0:
            return [
                low + (base - low) * (1 + math.cos(t * math.pi / end)) / 2 for base in self.base_lrs
            ]
        if (t - 1 - end) % (2 * end) == 0:
            return [
                lr + (base - low) * (1 - math.cos(math.pi / end)) / 2
                for base, lr in zip(self.base_lrs, self._lrs, strict=True)
            ]
        ratio = (1 + math.cos(math.pi * t / end)) / (1 + math.cos(math.pi * (t - 1) / end))
        return [ratio * (lr - low) + low for lr in self._lrs]

    def closed_form(self) -> Rates:
        low, angle = self.eta_min, math.pi * self.last_epoch / self.T_max
        return [low + (base - low) * (1 + math.cos(angle)) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines one after the other, the first of `T_0` epochs, each `T_mult` times as long as
    the one before (Loshchilov, Hutter, arXiv:1608.03983). `step(epoch)` takes fractions."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        require(isinstance(T_0, int) and T_0 > 0, "T_0", T_0, "a whole number above 0")
        require(isinstance(T_mult, int) and T_mult >= 1, "T_mult", T_mult, "a whole number, 1 up")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        low, angle = self.eta_min, math.pi * self.T_cur / self.T_i
        return [low + (base - low) * (1 + math.cos(angle)) / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            self.last_epoch += 1
        else:
            self._go_to(0 if epoch is None else epoch)
        self._set(self.get_lr())

    def _update(self, epoch: int | None = None) -> None:
        self.step(epoch)

    def _go_to(self, epoch: float) -> None:
        require(epoch >= 0, "epoch", epoch, "not negative")
        first, times = self.T_0, self.T_mult
        self.T_i, self.T_cur = first, epoch
        if epoch >= first and times == 1:
            self.T_cur = epoch % first
        elif epoch >= first:
            n = int(math.log(epoch / first * (times - 1) + 1, times))
            self.T_cur = epoch - first * (times**n - 1) / (times - 1)
            self.T_i = first * times**n
        self.last_epoch = math.floor(epoch)


# -- cycles of rate and momentum -----------------------------------------------------------------
class _WithMomentum(LRScheduler):
    """A scheduler that moves momentum, or the first beta, against the rate."""

    cycle_momentum: bool

    def _prepare_momentum(
        self, optimizer: Optimizer, base: Any, most: Any, last_epoch: int
    ) -> tuple[Rates, Rates]:
        options = optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise OptionError(
                f"cycle_momentum: {type(optimizer).__name__} has neither momentum nor betas; pass "
                "cycle_momentum=False"
            )
        self.use_beta1 = "betas" in options
        base = per_group("base_momentum", optimizer, base)
        most = per_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            for low, high, group in zip(base, most, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return base, most

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """The rate goes up from `base_lr` to `max_lr` in `step_size_up` steps and down again in
    `step_size_down`, for ever (Smith, arXiv:1506.01186); with "triangular2" each time half as high,
    with "exp_range" `gamma**step` times as high, or by `scale_fn` of the cycle or the step
    (`scale_mode`). With `cycle_momentum` momentum goes the other way."""

    _left_out = ("optimizer", "_is_initial", "scale_fn")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _checked(self, optimizer)
        known = ("triangular", "triangular2", "exp_range")
        require(mode in known or scale_fn is not None, "mode", mode, f"one of {known}")
        rates = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        if last_epoch == -1:
            for lr, group in zip(rates, optimizer.param_groups, strict=True):
                group["lr"] = lr
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            low, high = self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = low, high
        super().__init__(optimizer, last_epoch)
        self.base_lrs = rates

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rises = x <= self.step_ratio
        height = x / self.step_ratio if rises else (x - 1) / (self.step_ratio - 1)
        scale = self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")


class OneCycleLR(_WithMomentum):
    """From `max_lr / div_factor` up to `max_lr` during the share `pct_start` of the steps, then
    down to the `final_div_factor`-th part of the first rate (Smith, Topin, arXiv:1708.07120); with
    `three_phase` down to the first rate as fast as up, and to the last from there. There are
    `total_steps`, or `epochs * steps_per_epoch`. With `cycle_momentum` momentum goes the other
    way."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _checked(self, optimizer)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        if total_steps is None:
            raise OptionError("OneCycleLR takes total_steps, or epochs and steps_per_epoch")
        require(total_steps >= 1, "total_steps", total_steps, "at least 1")
        require(0 <= pct_start <= 1, "pct_start", pct_start, "from 0 to 1")
        known = anneal_strategy in ("cos", "linear")
        require(known, "anneal_strategy", anneal_strategy, "'cos' or 'linear'")
        self.total_steps, self._anneal_func_type = total_steps, anneal_strategy
        top = pct_start * total_steps - 1
        phases: list[tuple[Any, ...]] = [
            (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        ]
        if three_phase:
            phases.append((2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        start = "initial_lr" if three_phase else "max_lr"
        before = "max_momentum" if three_phase else "base_momentum"
        phases.append((total_steps - 1, start, "min_lr", before, "max_momentum"))
        self._schedule_phases: list[dict[str, Any]] = [
            dict(zip(_PHASE, phase, strict=True)) for phase in phases
        ]
        rates = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(rates, optimizer.param_groups, strict=True):
                group["initial_lr"], group["max_lr"] = rate / div_factor, rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> Rates:
        t = self.last_epoch
        if t > self.total_steps:
            raise OptionError(
                f"step() number {t} of OneCycleLR, made for total_steps={self.total_steps}"
            )
        phases = self._schedule_phases
        ends = [float(phase["end_step"]) for phase in phases]
        i = min(bisect_left(ends, t), len(ends) - 1)
        start = ends[i - 1] if i else 0.0
        share = (t - start) / (ends[i] - start) if ends[i] != start else 1.0
        low, high, before, after = [str(phases[i][k]) for k in _PHASE[1:]]
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[low], group[high], share))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group[before], group[after], share))
        return rates


# -- schedulers of schedulers --------------------------------------------------------------------
class _OfSchedulers(LRScheduler):
    """Several schedulers of one optimizer, which are saved with this one."""

    _left_out = ("optimizer", "_is_initial", "_schedulers")

    def _take(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        if not schedulers:
            raise OptionError(f"{name} takes at least one scheduler")
        self._schedulers = list(schedulers)
        self._is_initial = False
        for scheduler in self._schedulers:
            if isinstance(scheduler, ReduceLROnPlateau) or not isinstance(scheduler, LRScheduler):
                raise ArgumentError(
                    f"{name} takes schedulers whose step() has no arguments, not "
                    f"{type(scheduler).__name__}"
                )
            if scheduler.optimizer is not (optimizer or self._schedulers[0].optimizer):
                raise ArgumentError(f"{name} takes schedulers of one optimizer, these are of two")
        self.optimizer = self._schedulers[0].optimizer
        kept = self.optimizer.lr_schedulers
        kept[:] = [s for s in kept if all(s is not x for x in self._schedulers)] + [self]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        saved = state_dict.get("_schedulers", ())
        if len(saved) != len(self._schedulers):
            raise FormatError(
                f"the state is of {len(saved)} schedulers, this has {len(self._schedulers)}"
            )
        for scheduler, state in zip(self._schedulers, saved, strict=True):
            scheduler.load_state_dict(state)
        mine = self.__dict__.keys() - set(self._left_out)
        self.__dict__.update({k: state_dict[k] for k in mine})


class SequentialLR(_OfSchedulers):
    """Schedulers one after the other; from each milestone on the next, which begins then."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"SequentialLR of {len(schedulers)} schedulers takes {len(schedulers) - 1} "
                f"milestones, not {len(milestones)}"
            )
        self._take(optimizer, schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self._schedulers)  # each has taken its first step when it was made
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        if epoch is not None:
            raise ArgumentError("SequentialLR.step() takes no epoch")
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def _update(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        i = bisect_right(self._milestones, self.last_epoch)
        self._schedulers[i]._update(self.last_epoch - (self._milestones[i - 1] if i else 0))
        self._last_lr = self._schedulers[i].get_last_lr()


def _undo(schedulers: Sequence[LRScheduler]) -> None:
    for scheduler in schedulers:
        if isinstance(scheduler, _OfSchedulers):
            _undo(scheduler._schedulers)
        else:
            scheduler.last_epoch -= 1


class ChainedScheduler(_OfSchedulers):
    """Schedulers that act together, each on the rate that the one before leaves."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._take(optimizer, schedulers)
        self._last_lr = self._lrs

    def _initial_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._last_lr = self._lrs

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler.step(epoch)
        self._last_lr = self._lrs

    def _update(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler._update(epoch)
        self._last_lr = self._lrs


# -- a rate that depends on how it goes ----------------------------------------------------------
class ReduceLROnPlateau(LRScheduler):
    """The rate is multiplied by `factor` when a value that `step(value)` is given has not improved
    for more than `patience` times in a row, by `threshold` (of the best one with "rel", by that
    much with "abs"); then `cooldown` values do not count. It stays above `min_lr`, and where it
    would change by at most `eps`.

    `OptionError` for options out of range. See `optim.schedules.Plateau` for the pure form.

    >>> import retrograd as rg
    >>> opt = rg.optim.SGD([rg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> scheduler = rg.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    >>> for loss in (3.0, 3.0, 3.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer = _checked(self, optimizer)
        require(factor < 1, "factor", factor, "below 1")
        require(mode in ("min", "max"), "mode", mode, "'min' or 'max'")
        known = threshold_mode in ("rel", "abs")
        require(known, "threshold_mode", threshold_mode, "'rel' or 'abs'")
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._last_lr = self._lrs
        self.best: float = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0
        optimizer.lr_schedulers.append(self)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at one more value."""
        current = float(metrics.item() if hasattr(metrics, "item") else metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._lrs

    @property
    def in_cooldown(self) -> bool:
        """Whether values do not count now."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * value < sign * (self.best * (1.0 - sign * self.threshold))
        return sign * value < sign * (self.best - sign * self.threshold)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise OptionError(
                    f"the optimizer has {len(groups)} groups by now, min_lr {len(self.min_lrs)} "
                    "values; set min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old, new = group["lr"], max(group["lr"] * self.factor, least)
            if old - new > self.eps:
                group["lr"] = new
