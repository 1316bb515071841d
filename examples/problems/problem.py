"""What a problem is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A scalar function of some arrays. `derivative` is what users want of it: by default the
    gradient with respect to the arguments in `wrt`."""

    name: str
    sizes: tuple[Any, ...]  # from small to large; the first is for tests
    make: Callable[[Any, np.random.Generator], tuple[Array, ...]]  # data of a size
    f: Callable[..., Any]  # in retrograd
    reference: Callable[..., Any]  # the value in NumPy
    wrt: tuple[int, ...] = (0,)
