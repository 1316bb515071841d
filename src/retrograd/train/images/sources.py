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
from retrograd.train.loop.rows import RowReader
from retrograd.xla.agreement import is_several

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
    images: Array | FolderImages
    labels: Array
    white: int = 255
    mirrored: bool = False

    def pixels(self, where: Array) -> Array | Pixels:
        """Some images as numbers from 0 to 1, float32; of those that are read when they are needed
        what does that."""
        if isinstance(self.images, FolderImages):
            return Pixels(self.images, where, self.white)
        return _scaled(self.images[where], self.white)


class FolderImages:
    """The images of a folder, of which each is read once, when it is asked for first."""

    def __init__(self, folder: ImageFolder, channels: int, size: int) -> None:
        self.folder = folder
        self.shape = (len(folder), channels, size, size)
        self._images: Array = np.empty(self.shape, np.uint8)  # memory is taken as it is filled
        self.is_read = np.zeros(len(folder), bool)

    def __getitem__(self, rows: Array) -> Array:
        for i in rows[~self.is_read[rows]]:
            self._images[i], _ = self.folder[int(i)]
            self.is_read[i] = True
        return self._images[rows]


class Pixels(RowReader):
    """Some images of a folder, as numbers from 0 to 1."""

    def __init__(self, images: FolderImages, where: Array, white: int) -> None:
        self._images, self._where, self._white = images, where, white
        self.shape, self.dtype = (len(where), *images.shape[1:]), np.dtype(np.float32)

    def read(self, rows: Array) -> Array:
        return _scaled(self._images[self._where[rows]], self._white)


def _scaled(images: Array, white: int) -> Array:
    return images.astype(np.float32) / white


def digits() -> ImageTask:
    """The digits that come with retrograd."""
    images, labels = bundled_digits()
    return ImageTask("digits", [str(i) for i in range(10)], images[:, None], labels, INK)


def read_folder(root: StrPath, size: int = 64, mode: str = "RGB") -> ImageTask:
    """The images of a folder with a folder for each class, resized to `size` by `size` pixels.

    All are read here, but where several processes train together: then each reads the images that
    it learns from or looks at, when it does.

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
    images = FolderImages(found, *shape[:2])
    labels = np.array(found.targets, np.int64)
    every = images if is_several() else images[np.arange(len(found))]
    return ImageTask(os.fspath(root), found.classes, every, labels, mirrored=True)
