"""Samples that are read when a batch needs them, and the part of a batch that a process reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.train.loop.batches import ArrayRows, Stacked, batches_of
from retrograd.train.loop.rows import RowReader

Array = np.ndarray[Any, Any]


class Squares(RowReader):
    """Rows `[i, i * i]`, which notes those that were read."""

    def __init__(self, count: int) -> None:
        self.shape, self.dtype = (count, 2), np.dtype(np.float32)
        self.asked: list[int] = []

    def read(self, rows: Array) -> Array:
        self.asked += rows.tolist()
        return np.stack([rows, rows * rows], 1).astype(np.float32)


class Process:
    """The placement of one of several processes: it has every `count`-th row of a batch."""

    def __init__(self, number: int, count: int) -> None:
        self.number, self.count = number, count

    def own_rows(self, size: int) -> Array | None:
        return None if size % self.count else np.arange(size)[self.number :: self.count]

    def batch_of_rows(self, arrays: Any, rows: Array, size: int, lead: int = 0) -> Any:
        assert all(a.shape[lead] == len(rows) for a in arrays)
        return tuple(arrays)


def test_rows_that_are_read_are_those_of_the_arrays() -> None:
    reader = Squares(11)
    arrays = np.stack([np.arange(11), np.arange(11) ** 2], 1).astype(np.float32)
    for shuffle in (False, True):
        one = batches_of((reader,), 4, shuffle, seed=3)
        other = batches_of((arrays,), 4, shuffle, seed=3)
        assert one.fingerprint() == other.fingerprint()
        for _ in range(3):
            for a, b in zip(one.take(2), other.take(2), strict=True):
                for x, y in zip(a.stacked(0, a.count), b.stacked(0, b.count), strict=True):
                    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_each_process_reads_its_rows_in_the_order_of_one() -> None:
    """Of 14 samples in batches of 4: the last 2 are divided, too."""
    whole = ArrayRows((np.arange(14),), 4, True, seed=1)
    every = [g.leaves[0].reshape(-1) for g in whole.take(9) if isinstance(g, Stacked)]
    order = np.concatenate(every)
    for number in (0, 1):
        reader = Squares(14)
        place: Any = Process(number, 2)
        source = ArrayRows((reader,), 4, True, seed=1, placement=place)
        groups = source.take(9)
        assert [g.samples for g in groups] == [4, 2]
        assert reader.asked == [*order[number:12:2], *order[12 + number :: 2]]


def test_what_does_not_divide_is_read_by_all() -> None:
    reader = Squares(7)
    place: Any = Process(0, 2)
    source = ArrayRows((reader,), 4, False, placement=place)
    source.take(9)
    assert reader.asked == [0, 2, 4, 5, 6]


def test_the_memory_of_a_batch_is_that_of_all() -> None:
    """By it all processes decide alike how many steps a call does."""
    place: Any = Process(1, 4)
    (own,) = ArrayRows((np.zeros((8, 5)),), 8, False, placement=place).take(1)
    (all_,) = ArrayRows((np.zeros((8, 5)),), 8, False).take(1)
    assert own.nbytes == all_.nbytes == 8 * 5 * 8
