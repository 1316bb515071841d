"""How well one colour can be read on another: WCAG 2.1, relative luminance and contrast ratio."""

from __future__ import annotations

from collections.abc import Sequence


def luminance(rgb: Sequence[float]) -> float:
    """The relative luminance of a colour of sRGB, its parts from 0 to 255."""
    parts = [c / 255 for c in rgb[:3]]
    red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """From 1, the same, to 21, black on white."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def over(top: Sequence[float], ground: Sequence[float]) -> list[float]:
    """A colour that lets some of the ground through, by its fourth part from 0 to 1."""
    alpha = top[3] if len(top) > 3 else 1.0
    return [alpha * t + (1 - alpha) * g for t, g in zip(top[:3], ground[:3], strict=True)]
