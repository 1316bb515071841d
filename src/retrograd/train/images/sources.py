"""Images with classes, split into those to learn from, to look at meanwhile, and to test on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.data import ImageFolder, bundled_digits
from retrograd.errors import FormatError
from retrograd.files import StrPath

Array = np.ndarray[Any, Any]
INK = 16  # the darkest pixel of the bundled digits
MEMORY = 4 << 30  # bytes of pixels that are read at once


@dataclass(frozen=True)
class ImageTask:
    """Pixels, uint8 `[N, C, H, W]`, and the number of the class of each image, int64 `[N]`.
    `white` is the value of a pixel that counts as 1; `mirrored` says whether an image seen in a
    mirror is one of the same class."""

    name: str
    classes: Sequence[str]
    images: Array
    labels: Array
    white: int = 255
    mirrored: bool = False

    def pixels(self, where: Array) -> Array:
        """Some images as numbers from 0 to 1, float32."""
        return self.images[where].astype(np.float32) / self.white


def digits() -> ImageTask:
    """The digits that come with retrograd."""
    images, labels = bundled_digits()
    return ImageTask("digits", [str(i) for i in range(10)], images[:, None], labels, INK)


def read_folder(root: StrPath, size: int = 64, mode: str = "RGB") -> ImageTask:
    """The images of a folder with a folder for each class, resized to `size` by `size` pixels.

    `FileNotFoundError` where there is no such folder; `FormatError` where it has no two folders
    with images, for a file that is no image, which is named, and for more than fits in memory.
    """
    found = ImageFolder(root, mode=mode, size=size)
    if len(found.classes) < 2:
        raise FormatError(
            f"{os.fspath(root)} has images of one class only, {found.classes[0]!r}; to tell "
            "classes apart there have to be at least two folders"
        )
    shape = (1 if mode == "L" else 3, size, size)
    total = len(found) * int(np.prod(shape))
    if total > MEMORY:
        raise FormatError(
            f"{os.fspath(root)} has {len(found):,} images, which take {total >> 20:,} MB with "
            f"{size} by {size} pixels; choose a smaller --size, or train on a part of them"
        )
    images = np.empty((len(found), *shape), np.uint8)
    for i in range(len(found)):
        images[i], _ = found[i]
    labels = np.array(found.targets, np.int64)
    return ImageTask(os.fspath(root), found.classes, images, labels, mirrored=True)
