"""Datasets that are iterated over."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    ChainDataset,
    DataLoader,
    IterableDataset,
    MapIterableDataset,
    PackedWindows,
    ShuffleBuffer,
    sample_generator,
)
from retrograd.data.iterable import adapted, is_iterable_style, set_epoch


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_chains():
    chain = Count(2) + Count(1)
    assert isinstance(chain, ChainDataset)
    assert (list(chain), len(chain)) == ([0, 1, 0], 3)
    assert len(DataLoader(chain, 2)) == 2


def test_mapped():
    assert list(MapIterableDataset(Count(3), lambda i: -i)) == [0, -1, -2]
    keyed = MapIterableDataset([{"a": 1, "b": 2}], lambda v: v * 5, key="b")
    assert list(keyed) == [{"a": 1, "b": 10}]
    given = list(MapIterableDataset(Count(4), lambda i, rng: rng.random()))
    asked = list(MapIterableDataset(Count(4), lambda i: sample_generator().random()))
    assert given == asked
    assert len({*given}) == 4
    with pytest.raises(rg.ArgumentError, match="f is a function"):
        MapIterableDataset(Count(3), 3)  # type: ignore[arg-type]


def test_a_buffer_is_a_random_window():
    data = ShuffleBuffer(Count(200), 10)
    order = list(data)
    assert sorted(order) == list(range(200))
    assert all(i < at + 10 for at, i in enumerate(order))
    assert order != list(range(200))
    assert list(data) == order
    assert list(ShuffleBuffer(Count(200), 10, seed=1)) != order
    assert sorted(ShuffleBuffer(Count(3), 10)) == [0, 1, 2]
    loader = DataLoader(data, 200)
    (first,), (second,) = list(loader), list(loader)
    assert first.tolist() != second.tolist()
    own = DataLoader(ShuffleBuffer(Count(200), 10, seed=1), 200)
    (first,), (second,) = list(own), list(own)
    assert first.tolist() != second.tolist()  # its seed is its own, epochs still differ
    with pytest.raises(rg.OptionError, match="buffer_size is a positive integer"):
        ShuffleBuffer(Count(3), 0)


def test_what_is_iterated_over():
    class Foreign:
        def __getitem__(self, i):
            raise NotImplementedError

        def __iter__(self):
            return iter([1])

    class IterableDataset(Foreign):
        pass

    assert is_iterable_style(Count(1))
    assert is_iterable_style(IterableDataset())
    assert is_iterable_style(iter([1]))
    assert not is_iterable_style(Foreign())
    assert not is_iterable_style(ArrayDataset([1]))
    assert not is_iterable_style([1])


def test_arrays_become_datasets():
    x = np.arange(4.0)
    assert np.shares_memory(adapted(x).arrays[0], x)
    assert adapted(rg.tensor([1, 2]))[1] == 2
    own = Count(1)
    assert adapted(own) is own


def test_a_class_without_its_methods():
    with pytest.raises(NotImplementedError, match="IterableDataset has no __iter__"):
        list(IterableDataset())


def test_what_has_its_own_order_is_told_the_epoch():
    class Told(Count):
        def set_epoch(self, epoch):
            self.epoch = epoch

    told = Told(3)
    for k, wrapped in enumerate(
        [told, MapIterableDataset(told, abs), ShuffleBuffer(told, 2), ChainDataset([[1], told]),
         PackedWindows(MapIterableDataset(told, abs), 3)]
    ):  # fmt: skip
        set_epoch(wrapped, k)
        assert told.epoch == k
    set_epoch([1], 4)
