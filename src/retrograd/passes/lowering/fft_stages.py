"""The stages of a fast Fourier transform: its radices, and the roots of unity between them.

T. G. Stockham's form of the algorithm: a stage of radix r takes the numbers `x[q + s (p + k m)]`,
`k < r`, and writes `y[q + s (r p + k)]`, multiplied by `exp(2 pi i sign p k / (r m))`; s is the
product of the radices before, m of those behind. No stage has to reorder anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

LARGEST = 31  # prime factors of sizes that stages are made of
JOINED = 15  # radices of odd sizes are products of two factors up to this


@dataclass(frozen=True)
class FftStage:
    """`radix` numbers are combined, `behind` times for each of `before` places side by side. The
    roots begin at `start` of the table."""

    radix: int
    before: int
    behind: int
    start: int

    @property
    def places(self) -> int:
        """How often the stage is applied, and how far apart its numbers lie."""
        return self.before * self.behind

    @property
    def roots(self) -> int:
        """How many roots there are in the table, whose imaginary parts follow the real ones. There
        are none in the last stage."""
        return (self.radix - 1) * self.behind if self.behind > 1 else 0


def radices(n: int) -> list[int]:
    """The radices of a size of at least 2, in the order in which they are applied; none where a
    prime factor is too large. Powers of two come first, so that later stages have whole vectors."""
    twos = (n & -n).bit_length() - 1
    odd = []
    rest = n >> twos
    for prime in range(3, LARGEST + 1, 2):
        while rest % prime == 0:
            odd.append(prime)
            rest //= prime
    if rest > 1:
        return []
    if not twos:
        while len(odd) > 1 and odd[0] * odd[1] <= JOINED:
            odd[:2] = [odd[0] * odd[1]]
        return sorted(odd, reverse=True)
    # 8 8 4 4 rather than 8 8 8 2.
    fours = {0: 0, 1: 2, 2: 1}[twos % 3] if twos > 1 else 0
    if twos == 1:
        return [2, *reversed(odd)]
    return [8] * ((twos - 2 * fours) // 3) + [4] * fours + odd[::-1]


@cache
def stages(n: int) -> tuple[FftStage, ...]:
    """The stages of a size that has radices."""
    found, before, start = [], 1, 0
    for radix in radices(n):
        stage = FftStage(radix, before, n // (before * radix), start)
        found.append(stage)
        before *= radix
        start += 2 * stage.roots
    return tuple(found)


def roots_of_unity(fractions: np.ndarray, sign: float) -> np.ndarray:
    """`exp(2 pi i sign f)`, exact at quarters of a turn, and computed within an eighth of one."""
    quarters = np.rint(4 * fractions)
    near = np.exp(2j * np.pi * (fractions - quarters / 4))
    turned = near * np.array([1, 1j, -1, -1j])[quarters.astype(np.int64) % 4]
    # What is added leaves no negative zero, so that nothing times a root is none either.
    return np.asarray(turned if sign > 0 else turned.conj()) + 0


def table(n: int, sign: float) -> np.ndarray:
    """The roots of all stages: for each the real parts, `[radix - 1, behind]`, and the imaginary
    ones."""
    parts = []
    for stage in stages(n):
        if stage.roots:
            powers = np.outer(np.arange(1, stage.radix), np.arange(stage.behind))
            roots = roots_of_unity(powers / (stage.radix * stage.behind), sign)
            parts += [roots.real.ravel(), roots.imag.ravel()]
    return np.concatenate(parts) if parts else np.arange(2.0)  # never read


def smooth_size(least: int) -> int:
    """The least size from here on with no prime factor above 5, and as many twos as vectors have
    lanes."""
    powers = (16 * 3**i * 5**j for i in range(4) for j in range(3))
    return min([int(p) << max(0, math.ceil(math.log2(least / p))) for p in powers])
