"""Transforms of images `[..., H, W]`, such as `[C, H, W]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.data.transforms.compose import RandomTransform, probability
from retrograd.data.transforms.values import Array, values
from retrograd.errors import OptionError, ShapeError
from retrograd.lazy_import import need


def _image(x: Any, what: str) -> Array:
    found = values(x)
    if found.ndim < 2:
        raise ShapeError(f"{what}: an image has the axes [..., H, W], not the shape {found.shape}")
    return found


def _pair(size: int | Sequence[int], what: str) -> tuple[int, int]:
    """`(height, width)`."""
    both = (size, size) if isinstance(size, int) else tuple(size)
    if len(both) != 2 or not all(isinstance(n, int) and n > 0 for n in both):
        raise OptionError(f"{what}: a size is a positive integer, or two, (H, W), not {size!r}")
    return both[0], both[1]


class CenterCrop:
    """The middle `size` of an image; `ShapeError` where it is smaller.

    >>> import numpy as np
    >>> from retrograd.data.transforms import CenterCrop
    >>> CenterCrop(2)(np.arange(16).reshape(4, 4)).tolist()
    [[5, 6], [9, 10]]
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = _pair(size, "CenterCrop")

    def __call__(self, x: Any) -> Array:
        image = _image(x, "CenterCrop")
        spare = _spare(image, self.size, "CenterCrop")
        return _cropped(image, (round(spare[0] / 2), round(spare[1] / 2)), self.size)


def _spare(image: Array, size: tuple[int, int], what: str) -> tuple[int, int]:
    spare = image.shape[-2] - size[0], image.shape[-1] - size[1]
    if min(spare) < 0:
        raise ShapeError(
            f"{what}: an image of {image.shape[-2]} x {image.shape[-1]} has no part of "
            f"{size[0]} x {size[1]}; a RandomCrop with padding, or larger images do"
        )
    return spare


def _cropped(image: Array, start: tuple[int, int], size: tuple[int, int]) -> Array:
    (top, left), (height, width) = start, size
    return image[..., top : top + height, left : left + width]


class RandomCrop(RandomTransform):
    """A part of this size at a random place, of an image with `padding` pixels of `fill` around it;
    `ShapeError` where it is smaller.

    >>> import numpy as np
    >>> from retrograd.data.transforms import RandomCrop
    >>> RandomCrop(4, padding=1)(np.ones((3, 4, 4))).shape
    (3, 4, 4)
    """

    def __init__(
        self, size: int | Sequence[int], padding: int = 0, fill: float = 0, seed: int = 0
    ) -> None:
        super().__init__(seed)
        self.size = _pair(size, "RandomCrop")
        self.padding = padding
        self.fill = fill

    def apply(self, x: Any, rng: np.random.Generator) -> Array:
        image, n = _image(x, "RandomCrop"), self.padding
        if n:
            around = [(0, 0)] * (image.ndim - 2) + [(n, n), (n, n)]
            image = np.pad(image, around, constant_values=self.fill)
        spare = _spare(image, self.size, "RandomCrop")
        start = int(rng.integers(spare[0] + 1)), int(rng.integers(spare[1] + 1))
        return _cropped(image, start, self.size)


class RandomHorizontalFlip(RandomTransform):
    """Left and right exchanged, with probability `p`; `OptionError` where that is none.

    >>> from retrograd.data.transforms import RandomHorizontalFlip
    >>> RandomHorizontalFlip(p=1.0)([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """

    axis = -1

    def __init__(self, p: float = 0.5, seed: int = 0) -> None:
        super().__init__(seed)
        self.p = probability(p, type(self).__name__)

    def apply(self, x: Any, rng: np.random.Generator) -> Array:
        image = _image(x, type(self).__name__)
        return np.flip(image, self.axis) if rng.random() < self.p else image


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, with probability `p`; `OptionError` where that is none.

    >>> from retrograd.data.transforms import RandomVerticalFlip
    >>> RandomVerticalFlip(p=1.0)([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """

    axis = -2


class RandomRotation(RandomTransform):
    """A rotation about the middle by an angle that is uniform between `-degrees` and `degrees`, or
    the two given, against the clock. What comes from outside is `fill`. The nearest pixels are
    taken, or, with `order=1`, the four around are weighed.

    `OptionError` for angles that do not ascend.

    >>> import numpy as np
    >>> from retrograd.data.transforms import RandomRotation
    >>> RandomRotation((90, 90))(np.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """

    def __init__(
        self, degrees: float | Sequence[float], fill: float = 0, order: int = 0, seed: int = 0
    ) -> None:
        super().__init__(seed)
        both = (-degrees, degrees) if isinstance(degrees, int | float) else tuple(degrees)
        if len(both) != 2 or not both[0] <= both[1]:
            raise OptionError(
                f"RandomRotation: degrees are a positive number, or two that ascend, not {degrees}"
            )
        if order not in (0, 1):
            raise OptionError(f"RandomRotation: order is 0 (nearest) or 1 (linear), not {order}")
        self.degrees = both
        self.fill = fill
        self.order = order

    def apply(self, x: Any, rng: np.random.Generator) -> Array:
        ndimage = need("scipy.ndimage", "RandomRotation")
        image = _image(x, "RandomRotation")
        angle = float(rng.uniform(*self.degrees))
        given = image.astype(np.float64) if self.order else image
        turned = ndimage.rotate(
            given, angle, axes=(-1, -2), reshape=False, order=self.order, cval=self.fill
        )
        if self.order and image.dtype.kind in "iu":
            turned = np.rint(turned)
        made: Array = turned.astype(image.dtype)
        return made
