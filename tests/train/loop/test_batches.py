"""Where batches come from: orders, epochs, positions, and iterables of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.errors import ArgumentError, DTypeError, FormatError, OptionError
from retrograd.train.loop.batches import (
    BatchSource,
    batches_of,
    held_out_batches,
    is_arrays,
)

Array = np.ndarray[Any, Any]


def epoch_of(source: BatchSource, at_once: int = 3) -> list[Any]:
    """The batches of an epoch, taken so many at once, as trees of arrays."""
    found = []
    while groups := source.take(at_once):
        for group in groups:
            each = [group.batch(i) for i in range(group.count)]
            stacked = zip(*group.stacked(0, group.count), strict=True)
            for single, together in zip(each, stacked, strict=True):
                for a, b in zip(single, together, strict=True):
                    assert np.array_equal(a.numpy(), b.numpy())
            found += [pytree.unflatten(group.structure, [x.numpy() for x in b]) for b in each]
    source.end_epoch()
    return found


def test_rows_in_an_order_that_seed_and_epoch_give() -> None:
    x = np.arange(10)
    source = batches_of({"x": x, "y": -x}, 4, seed=3)
    epochs = [epoch_of(source) for _ in range(3)]
    for batches in epochs:
        assert [len(b["x"]) for b in batches] == [4, 4, 2]
        rows = np.concatenate([b["x"] for b in batches])
        assert sorted(rows) == list(x)
        assert np.array_equal(rows, -np.concatenate([b["y"] for b in batches]))
    orders = [[*b["x"]] for batches in epochs for b in batches]
    again = batches_of({"x": x, "y": -x}, 4, seed=3)
    assert [[*b["x"]] for _ in range(3) for b in epoch_of(again, 1)] == orders
    other = batches_of({"x": x, "y": -x}, 4, seed=4)
    assert [[*b["x"]] for b in epoch_of(other)] != orders[:3]
    assert len({tuple(o) for o in orders}) == 9
    assert [len(b["x"]) for b in epoch_of(batches_of({"x": x}, 4, drop_last=True))] == [4, 4]
    plain = epoch_of(batches_of(x, 4, shuffle=False))
    assert [b.tolist() for b in plain] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_position_is_gone_on_from() -> None:
    x = np.arange(10.0)
    lists = [x[i : i + 4] for i in range(0, 10, 4)]
    for make in (
        lambda: batches_of(x, 4),
        lambda: batches_of(lists),
        lambda: batches_of(lambda: iter(lists)),
    ):
        whole = make()
        wanted = [b.tolist() for _ in range(2) for b in epoch_of(whole)]
        for stop in range(4):
            source = make()
            epoch_of(source)
            for _ in range(stop):
                source.take(1)
            again = make()
            again.load_state_dict(source.state_dict())
            assert [b.tolist() for b in epoch_of(again)] == wanted[3 + stop :]
            assert again.epoch == 2


def test_a_loader_goes_on_by_itself() -> None:
    class Loader:
        """Counts up, in each epoch from where it stands."""

        def __init__(self) -> None:
            self.state = {"epoch": 0, "at": 0}

        def __iter__(self) -> Iterator[Array]:
            while self.state["at"] < 3:
                self.state["at"] += 1
                yield np.array([self.state["epoch"] * 10.0 + self.state["at"]])
            self.state = {"epoch": self.state["epoch"] + 1, "at": 0}

        def __len__(self) -> int:
            return 3

        def state_dict(self) -> dict[str, int]:
            return dict(self.state)

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.state = dict(state)

    source = batches_of(Loader())
    assert [b.item() for b in epoch_of(source)] == [1, 2, 3]
    source.take(2)
    again = batches_of(Loader())
    again.load_state_dict(source.state_dict())
    assert [b.item() for b in epoch_of(again)] == [13]
    assert [b.item() for b in epoch_of(again)] == [21, 22, 23]
    # At the end of an epoch of known length, too.
    whole = batches_of(Loader())
    whole.take(3)
    whole.end_epoch()
    again = batches_of(Loader())
    again.load_state_dict(whole.state_dict())
    assert [b.item() for b in epoch_of(again)] == [11, 12, 13]


def test_data_that_has_fewer_batches_than_were_taken() -> None:
    source = batches_of(lambda: iter([np.ones(2)]))
    source.load_state_dict({"epoch": 0, "at": 2})
    with pytest.raises(FormatError, match=r"had taken 2 batches.*fewer now"):
        source.take(1)


def test_an_iterator_may_fill_the_same_array_again() -> None:
    def batches() -> Iterator[Array]:
        held = np.zeros(2)
        for i in range(5):
            held[:] = i
            yield held

    assert [b.tolist() for b in epoch_of(batches_of(batches))] == [[i, i] for i in range(5)]


def test_groups_are_of_one_shape() -> None:
    sizes = [2, 2, 3, 3, 3, 1]
    source = batches_of(lambda: (np.ones(n) for n in sizes))
    assert [g.count for g in source.take(10)] == [2, 3, 1]
    assert [g.samples for g in batches_of([np.ones(n) for n in sizes]).take(10)] == [2, 3, 1]
    stacked = batches_of([np.ones(4), np.ones(4), np.ones(3)])
    assert [g.count for g in stacked.take(10)] == [2, 1]
    mixed = batches_of([np.ones(4), np.ones(4, np.float32), (np.ones(4),)])
    assert [g.count for g in mixed.take(10)] == [1, 1, 1]


@dataclass
class Pair:
    """Arrays by name."""

    x: Any
    y: Any


def test_what_counts_as_arrays() -> None:
    a = np.ones((4, 2))
    for data in (a, rg.ones((4, 2)), (a, a), {"x": a, "y": (a, a)}, Pair(a, a)):
        assert is_arrays(data)
    others: list[Any] = [[a, a], [(a, a)], (b for b in [a]), (a, "text"), range(3), "text", None]
    assert not any(map(is_arrays, others))


def test_tables_of_pandas_are_arrays() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1], "t": ["u", "v"]})
    (group,) = batches_of((table[["a", "b"]], table["y"]), 2, shuffle=False).take(1)
    assert [x.tolist() for x in group.batch(0)] == [[[1.0, 3.0], [2.0, 4.0]], [0, 1]]
    with pytest.raises(DTypeError, match=r"\[0\] of the data"):
        batches_of((table, table["y"]), 2)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([np.ones((4, 2)), np.ones(4)], r"stand in a tuple: data=\(x, y\)"),
        (([[1.0], [2.0]], [0, 1]), r"np\.asarray\(x\)"),
        (range(4), "Say it there"),
    ],
)
def test_what_to_write_for_data_that_is_no_tree_of_arrays(data: Any, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        batches_of(data, batch_size=2)


def test_a_share_is_no_validation_data() -> None:
    with pytest.raises(ArgumentError, match=r"data that is held out.*not 0\.2; rg\.data\.random"):
        held_out_batches(0.2, 8)


def test_texts_in_batches_are_refused_by_name() -> None:
    batches = batches_of(iter([{"x": np.ones((2, 3), np.float32), "name": ["cat", "dog"]}]))
    with pytest.raises(DTypeError, match=r"\['name'\]\[0\] of the batches is text, 'cat'"):
        list(islice(batches.take(1), 1))
