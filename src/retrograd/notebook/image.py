"""Matrices and images as small PNG pictures, with what is not finite in colours of its own."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CELLS = 1 << 15  # pixels of a matrix; a byte each
PIXELS = 12_000  # pixels of images in colour; three bytes each
TILES = 12  # matrices of a stack
EXACT = 1 << 20  # elements of what is averaged; of more, elements are picked
NAN, INFINITE, GAP, COLOURS = 252, 253, 254, 252  # places in the palette, and how many are colours
IMAGE = 8  # an axis of at least so many may be the height or width of an image

# Viridis and a blue-white-red scale, at equal distances.
RISING = "440154 414487 2a788e 22a884 7ad151 fde725"
DIVERGING = "2166ac 92c5de f7f7f7 f4a582 b2182b"


@dataclass(frozen=True)
class Image:
    """A PNG, how often its pixels are repeated for display, and what one has to know of it."""

    png: bytes
    width: int
    height: int
    note: str

    def img(self) -> str:
        """The element that shows it."""
        data = base64.b64encode(self.png).decode()
        return (
            f'<img alt="{self.note}" width="{self.width}" height="{self.height}" '
            f'src="data:image/png;base64,{data}"/>'
        )


def picture(array: Array) -> Image | None:
    """A picture of an array with two axes or more: images in colour, grey or coloured matrices, the
    first of a stack side by side. None of arrays that no picture tells anything of."""
    if array.ndim < 2 or min(array.shape) == 0 or min(array.shape[-2:]) < 2:
        return None
    found = _in_colour(array)
    return _scaled(array) if found is None else _coloured(*found)


# -- images in colour --------------------------------------------------------------------------


def _in_colour(a: Array) -> tuple[Array, int, tuple[int, ...]] | None:
    """Images as `[n, height, width, channels]`, how many there are and of what size; None for what
    is no image: bytes, or floating numbers from 0 to 1, with three channels, first or last, or
    four."""
    if a.ndim not in (3, 4) or (a.dtype != np.uint8 and a.dtype.kind != "f"):
        return None
    if a.shape[-1] in (3, 4) and min(a.shape[-3:-1]) >= IMAGE:
        images = a
    elif a.shape[-3] == 3 and min(a.shape[-2:]) >= IMAGE:
        images = np.moveaxis(a, -3, -1)
    else:
        return None
    images = images if a.ndim == 4 else images[None]
    shown = [_shrunk(x, PIXELS // min(len(images), TILES)) for x in images[:TILES]]
    small = np.stack(shown)
    if a.dtype == np.uint8:
        return small, len(images), images.shape[1:3]
    if not (np.isfinite(small).all() and small.min() >= 0 and small.max() <= 1):
        return None
    return np.rint(small.astype(np.float32) * 255), len(images), images.shape[1:3]


def _coloured(images: Array, stack: int, size: tuple[int, ...]) -> Image:
    n, h, w, channels = images.shape
    strip = np.full((h, n * (w + 1) - 1, channels), 255, np.uint8)
    if channels == 4:
        strip[...] = 0
    for i, image in enumerate(images):
        strip[:, i * (w + 1) : i * (w + 1) + w] = image
    note = [_counted(n, stack, "images"), "" if (h, w) == size else f"shown at {h} x {w}"]
    return _finished(strip, 2 if channels == 3 else 6, None, ", ".join(filter(None, note)))


# -- numbers as colours ------------------------------------------------------------------------


def _scaled(a: Array) -> Image:
    """Numbers on a scale of colours."""
    stack, tiles = _tiles(a)
    small = [_shrunk(np.abs(t) if t.dtype.kind == "c" else t, CELLS // len(tiles)) for t in tiles]
    numbers = np.stack([t.astype(np.float64) for t in small])
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    both = low < 0 < high
    if both:
        high = max(-low, high)
        low = -high
    places = _places(numbers, low, high)
    n, h, w = places.shape
    strip = np.full((h, n * (w + 1) - 1), GAP, np.uint8)
    for i, tile in enumerate(places):
        strip[:, i * (w + 1) : i * (w + 1) + w] = tile
    palette = _palette(DIVERGING if both else RISING)
    magnitude = "magnitudes " if a.dtype.kind == "c" else ""
    note = f"{magnitude}{low:.3g} to {high:.3g}" if finite.size else "nothing finite"
    note += _counted(n, stack, "matrices", ", ")
    if tiles[0].shape != (h, w):
        how = "averaged" if tiles[0].size <= EXACT else "sampled"
        note += f", {how} to {h} x {w}"
    return _finished(strip, 3, palette, note)


def _tiles(a: Array) -> tuple[int, list[Array]]:
    """How many matrices there are along the leading axes, and the first of them."""
    if a.ndim == 2:
        return 1, [a]
    if a.ndim == 3 and a.shape[-1] == 1 and min(a.shape[:2]) >= IMAGE:  # one channel, last
        return 1, [a[..., 0]]
    if a.ndim == 4 and a.shape[-1] == 1 and min(a.shape[1:3]) >= IMAGE:
        a = a[..., 0]
    lead = a.shape[:-2]
    count = int(np.prod([int(n) for n in lead]))
    return count, [a[np.unravel_index(i, lead)] for i in range(min(count, TILES))]


def _counted(n: int, of: int, what: str, before: str = "") -> str:
    if of == 1:
        return ""
    return f"{before}{n} {what}" if n == of else f"{before}the first {n} of {of} {what}"


def _places(numbers: Array, low: float, high: float) -> Array:
    """The place in the palette of each number."""
    half = max(high / 2 - low / 2, np.finfo(np.float64).tiny)  # of a range that may overflow
    with np.errstate(invalid="ignore", over="ignore"):
        share = (numbers / 2 - low / 2) / half
    places = np.clip(np.nan_to_num(share, posinf=1.0, neginf=0.0), 0, 1) * (COLOURS - 1)
    found = np.rint(places).astype(np.uint8)
    found[np.isnan(numbers)] = NAN
    found[np.isinf(numbers)] = INFINITE
    return found


def _palette(colours: str) -> Array:
    """256 colours: a scale, then those of NaN and infinities, then of what lies between tiles."""
    anchors = np.array([list(bytes.fromhex(c)) for c in colours.split()], np.float64)
    at = np.linspace(0, len(anchors) - 1, COLOURS)
    known = np.arange(len(anchors))
    scale = np.stack([np.interp(at, known, anchors[:, k]) for k in range(3)], axis=1)
    rest = np.array([[214, 36, 159], [255, 128, 0], [128, 128, 128], [128, 128, 128]])
    return np.concatenate([np.rint(scale), rest]).astype(np.uint8)


# -- sizes -------------------------------------------------------------------------------------


def _shrunk(a: Array, most: int) -> Array:
    """An array whose first two axes have at most this many pixels: means of as many neighbours, in
    which NaN and infinities stay what they are; of very large arrays, elements at equal
    distances."""
    h, w = a.shape[:2]
    if h * w <= most:
        return a
    rows, columns = _fitted(h, w, most)
    top, left = np.arange(rows) * h // rows, np.arange(columns) * w // columns
    if a.size > EXACT:
        return a[top][:, left]
    counts = np.outer(np.diff([*top, h]), np.diff([*left, w]))
    wide = np.asarray(a, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.add.reduceat(np.add.reduceat(wide, top, axis=0), left, axis=1)
    mean = sums / counts.reshape(counts.shape + (1,) * (a.ndim - 2))
    return np.rint(mean).astype(np.uint8) if a.dtype == np.uint8 else mean


def _fitted(h: int, w: int, most: int) -> tuple[int, int]:
    """A height and width of the same ratio, as far as one is to see something: at most 512 wide."""
    scale = (most / (h * w)) ** 0.5
    columns = min(w, max(1, int(w * scale)), 512)
    rows = min(h, max(1, int(h * scale)), most // columns)
    return max(rows, 1), min(columns, most // max(rows, 1))


def _finished(pixels: Array, kind: int, palette: Array | None, note: str) -> Image:
    h, w = pixels.shape[:2]
    times = max(1, min(16, 480 // w, 160 // h))
    return Image(_png(pixels, kind, palette), w * times, h * times, note)


def _png(pixels: Array, kind: int, palette: Array | None) -> bytes:
    """PNG (ISO/IEC 15948): signature, header, palette, compressed rows without filters."""
    h, w = pixels.shape[:2]
    rows = np.concatenate([np.zeros((h, 1), np.uint8), pixels.reshape(h, -1)], axis=1)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, kind, 0, 0, 0))]
    if palette is not None:
        chunks.append((b"PLTE", palette.tobytes()))
        chunks.append((b"tRNS", bytes([255] * GAP + [0])))
    chunks += [(b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
