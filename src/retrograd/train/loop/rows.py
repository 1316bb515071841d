"""Samples that are read when a batch needs them, and batches of which a process reads a part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from retrograd.distributed.training import Placement
from retrograd.functions.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]


class RowReader(ABC):
    """What stands for an array `[N, ...]` whose rows are read where they are asked for."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def read(self, rows: Array) -> Array:
        """The rows with these numbers."""

    @property
    def ndim(self) -> int:
        """How many axes the array has."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The memory that all of it takes."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice) -> Array:
        return self.read(np.arange(len(self))[index])


class RowShare:
    """The part of each batch of `size` samples that this process reads: `rows` of it."""

    def __init__(self, placement: Placement, size: int, rows: Array) -> None:
        self.placement, self.size, self.rows = placement, size, rows

    @classmethod
    def of(cls, placement: Placement | None, size: int) -> RowShare | None:
        """None where a process reads all of it."""
        rows = None if placement is None else placement.own_rows(size)
        return None if placement is None or rows is None else cls(placement, size, rows)

    def joined(self, leaves: list[Array], lead: int = 0) -> tuple[Tensor, ...]:
        """The batch of all processes; this one gives the rows that it has read. Before the axis of
        samples there are `lead` others."""
        return self.placement.batch_of_rows(leaves, self.rows, self.size, lead)
