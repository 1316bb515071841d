"""What the emitter needs to know of a CPU. Nothing here changes a result, except `fma`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from retrograd.errors import OptionError

VARIABLE = "RETROGRAD_CPU"
SLOW_COMPRESS = frozenset({"znver4"})


@dataclass(frozen=True, slots=True)
class Target:
    """`width`: floats in a vector register, of which there are `registers`; 1: no vectors, but for
    rows whose results are combined lane by lane. `fma`: whether products
    are added with one rounding; where not, contractions round twice. `slow_compress`: whether
    storing chosen lanes side by side takes a hundred cycles, as which NumPy's sort of vectors takes
    several times longer than sorting by radix."""

    width: int = 16
    registers: int = 32
    fma: bool = True
    slow_compress: bool = False

    @staticmethod
    def of(features: Mapping[str, bool], cpu: str = "") -> Target:
        """Of the features that LLVM reports of the host, and its name for it."""

        def has(name: str) -> bool:
            return bool(features.get(name))

        if has("avx512f") and has("avx512vl"):
            return Target(16, 32, True, slow_compress=cpu in SLOW_COMPRESS)
        if has("avx"):
            return Target(8, 16, has("fma"))
        if has("neon"):
            return Target(4, 32, True)
        return Target(4, 16, has("fma"))


# The levels of x86-64: what they have, and the features that tell whether a CPU has it all.
LEVELS = {
    "x86-64": (Target(4, 16, False), ("sse2",)),
    "x86-64-v2": (Target(4, 16, False), ("sse4.2", "popcnt")),
    "x86-64-v3": (
        Target(8, 16, True),
        ("avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"),
    ),
    "x86-64-v4": (
        Target(16, 32, True),
        ("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"),
    ),
}


def level_reached(features: Mapping[str, bool]) -> str:
    """The highest level of which a CPU has all, or nothing."""
    reached = ""
    for level, (_, needed) in LEVELS.items():
        if not all(features.get(f) for f in needed):
            break
        reached = level
    return reached


def level_asked(features: Mapping[str, bool]) -> str:
    """The level that the environment variable RETROGRAD_CPU asks for, or nothing: the CPU at hand,
    with all it has. A level that this CPU does not reach is an `OptionError`."""
    name = os.environ.get(VARIABLE, "").strip()
    if name in ("", "native"):
        return ""
    if name not in LEVELS:
        raise OptionError(
            f"the environment variable {VARIABLE} is {name!r}; it can be "
            f"{', '.join(('native', *LEVELS))}"
        )
    for level, (_, needed) in LEVELS.items():
        missing = [f for f in needed if not features.get(f)]
        if missing:
            raise OptionError(
                f"the environment variable {VARIABLE} is {name!r}, but this CPU is below {level}: "
                f"it has no {', '.join(missing)}"
            )
        if level == name:
            break
    return name
