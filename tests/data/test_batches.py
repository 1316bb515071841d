"""Batches by number: of an order that is known, and of what somebody else's sampler gives."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.batches import ListedBatches, OrderedBatches, indices_of
from retrograd.tuning import TUNING


def taken(batches):
    found, number = [], 0
    while (indices := batches.get(number)) is not None:
        found.append(np.asarray(indices).tolist())
        number += 1
    return found


@pytest.mark.parametrize("drop_last", [False, True])
def test_slices_of_an_order(drop_last):
    order = np.array([3, 1, 4, 1, 5])
    expected = [[3, 1], [4, 1], [5]][: 2 if drop_last else 3]
    assert taken(OrderedBatches(order, 2, drop_last)) == expected
    assert (
        taken(OrderedBatches(range(1, 11, 2), 2, drop_last))
        == [[1, 3], [5, 7], [9]][: len(expected)]
    )


def test_another_order_is_told():
    order = OrderedBatches(np.array([3, 1, 2]), 2, False)
    OrderedBatches(np.array([3, 1, 2]), 2, False).resume(order.state())
    for other in (np.array([1, 3, 2]), range(3)):
        with pytest.raises(rg.FormatError, match="in another order"):
            OrderedBatches(other, 2, False).resume(order.state())


def test_what_is_left_of_a_list():
    def source():
        for k in range(5):
            pulled.append(k)
            yield [k, k + 1]

    pulled: list[int] = []
    batches = ListedBatches(source())
    assert batches.get(2) == [2, 3]
    assert pulled == [0, 1, 2]  # no more than is asked for
    batches.delivered(0)
    batches.delivered(1)
    assert batches.state() == {"rest": [[2, 3], [3, 4], [4, 5]]}
    assert batches.get(4) == [4, 5]
    assert batches.get(5) is None
    again = ListedBatches([[9]])
    again.resume({"batch": 2, **batches.state()})
    assert [again.get(k) for k in range(2, 6)] == [[2, 3], [3, 4], [4, 5], None]


def test_samplers_without_an_end(monkeypatch):
    monkeypatch.setattr(TUNING, "listed_indices", 20)
    batches = ListedBatches([k] for k in itertools.count())
    assert batches.get(1) == [1]
    with pytest.raises(rg.OptionError, match="more than 20 indices, and may have no end"):
        batches.state()
    assert batches.get(2) == [2]


def test_indices_are_those_of_python():
    assert [type(i) for i in indices_of((np.int64(1), True))] == [int, int]
    assert indices_of(np.array([2, 3])) == [2, 3]
    assert indices_of(["a", ("b", 1)]) == ["a", ("b", 1)]
    for wrong in (3, "abc"):
        with pytest.raises(rg.ArgumentError, match="a batch sampler gives lists"):
            indices_of(wrong)
