"""Making batches, by number and of a stream."""

import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import ArrayDataset, MapDataset, default_collate, sample_generator
from retrograd.data.fetch import END, Fetcher, StreamFetcher
from retrograd.data.randomness import CURRENT, SampleContext


def test_arrays_are_gathered_and_others_are_not():
    x = np.arange(5.0)
    (batch,) = Fetcher(ArrayDataset(x), default_collate, True)([3, 0], SampleContext(0, 0))
    assert batch.tolist() == [3.0, 0.0]
    plain = Fetcher(ArrayDataset(x), list, True)
    assert plain.gather is None
    assert plain([3], SampleContext(0, 0)) == [(3.0,)]


def test_whole_batches_are_asked_for_where_that_can_be():
    class Many:
        def __len__(self):
            return 9

        def __getitem__(self, i):
            raise AssertionError

        def __getitems__(self, indices):
            asked.append(indices)
            return [i * 10 for i in indices]

    asked: list[list[int]] = []
    batch = Fetcher(Many(), default_collate, True)(np.array([4, 2]), SampleContext(0, 0))
    assert (batch.tolist(), asked) == ([40, 20], [[4, 2]])


def test_the_context_is_that_of_the_sample_and_ends_with_the_batch():
    seen = []

    def look(i):
        context = CURRENT.get()
        assert context is not None
        seen.append((context.seed, context.epoch, context.index, sample_generator().random()))
        return i

    fetch = Fetcher(MapDataset(range(9), look), default_collate, True)
    fetch([7, 2], SampleContext(3, 4))
    fetch([2], SampleContext(3, 4))
    assert [s[:3] for s in seen] == [(3, 4, 7), (3, 4, 2), (3, 4, 2)]
    assert seen[1] == seen[2]
    assert CURRENT.get() is None
    with pytest.raises(IndexError):
        fetch([9], SampleContext(3, 4))
    assert CURRENT.get() is None


def stream(**options):
    context = SampleContext(0, 0)
    return StreamFetcher(iter(range(5)), default_collate, 2, context=context, **options)


def drained(fetch):
    found = []
    while (batch := fetch()) is not END:
        found.append(batch.tolist())
    assert fetch() is END
    return found


def test_streams():
    assert drained(stream(drop_last=False)) == [[0, 1], [2, 3], [4]]
    assert drained(stream(drop_last=True)) == [[0, 1], [2, 3]]
    assert drained(stream(drop_last=False, skip=2)) == [[4]]
    assert drained(stream(drop_last=False, skip=9)) == []
    assert pickle.loads(pickle.dumps(END)) is END


def test_samples_of_a_part_have_numbers_of_their_own():
    def look():
        for _ in range(4):
            context = CURRENT.get()
            assert context is not None
            yield context.index

    fetch = StreamFetcher(look(), default_collate, 2, False, SampleContext(0, 0), 0, 3, 1)
    assert drained(fetch) == [[1, 4], [7, 10]]


def test_errors_of_a_stream_name_the_sample():
    def broken():
        yield 1
        raise KeyError("broken")

    fetch = StreamFetcher(broken(), default_collate, 2, False, SampleContext(0, 0))
    with pytest.raises(KeyError) as caught:
        fetch()
    assert caught.value.__notes__ == ["raised while sample 1 of generator was made"]
    uneven = StreamFetcher([[1], [1, 2]], default_collate, 2, False, SampleContext(0, 0))
    with pytest.raises(rg.ShapeError, match=r"sample 1 has \(2,\) and sample 0 has \(1,\)"):
        uneven()
