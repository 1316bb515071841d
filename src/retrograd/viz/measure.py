"""An array for people: extremes, mean, norm, histogram, what is not finite, and a picture."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Summary = dict[str, Any]

BINS = 24
SHOWN = 16  # elements of an array that is given whole
LEAST_TILE = 64  # cells that a tile has where there are too many tiles to show all


def summary(array: np.ndarray[Any, Any], cells: int = 0) -> Summary:
    """What a page tells about an array; complex numbers by their magnitudes.

    `data` holds the elements of a small array in row-major order, and nothing else is needed of a
    single number. Of others: `size`; `min`, `max`, `mean`, `std`, `norm` (Euclidean) and `zeros`
    over the finite elements; `hist`, counts in equal bins from `min` to `max`; `nan` and `inf`, how
    many are not finite, and `bad`, the index of the first. `map` is a picture of at most so many
    `cells`, see `heat_map`.
    """
    a = np.asarray(array)
    if a.dtype.kind == "c":
        a = np.abs(a)
    exact = a.dtype.kind in "biu"
    if a.size == 1:
        return {"data": [a.reshape(-1)[0].item() if exact else _number(a.reshape(-1)[0])]}
    found: Summary = {"size": int(a.size)}
    if a.size == 0:
        return found
    if cells:
        found["map"] = heat_map(a, cells)
    flat = np.asarray(a, np.float64).reshape(-1)
    finite = np.isfinite(flat)
    if a.size <= SHOWN:
        found["data"] = [x.item() for x in a.reshape(-1)] if exact else [_number(x) for x in flat]
    if not finite.all():
        found["nan"] = int(np.isnan(flat).sum())
        found["inf"] = int(np.isinf(flat).sum())
        found["bad"] = [int(i) for i in np.unravel_index(int(np.argmin(finite)), a.shape)]
        flat = flat[finite]
    if flat.size:
        low, high = float(flat.min()), float(flat.max())
        scale = max(abs(low), abs(high)) or 1.0
        counts = _histogram(flat, low, high)
        found |= {
            "min": low,
            "max": high,
            "mean": float((flat / scale).mean()) * scale,
            "std": _capped(scale, float((flat / scale).std())),
            "norm": _capped(scale, float(np.linalg.norm(flat / scale))),
            "zeros": int((flat == 0).sum()),
            "hist": counts,
        }
    return found


def heat_map(a: np.ndarray[Any, Any], cells: int) -> dict[str, Any]:
    """An array as a picture of at most so many cells, in a form that is short as text.

    The last two axes are a tile, the axes before them count tiles; a vector is one row. Where there
    are more elements than cells, a cell stands for a block of `block` (rows, columns) and shows the
    element of it that is largest in magnitude, NaN before all others; tiles for which there is no
    room are left out, the last ones. `cells` is [tiles, rows, columns], and `f16` are their numbers
    as float16 in base64, to be multiplied by `scale`, the largest magnitude.

    >>> heat_map(np.array([[0.0, 1.0], [-4.0, 2.0]]), 16)
    {'shape': [2, 2], 'cells': [1, 2, 2], 'block': [1, 1], 'scale': 4.0, 'f16': 'AAAANAC8ADg='}
    """
    x = np.asarray(a, np.float64)
    tiles = x.reshape(-1, *x.shape[-2:]) if x.ndim > 1 else x.reshape(1, 1, -1)
    block = _block(tiles.shape[1:], max(cells // len(tiles), min(LEAST_TILE, cells)))
    rows, columns = (-(-n // b) for n, b in zip(tiles.shape[1:], block, strict=True))
    shown = _extremes(tiles[: max(1, cells // (rows * columns))], block)
    finite = np.abs(shown[np.isfinite(shown)])
    scale = float(finite.max(initial=0.0)) or 1.0
    packed = (shown / scale).astype("<f2").tobytes()
    return {
        "shape": list(a.shape),
        "cells": list(shown.shape),
        "block": list(block),
        "scale": scale,
        "f16": base64.b64encode(packed).decode(),
    }


def _block(shape: Sequence[int], cells: int) -> tuple[int, int]:
    """The block of which at most so many cover an array; it is the longer axis that gives way."""
    rows, columns = shape
    side = math.isqrt(cells)
    down = rows if rows <= side else max(side, cells // columns)
    across = columns if columns <= side else max(side, cells // rows)
    return -(-rows // min(down, rows)), -(-columns // min(across, columns))


def _extremes(tiles: np.ndarray[Any, Any], block: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Of each block of each tile the element of the largest magnitude; NaN is larger than all."""
    if block == (1, 1):
        return tiles
    count, *sizes = tiles.shape
    rows, columns = (-(-n // b) for n, b in zip(sizes, block, strict=True))
    padded = np.zeros((count, rows * block[0], columns * block[1]))
    padded[:, : sizes[0], : sizes[1]] = tiles
    split = padded.reshape(count, rows, block[0], columns, block[1]).swapaxes(2, 3)
    blocks = split.reshape(count, rows, columns, block[0] * block[1])
    magnitude = np.where(np.isnan(blocks), np.inf, np.abs(blocks))
    magnitude[np.isinf(blocks)] = np.finfo(np.float64).max
    at = magnitude.argmax(axis=-1)
    found: np.ndarray[Any, Any] = np.take_along_axis(blocks, at[..., None], axis=-1)[..., 0]
    return found


def _histogram(flat: np.ndarray[Any, Any], low: float, high: float) -> list[int]:
    width = high - low
    if width <= 0 or not math.isfinite(width):
        return [int(flat.size)]
    places = np.minimum(((flat - low) / width * BINS).astype(np.int64), BINS - 1)
    return [int(n) for n in np.bincount(places, minlength=BINS)]


def _capped(scale: float, norm: float) -> float:
    """The product, or the largest number where it would be infinite."""
    return min(scale * norm, float(np.finfo(np.float64).max))


def _number(x: Any) -> float:
    return float(x)
