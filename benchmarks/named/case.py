"""Cases of programs with named sizes, and how they are written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Values = dict[str, int]


@dataclass(frozen=True)
class Case:
    """A function, its arguments, and values of the names to compare at."""

    name: str
    f: Callable[..., Any]
    arguments: tuple[str, ...]
    sizes: tuple[Values, ...]

    def arrays(self, sizes: Values) -> list[Array]:
        """Arguments of these sizes."""
        rng = np.random.default_rng(0)
        return [_array(rng, text, sizes) for text in self.arguments]

    def shapes(self) -> list[tuple[tuple[str, ...], str]]:
        """Of each argument the sizes as text, and the dtype."""
        parts = [text.partition("<") for text in self.arguments]
        return [(tuple(a.split()), "int64" if b else "float32") for a, b, _ in parts]


def _array(rng: np.random.Generator, text: str, sizes: Values) -> Array:
    shape, limit, bound = text.partition("<")
    own = tuple(number(d, sizes) for d in shape.split())
    if limit:
        return rng.integers(0, max(number(bound, sizes), 1), own)
    return (rng.normal(size=own) / max(own[-1:] or (1,)) ** 0.5).astype(np.float32)


def number(text: str, sizes: Values) -> int:
    """A size as a number: `"N"`, `"28"`, `"2*N"`."""
    found = 1
    for factor in text.strip().split("*"):
        found *= sizes[factor] if factor in sizes else int(factor)
    return found


def at(**names: tuple[int, ...] | list[int]) -> tuple[Values, ...]:
    """Values of several names, changed together."""
    return tuple(dict(zip(names, v, strict=True)) for v in zip(*names.values(), strict=True))


def every(*values: int, names: str = "N") -> tuple[Values, ...]:
    """The same value for all of some names, one after the other."""
    return tuple(dict.fromkeys(names.split(), v) for v in values)


def gradient_of(loss: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    """Value and gradients by the first arguments."""
    import retrograd as rg

    return rg.value_and_grad(loss, tuple(range(count)))
