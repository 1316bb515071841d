"""The dtype that Python floats get where no array says otherwise, as `torch.set_default_dtype` sets
it: for the whole program.

What was traced, compiled or looked up before with another one is forgotten when it changes, so that
nobody has to ask for it with each operation.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from retrograd.ir import DType, complex64, float32


class Cache(Protocol):
    """What was made of Python numbers."""

    def forget(self) -> None:
        """Make it again."""


CACHES: WeakSet[Cache] = WeakSet()  # to be told of a change, beside those that are known by name


class _Default:
    """The dtypes now."""

    real: DType = float32
    complex: DType = complex64


DEFAULT = _Default()
