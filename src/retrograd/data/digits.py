"""The handwritten digits that come with retrograd."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DIGITS_ORIGIN = (
    "1,797 handwritten digits by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, "
    "CC BY 4.0 (retrograd/data/DIGITS.md)"
)


def bundled_digits() -> tuple[Array, Array]:
    """Images of digits, uint8 `[1797, 8, 8]` from 0 (paper) to 16 (ink), and the digits, int64
    `[1797]`; `DIGITS_ORIGIN` says where they are from.

    >>> images, labels = bundled_digits()
    >>> images.shape, labels[:4].tolist()
    ((1797, 8, 8), [0, 1, 2, 3])
    """
    from importlib.resources import as_file, files  # which imports much, for a set few ask for

    with as_file(files("retrograd.data").joinpath("digits.npz")) as path, np.load(path) as found:
        return found["images"], found["labels"].astype(np.int64)
