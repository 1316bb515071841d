"""Learning rates as functions of the number of steps taken.

A schedule maps 0, 1, 2, ... to the rate of the first, second, third step. It takes ints, and
tensors inside `jit`, so it can be passed as `lr` to every optimizer, in both forms. Schedules
are values: two of the same numbers are equal, and `a * b` is their product.

>>> rate = linear(1.0, steps=4)
>>> [rate(i) for i in range(6)]
[1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import retrograd as rg
from retrograd.errors import OptionError
from retrograd.functions.tensor.tensor import Tensor


class _Numbers:
    """Functions of numbers under the names of those of tensors."""

    cos, floor, log, sqrt, minimum, maximum = math.cos, math.floor, math.log, math.sqrt, min, max

    @staticmethod
    def where(condition: bool, a: float, b: float) -> float:
        return a if condition else b

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        return min(max(x, low), high)


class Schedule:
    """A function of the step. A subclass defines `rate` of a float64, with the functions of a
    library: retrograd's for tensors, Python's for numbers."""

    def __call__(self, step: Any) -> Any:
        if isinstance(step, Tensor):
            return rg.asarray(self.rate(step.astype(rg.float64), rg), dtype=rg.float64)
        return float(self.rate(float(step), _Numbers))

    def rate(self, s: Any, lib: Any) -> Any:
        raise NotImplementedError

    def __mul__(self, other: Any) -> Schedule:
        return product(self, other)

    __rmul__ = __mul__


# -- one formula ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Decay(Schedule):
    """A rise in proportion to the step during `warmup` steps, up to `peak`, then a fall to `end`,
    reached after `steps` steps, the warm-up included."""

    decay: Literal["linear", "cosine", "polynomial"]
    peak: float
    steps: int
    end: float = 0.0
    warmup: int = 0
    power: float = 1.0

    def __post_init__(self) -> None:
        if self.decay not in ("linear", "cosine", "polynomial"):
            raise OptionError(
                f"the decay of a schedule is linear, cosine or polynomial, not {self.decay!r}"
            )
        if not 0 <= self.warmup <= self.steps or self.steps < 1:
            raise OptionError(
                f"a schedule of {self.steps} steps with {self.warmup} steps of warm-up: there is "
                "at least one step, and the warm-up is part of them"
            )

    def rate(self, s: Any, lib: Any) -> Any:
        done = lib.clip((s - self.warmup) / max(self.steps - self.warmup, 1), 0.0, 1.0)
        if self.decay == "cosine":
            left = 0.5 * (1 + lib.cos(math.pi * done))
        else:
            left = 1 - done if self.power == 1 else (1 - done) ** self.power
        rising = self.peak * ((s + 1) / max(self.warmup, 1))
        return lib.where(s < self.warmup, rising, self.end + (self.peak - self.end) * left)


def linear(peak: float, steps: int, end: float = 0.0, warmup: int = 0) -> Schedule:
    """From `peak` in a straight line to `end`, after `warmup` steps of rising to it."""
    return Decay("linear", peak, steps, end, warmup)


def cosine(peak: float, steps: int, end: float = 0.0, warmup: int = 0) -> Schedule:
    """From `peak` along half a cosine to `end` (Loshchilov, Hutter, arXiv:1608.03983), after
    `warmup` steps of rising to it."""
    return Decay("cosine", peak, steps, end, warmup)


def polynomial(
    peak: float, steps: int, power: float = 1.0, end: float = 0.0, warmup: int = 0
) -> Schedule:
    """From `peak` to `end` as `(1 - step / steps)**power`, after `warmup` steps of rising to it."""
    return Decay("polynomial", peak, steps, end, warmup, power)


@dataclass(frozen=True)
class _Constant(Schedule):
    value: float

    def rate(self, s: Any, lib: Any) -> Any:
        return self.value + 0 * s


def constant(value: float) -> Schedule:
    """The same rate in all steps."""
    return _Constant(value)


@dataclass(frozen=True)
class _Exponential(Schedule):
    start: float
    gamma: float
    every: int = 1
    end: float = 0.0

    def rate(self, s: Any, lib: Any) -> Any:
        times = s if self.every == 1 else lib.floor(s / self.every)
        return lib.maximum(self.start * self.gamma**times, self.end)


def exponential(start: float, gamma: float, end: float = 0.0) -> Schedule:
    """`start * gamma**step`, and never less than `end`."""
    return _Exponential(start, _ratio(gamma), 1, end)


def step(start: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """`start`, multiplied by `gamma` every `step_size` steps."""
    return _Exponential(start, _ratio(gamma), _count("step_size", step_size))


@dataclass(frozen=True)
class _MultiStep(Schedule):
    start: float
    milestones: tuple[int, ...]
    gamma: float

    def rate(self, s: Any, lib: Any) -> Any:
        passed = 0 * s
        for milestone in self.milestones:
            passed = passed + lib.where(s >= milestone, 1.0, 0.0)
        return self.start * self.gamma**passed


def multistep(start: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """`start`, multiplied by `gamma` at each milestone."""
    return _MultiStep(start, tuple(sorted(milestones)), _ratio(gamma))


@dataclass(frozen=True)
class _InverseSqrt(Schedule):
    peak: float
    warmup: int

    def rate(self, s: Any, lib: Any) -> Any:
        t = s + 1
        return self.peak * lib.minimum(t / self.warmup, lib.sqrt(self.warmup / t))


def inverse_sqrt(peak: float, warmup: int) -> Schedule:
    """A rise to `peak` in `warmup` steps, then a fall with the square root of the step (Vaswani et
    al., arXiv:1706.03762)."""
    return _InverseSqrt(peak, _count("warmup", warmup))


@dataclass(frozen=True)
class _WarmRestarts(Schedule):
    peak: float
    first: int
    multiplier: int
    end: float

    def rate(self, s: Any, lib: Any) -> Any:
        m = self.multiplier
        if m == 1:
            done = s / self.first - lib.floor(s / self.first)
        else:
            n = lib.floor(lib.log(s / self.first * (m - 1) + 1) / math.log(m))
            n = n + lib.where(s >= self._start(n + 1), 1.0, 0.0)  # the logarithm is rounded
            n = n - lib.where(s < self._start(n), 1.0, 0.0)
            done = (s - self._start(n)) / (self.first * float(m) ** n)
        return self.end + (self.peak - self.end) * (0.5 * (1 + lib.cos(math.pi * done)))

    def _start(self, n: Any) -> Any:
        """The step at which the cycle n begins."""
        return self.first * (float(self.multiplier) ** n - 1) / (self.multiplier - 1)


def warm_restarts(peak: float, first: int, multiplier: int = 1, end: float = 0.0) -> Schedule:
    """Half cosines from `peak` to `end`, one after the other; the first takes `first` steps, each
    `multiplier` times as many as the one before (Loshchilov, Hutter, arXiv:1608.03983)."""
    return _WarmRestarts(peak, _count("first", first), _count("multiplier", multiplier), end)


@dataclass(frozen=True)
class _Pieces(Schedule):
    """Between points (step, rate) along half cosines or straight lines; the last one stays."""

    points: tuple[tuple[float, float], ...]
    shape: Literal["cos", "linear"]

    def rate(self, s: Any, lib: Any) -> Any:
        (at, value), *rest = self.points
        found = value + 0 * s
        for until, goal in rest:
            done = lib.clip((s - at) / max(until - at, 1e-12), 0.0, 1.0)
            if self.shape == "cos":
                new = goal + (value - goal) * (0.5 * (1 + lib.cos(math.pi * done)))
            else:
                new = value + (goal - value) * done
            found = lib.where(s > at, new, found)
            at, value = until, goal
        return found


def one_cycle(
    peak: float,
    steps: int,
    pct_start: float = 0.3,
    anneal_strategy: Literal["cos", "linear"] = "cos",
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    three_phase: bool = False,
) -> Schedule:
    """From `peak / div_factor` up to `peak` during the share `pct_start` of the steps, then down to
    the `final_div_factor`-th part of the first rate (Smith, Topin, arXiv:1708.07120); with
    `three_phase` down to the first rate as fast as up, and to the last from there. The numbers are
    those of PyTorch's `OneCycleLR`."""
    _count("steps", steps)
    if anneal_strategy not in ("cos", "linear"):
        raise OptionError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
    if not 0 <= pct_start <= 1:
        raise OptionError(f"pct_start is from 0 to 1, not {pct_start}")
    first = peak / div_factor
    top = pct_start * steps - 1
    points = [(0.0, first), (top, peak)]
    if three_phase:
        points.append((2 * pct_start * steps - 2, first))
    points.append((steps - 1.0, first / final_div_factor))
    return _Pieces(tuple(points), anneal_strategy)


@dataclass(frozen=True)
class _Cyclic(Schedule):
    low: float
    high: float
    up: int
    down: int
    mode: Literal["triangular", "triangular2", "exp_range"]
    gamma: float

    def rate(self, s: Any, lib: Any) -> Any:
        total = self.up + self.down
        cycle = lib.floor(s / total)
        x = s - cycle * total
        height = lib.where(x <= self.up, x / self.up, (total - x) / self.down)
        if self.mode == "triangular2":
            height = height * 0.5**cycle
        elif self.mode == "exp_range":
            height = height * self.gamma**s
        return self.low + (self.high - self.low) * height


def cyclic(
    low: float,
    high: float,
    up: int = 2000,
    down: int | None = None,
    mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
    gamma: float = 1.0,
) -> Schedule:
    """Up from `low` to `high` in `up` steps and down again in `down` (as many), for ever (Smith,
    arXiv:1506.01186); with "triangular2" each time half as high, with "exp_range" `gamma**step`
    times as high."""
    if mode not in ("triangular", "triangular2", "exp_range"):
        raise OptionError(f"mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
    down = up if down is None else down
    return _Cyclic(low, high, _count("up", up), _count("down", down), mode, gamma)


# -- schedules of schedules ----------------------------------------------------------------------
@dataclass(frozen=True)
class _Warmup(Schedule):
    then: Callable[[Any], Any]
    steps: int
    start: float
    kind: Literal["linear", "exponential", "constant"]

    def __call__(self, step: Any) -> Any:
        lib: Any = rg if isinstance(step, Tensor) else _Numbers
        s = step.astype(rg.float64) if isinstance(step, Tensor) else float(step)
        done = (s + 1) / self.steps
        if self.kind == "linear":
            share = self.start + (1 - self.start) * done
        elif self.kind == "exponential":
            share = self.start ** (1 - done)
        else:
            share = self.start + 0 * done
        later = self.then(lib.maximum(step - self.steps, 0))
        found = lib.where(s < self.steps, self.then(0) * share, later)
        return found if lib is rg else float(found)


def warmup(
    then: Callable[[Any], Any] | float,
    steps: int,
    start: float = 0.0,
    kind: Literal["linear", "exponential", "constant"] = "linear",
) -> Schedule:
    """A rise during `steps` steps to the first rate of another schedule (or a number), which
    follows: from its share `start`, linear or exponential, or with that share throughout.

    >>> rate = warmup(linear(1.0, steps=2), steps=4)
    >>> [rate(i) for i in range(7)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.0]
    """
    if kind not in ("linear", "exponential", "constant"):
        raise OptionError(f"kind is 'linear', 'exponential' or 'constant', not {kind!r}")
    if start < 0 or (kind == "exponential" and start == 0):
        raise OptionError(f"start of a warm-up that is {kind}: a positive share, not {start}")
    return _Warmup(_scheduled(then), _count("steps", steps), start, kind)


@dataclass(frozen=True)
class _Sequence(Schedule):
    parts: tuple[Callable[[Any], Any], ...]
    milestones: tuple[int, ...]

    def __call__(self, step: Any) -> Any:
        if not isinstance(step, Tensor):
            passed = [m for m in self.milestones if step >= m]
            return float(self.parts[len(passed)](step - max(passed, default=0)))
        found = self.parts[0](step)
        for milestone, part in zip(self.milestones, self.parts[1:], strict=True):
            found = rg.where(step >= milestone, part(rg.maximum(step - milestone, 0)), found)
        return found


def sequence(parts: Sequence[Callable[[Any], Any] | float], milestones: Sequence[int]) -> Schedule:
    """Schedules one after the other; from each milestone on the next, which counts from there.

    >>> rate = sequence([0.1, linear(1.0, steps=2)], [3])
    >>> [rate(i) for i in range(6)]
    [0.1, 0.1, 0.1, 1.0, 0.5, 0.0]
    """
    if len(parts) != len(milestones) + 1 or list(milestones) != sorted(set(milestones)):
        raise OptionError(
            f"a sequence of {len(parts)} schedules has one milestone less, each above the one "
            f"before, not {list(milestones)}"
        )
    return _Sequence(tuple(_scheduled(part) for part in parts), tuple(milestones))


@dataclass(frozen=True)
class _Product(Schedule):
    parts: tuple[Callable[[Any], Any], ...]

    def __call__(self, step: Any) -> Any:
        found = self.parts[0](step)
        for part in self.parts[1:]:
            found = found * part(step)
        return found


def product(*parts: Callable[[Any], Any] | float) -> Schedule:
    """The product of schedules and numbers.

    >>> rate = 2 * linear(1.0, steps=4) * step(1.0, step_size=2, gamma=0.5)
    >>> [rate(i) for i in range(4)]
    [2.0, 1.5, 0.5, 0.25]
    """
    if not parts:
        raise OptionError("a product of no schedules")
    return _Product(tuple(_scheduled(part) for part in parts))


# -- a rate that depends on how it goes ----------------------------------------------------------
@dataclass(frozen=True)
class Plateau:
    """A factor of the rate that falls when a value has stopped improving: PyTorch's
    `ReduceLROnPlateau` as pure functions, for use inside `jit`.

        plateau = Plateau(factor=0.5, patience=3)
        state = plateau.init()
        state = plateau.update(state, validation_loss)
        rate = plateau.scale(state) * 0.1

    After more than `patience` values in a row that are not better than the best by `threshold`
    (of it with "rel", by that much with "abs") the scale is multiplied by `factor`, down to
    `least`; then `cooldown` values do not count.
    """

    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: Literal["rel", "abs"] = "rel"
    cooldown: int = 0
    least: float = 0.0
    mode: Literal["min", "max"] = "min"

    def __post_init__(self) -> None:
        if not 0 <= self.factor < 1:
            raise OptionError(f"factor of a plateau is from 0 to below 1, not {self.factor}")
        if self.mode not in ("min", "max") or self.threshold_mode not in ("rel", "abs"):
            raise OptionError(
                f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {self.mode!r} and "
                f"{self.threshold_mode!r}"
            )

    def init(self) -> dict[str, Tensor]:
        """The state before the first value."""
        worst = math.inf if self.mode == "min" else -math.inf
        zero = rg.zeros((), dtype=rg.int64)
        one = rg.ones((), dtype=rg.float64)
        best = rg.full((), worst, dtype=rg.float64)
        return {"scale": one, "best": best, "bad": zero, "cooling": zero}

    def update(self, state: dict[str, Tensor], value: Any) -> dict[str, Tensor]:
        """The state after one more value."""
        value = rg.asarray(value).astype(rg.float64)
        best = state["best"]
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            better = sign * value < sign * best * (1 - sign * self.threshold)
        else:
            better = sign * value < sign * best - self.threshold
        best = rg.where(better, value, best)
        zero = rg.zeros_like(state["bad"])
        bad = rg.where(better, zero, state["bad"] + 1)
        cools = state["cooling"] > 0
        cooling = rg.where(cools, state["cooling"] - 1, zero)
        bad = rg.where(cools, zero, bad)
        falls = bad > self.patience
        scale = rg.where(
            falls, rg.maximum(state["scale"] * self.factor, self.least), state["scale"]
        )
        cooling = rg.where(falls, zero + self.cooldown, cooling)
        return {"scale": scale, "best": best, "bad": rg.where(falls, zero, bad), "cooling": cooling}

    def scale(self, state: dict[str, Tensor]) -> Tensor:
        """What the rate is to be multiplied by."""
        return state["scale"]


def _scheduled(part: Callable[[Any], Any] | float) -> Callable[[Any], Any]:
    return part if callable(part) else constant(part)


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise OptionError(f"{name} of a schedule is a whole number from 1 on, not {value}")
    return int(value)


def _ratio(gamma: float) -> float:
    if not gamma > 0:
        raise OptionError(f"gamma of a schedule is positive, not {gamma}")
    return float(gamma)
