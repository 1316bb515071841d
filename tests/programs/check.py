"""What must hold of a program, and what does not."""

from __future__ import annotations

import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from tests.programs import ways
from tests.programs.compare import CHANGE, Noise, differ, same_bits, spread
from tests.programs.plain import NoPlainMeaning
from tests.programs.program import Program
from tests.programs.ways import BITS, FLOATING, GRADIENTS, NEAR, NoSuchWay, Values

NOTHING = (NoSuchWay, NoPlainMeaning)
DIFFERENCES = "differences"
FORWARD = "forward"
SIZES = {f.__name__: f for f in (ways.other_sizes, ways.changing_sizes)}
MAPPED = "mapped"
EVERY = (*NEAR, "eager", *BITS, *SIZES, *GRADIENTS, DIFFERENCES, FORWARD, MAPPED)
CHEAP = (*ways.CHEAP, *ways.CHEAP_GRADIENTS, DIFFERENCES, FORWARD, MAPPED)


class Problem(NamedTuple):
    way: str
    text: str


class Counts(Counter[str]):
    """How many programs ran in each way."""


def problems(
    p: Program, chosen: Collection[str] = EVERY, counts: Counter[str] | None = None
) -> list[Problem]:
    """What is wrong with a program in the chosen ways."""
    check = _Check(p, chosen, counts if counts is not None else Counter())
    with ways.quiet():
        check.values()
        if ways.wanted(p):
            check.gradients()
    return check.found


class _Bounds:
    """What may differ from what the reference gives, measured if something does. `floor` is how
    large a part the bounds are of, at least: of gradients, that of the others."""

    def __init__(self, base: Values, run: Callable[[Noise], Values], floor: float = 0.0) -> None:
        self.base = base
        self._run = run
        self._floor = floor
        self._found: list[Any] | None = None

    def found(self) -> list[Any]:
        if self._found is None:
            least = max([self._floor, *map(_size, self.base)]) if self._floor else 0.0
            self._found = [
                bound + CHANGE.get(y.dtype.name, 0) * least
                for bound, y in zip(spread(self._run, self.base), self.base, strict=True)
            ]
        return self._found

    def differ(self, got: Values, types: bool = True) -> str:
        exact = [np.zeros(y.shape) for y in self.base]
        return differ(got, self.base, exact, types) and differ(got, self.base, self.found(), types)

    def along(self, v: list[Any]) -> float:
        """Of the product with a direction."""
        pairs = zip(self.found(), v, strict=True)
        bound = float(sum((b * np.abs(d)).sum() for b, d in pairs))
        return np.inf if np.isnan(bound) else bound


def takes_numbers(p: Program) -> bool:
    """Whether a program has an operation that is computed in another way, with other bits, where
    sizes have names: Fourier transforms, and overlaps of kernels of such sizes."""
    return re.search("fft|conv_transpose", p.text()) is not None


def is_coarse(p: Program) -> bool:
    """Whether numbers are rounded to dtypes in which a small difference is none."""
    return re.search(r"half|float16|\.float\(|float32|complex64", p.text()) is not None


def _noisy(p: Program, noise: Noise) -> Values:
    return ways.reference(p, noise=noise)


def _size(g: Any) -> float:
    with np.errstate(all="ignore"):
        size = np.abs(g.astype(np.complex128 if g.dtype.kind == "c" else np.float64))
    return float(size[np.isfinite(size)].max(initial=0))


class _Check:
    def __init__(self, p: Program, chosen: Collection[str], counts: Counter[str]) -> None:
        self.p = p
        self.chosen = chosen
        self.counts = counts
        self.found: list[Problem] = []

    def attempt(self, way: str, run: Callable[[], Any]) -> Any:
        """What a way gives; None where there is no such way, or where it fails."""
        try:
            result = run()
        except NOTHING:
            self.counts[f"no {way}"] += 1
            return None
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.found.append(Problem(
                way, f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno})"
            ))  # fmt: skip
            return None
        self.counts[way] += 1
        return result

    def say(self, way: str, wrong: str) -> None:
        if wrong:
            self.found.append(Problem(way, wrong))

    def values(self) -> None:
        p = self.p
        base = self.attempt("reference", lambda: ways.reference(p))
        if base is None:
            return
        bounds = _Bounds(base, lambda n: ways.reference(p, noise=n))
        for name in [n for n in NEAR if n in self.chosen]:
            got = self.attempt(name, partial(NEAR[name], p))
            if got is not None:
                types = name not in ("by_numpy", "by_torch")
                self.say(name, bounds.differ(got, types))
        bits = [n for n in BITS if n in self.chosen]
        named = BITS if "shapes=" in p.text() else ("named_sizes",)
        if bits or "eager" in self.chosen:
            got = self.attempt("eager", lambda: ways.eager(p))
            if got is None:
                return
            self.say("eager", bounds.differ(got))
            for name in bits:
                other = self.attempt(name, partial(BITS[name], p))
                if other is not None and name in named and takes_numbers(p):
                    self.say(name, bounds.differ(other))
                elif other is not None:
                    self.say(name, same_bits(other, got))
        self.other_sizes()

    def other_sizes(self) -> None:
        for name in [n for n in SIZES if n in self.chosen]:
            r = random.Random(self.p.seed)
            found = self.attempt(name, partial(SIZES[name], self.p, r))
            if found is not None:
                got, q = found
                bounds = _Bounds(ways.reference(q), partial(_noisy, q))
                sizes = {n: x.shape for n, x in q.inputs.items()}
                self.say(name, (w := bounds.differ(got)) and f"{w}, at {sizes}")

    def gradients(self) -> None:
        p = self.p
        names = [n for n in GRADIENTS if n in self.chosen]
        if not names and not {DIFFERENCES, FORWARD, MAPPED} & {*self.chosen}:
            return
        base = self.attempt("gradient", lambda: ways.of_reference(p))
        if base is None:
            return
        bounds = _Bounds(base, lambda n: ways.of_reference(p, noise=n), 1.0)
        for name in names:
            got = self.attempt(name, partial(GRADIENTS[name], p))
            if got is not None:
                self.say(name, bounds.differ(got))
        real = all(p.arrays()[k].dtype == np.float64 for k in ways.wanted(p))
        if not real or "looks" in p.traits():
            return
        if FORWARD in self.chosen:
            self.attempt(FORWARD, lambda: self.forward(base, bounds))
        if DIFFERENCES in self.chosen and "jumps" not in p.traits() and not is_coarse(p):
            self.attempt(DIFFERENCES, lambda: self.differences(base, bounds))
        if MAPPED in self.chosen:
            self.attempt(MAPPED, self.mapped)

    def direction(self) -> list[Any]:
        rng = np.random.default_rng(self.p.seed % (1 << 32))
        arrays = self.p.arrays()
        return [np.asarray(rng.uniform(-1, 1, arrays[k].shape)) for k in ways.wanted(self.p)]

    def slope(self, base: Values, v: list[Any]) -> float:
        return float(sum((g * d).sum() for g, d in zip(base, v, strict=True)))

    def forward(self, base: Values, bounds: _Bounds) -> None:
        """A tangent is the product with the gradient."""
        p, v = self.p, self.direction()
        slope = self.slope(base, v)
        if not np.isfinite(slope):
            return
        arrays = p.arrays()
        loss = ways.loss_of(p)

        def of(*inputs: Any) -> Any:
            given = [rg.asarray(x) for x in arrays]
            for k, x in zip(ways.wanted(p), inputs, strict=True):
                given[k] = x
            return loss(*given)

        with rg.backend("reference"):
            point = tuple(rg.tensor(arrays[k]) for k in ways.wanted(p))
            _, tangent = rg.jvp(of, point, tuple(rg.tensor(d) for d in v))
        apart = abs(float(tangent) - slope)
        if not apart <= 1e-13 and not apart <= (bound := bounds.along(v)):
            self.say(FORWARD, f"{float(tangent)!r} instead of {slope!r}, within {bound:.3g}")

    def differences(self, base: Values, bounds: _Bounds) -> None:
        """Differences at two steps; where these disagree the function is not smooth there."""
        p, v = self.p, self.direction()
        slope = self.slope(base, v)
        if not np.isfinite(slope):
            return
        loss = ways.loss_of(p)
        arrays = p.arrays()

        def at(t: float) -> float:
            given = [rg.tensor(x) for x in arrays]
            for k, d in zip(ways.wanted(p), v, strict=True):
                given[k] = rg.tensor(arrays[k] + t * d)
            with rg.backend("reference"):
                return float(loss(*given))

        h = 2.0**-16
        found = []
        for step in (4 * h, 2 * h, h):
            found.append((at(step) - at(-step)) / (2 * step))
        size = max(1.0, sum((np.abs(g * d)).sum() for g, d in zip(base, v, strict=True)))
        if not np.all(np.isfinite(found)):
            return
        bends = [(at(t) - 2 * at(0) + at(-t)) / t for t in (2 * h, h)]
        error = abs(found[0] - found[1]) + abs(found[1] - found[2])
        is_kink = abs(bends[1]) > 0.75 * abs(bends[0]) and abs(bends[1]) > 1e-6 * size
        if error > 1e-4 * size or is_kink:
            self.counts["kinks"] += 1
            return
        apart = abs(found[2] - slope) - 2 * error - 1e-6 * size
        if apart > 0 and apart > bounds.along(v):
            self.say(DIFFERENCES, f"{slope!r}, by differences {found}, bends {bends}")

    def mapped(self) -> None:
        """A map of the gradient has the gradient of each sample."""
        p = self.p
        if "looks" in p.traits() or any(x.size > 100 for x in p.arrays()):
            return
        stacks = [np.stack([x, x[..., ::-1] if x.ndim else x, x]) for x in p.arrays()]
        gradient = rg.grad(ways.loss_of(p), ways.wanted(p))
        with rg.backend("reference"):
            got = ways.arrays_of(rg.vmap(gradient)(*map(rg.tensor, stacks)))
            q = p.less(inputs={n: s[1].copy() for n, s in zip(p.inputs, stacks, strict=True)})
            bounds = _Bounds(ways.of_reference(q), lambda n: ways.of_reference(q, noise=n), 1.0)
            self.say(MAPPED, bounds.differ([y[1] for y in got]))


__all__ = ["CHEAP", "EVERY", "FLOATING", "Problem", "problems", "same_bits"]
