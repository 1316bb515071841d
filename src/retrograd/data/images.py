"""Images in folders, one folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.data.dataset import Dataset, checked_index
from retrograd.errors import BackendError, FormatError, OptionError
from retrograd.files import StrPath

Array = np.ndarray[Any, Any]
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise BackendError(
            "images need the package pillow: pip install 'retrograd[data]'"
        ) from None
    return Image


def read_image(
    path: StrPath, mode: str | None = "RGB", size: int | Sequence[int] | None = None
) -> Array:
    """The pixels of an image file, uint8 `[C, H, W]`, of a mode of Pillow: `"RGB"`, `"L"` (gray,
    one channel), `"RGBA"`; None for that of the file. With `size`, height and width, it is resized.

    `FormatError` for a file that is no image, `BackendError` without the package `pillow`.

    >>> from retrograd.data import read_image
    >>> read_image("cat.jpg", size=(224, 224)).shape  # doctest: +SKIP
    (3, 224, 224)
    """
    pillow = _pillow()
    try:
        with pillow.open(path) as file:
            image = file if mode is None else file.convert(mode)
            if size is not None:
                height, width = (size, size) if isinstance(size, int) else size
                image = image.resize((width, height), pillow.Resampling.BILINEAR)
            pixels = np.array(image)
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises of damaged files
        raise FormatError(f"{os.fspath(path)} is no image that can be read: {error}") from None
    if pixels.ndim == 2:
        return pixels[None]
    return np.ascontiguousarray(np.moveaxis(pixels, -1, 0))


class ImageFolder(Dataset):
    """Images whose folder is their class, as in `root/cat/1.png`: samples are pairs of pixels,
    uint8 `[C, H, W]`, and the number of the class, in alphabetic order. Files are read when they
    are asked for; `transform` and `target_transform` are applied to the two parts.

    `classes` has the names, `class_to_idx` their numbers, `samples` paths and numbers, `targets`
    the numbers. `FormatError` for a root without folders, and for a class without images.

    >>> from retrograd.data import ImageFolder
    >>> ImageFolder("pets", size=(64, 64))[0][0].shape  # doctest: +SKIP
    (3, 64, 64)
    """

    def __init__(
        self,
        root: StrPath,
        transform: Callable[[Array], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        *,
        mode: str = "RGB",
        size: int | Sequence[int] | None = None,
        extensions: Sequence[str] = EXTENSIONS,
        allow_empty: bool = False,
    ) -> None:
        _pillow()
        self.root = Path(root)
        if not self.root.is_dir():
            raise FileNotFoundError(f"ImageFolder: there is no folder {self.root}")
        self.transform = transform
        self.target_transform = target_transform
        self.mode = mode
        self.size = size
        if mode not in ("L", "RGB", "RGBA"):
            raise OptionError(f"ImageFolder: mode is 'L', 'RGB' or 'RGBA', not {mode!r}")
        self.classes = sorted(p.name for p in self.root.iterdir() if p.is_dir())
        if not self.classes:
            raise FormatError(
                f"{self.root} has no folders; each class has one with its images: "
                f"{self.root}/cat/1.png"
            )
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples: list[tuple[str, int]] = []
        kinds = tuple(e.lower() for e in extensions)
        for name, i in self.class_to_idx.items():
            files = sorted(p for p in (self.root / name).rglob("*") if p.is_file())
            images = [str(p) for p in files if p.name.lower().endswith(kinds)]
            if not images and not allow_empty:
                raise FormatError(
                    f"the class {name!r} in {self.root} has no images, of the kinds "
                    f"{', '.join(kinds)}; remove the folder; in Python allow_empty=True takes it"
                )
            self.samples += [(path, i) for path in images]
        self.imgs = self.samples
        self.targets = [i for _, i in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[checked_index(index, len(self), "an ImageFolder")]
        pixels: Any = read_image(path, self.mode, self.size)
        if self.transform is not None:
            pixels = self.transform(pixels)
        return pixels, target if self.target_transform is None else self.target_transform(target)
