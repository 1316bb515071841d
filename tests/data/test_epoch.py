"""One pass: where it stands, here and with workers."""

import pytest

import retrograd as rg
from retrograd.data import default_collate
from retrograd.data.batches import OrderedBatches
from retrograd.data.epoch import SampleEpoch, StreamEpoch
from retrograd.data.workers import LoaderOptions


def options(dataset, **changed):
    given = {"collate": default_collate, "is_batched": True, "batch_size": 2, "drop_last": False,
             "init": None, "num_workers": 0, "seed": 0}  # fmt: skip
    return LoaderOptions(dataset=dataset, **{**given, **changed})


class Pool:
    """A pool without processes: batches are made when they are due, and what was asked is kept."""

    def __init__(self, epoch, workers):
        self.workers = [None] * workers
        self.asked = []
        self.epoch = epoch

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def begin(self, seed, number, taken=None):
        self.begun = (seed, number, taken and list(taken))

    def ask(self, key, indices, part=None):
        self.asked.append(key)

    def get(self, key):
        return ("batch", key)


def test_samples_are_asked_for_ahead_and_before_a_batch_is_given_out():
    epoch = SampleEpoch(options(range(10)), 7, 3, None, OrderedBatches(range(10), 2, False))
    pool = Pool(epoch, 2)
    run = epoch.run_with(pool, 1)
    assert next(run) == ("batch", 0)
    assert pool.begun == (7, 3, None)
    assert pool.asked == [0, 1, 2]
    assert (epoch.position, epoch.is_done) == (1, False)
    assert [key for _, key in run] == [1, 2, 3, 4]
    assert pool.asked == [0, 1, 2, 3, 4]
    assert (epoch.position, epoch.is_done) == (5, True)


def test_it_goes_on_behind_what_was_given_out():
    batches = OrderedBatches(range(10), 2, False)
    epoch = SampleEpoch(options(range(10)), 0, 0, {"batch": 3, **batches.state()}, batches)
    assert [b.tolist() for b in epoch.run()] == [[6, 7], [8, 9]]
    stream = StreamEpoch(options([*range(10)]), 0, 0, {"batch": 3, "streams": [3], "turn": 1})
    assert [b.tolist() for b in stream.run()] == [[6, 7], [8, 9]]
    assert stream.state() == {"streams": [5], "turn": 1}


def test_parts_of_a_stream_are_those_of_the_state():
    with pytest.raises(rg.FormatError, match="in 2 parts, but here it is in 1"):
        StreamEpoch(options([1]), 0, 0, {"batch": 1, "streams": [1, 0], "turn": 1})
