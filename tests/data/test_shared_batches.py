"""Batches through a pipe and through shared memory."""

import gc
import multiprocessing
import os
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.shared_batches import BatchReceiver, BatchSender
from retrograd.tuning import TUNING

if sys.platform == "win32":
    pytest.skip("no descriptors through pipes", allow_module_level=True)


@pytest.fixture
def ends():
    mine, theirs = multiprocessing.Pipe(duplex=True)
    yield BatchSender(theirs), BatchReceiver(mine)
    mine.close()
    theirs.close()


def passed(ends, batch):
    """The batch on the other side, and the message."""
    sender, receiver = ends
    sender.send("key", batch)
    kind, key, *message = receiver.connection.recv()
    assert (kind, key) == ("batch", "key")
    return receiver.receive(*message), message


def large(k, n=20_000):
    return np.arange(k, k + n, dtype=np.float64)


def test_small_ones_go_through_the_pipe(ends):
    batch, message = passed(ends, {"x": rg.tensor([1.0, 2.0]), "t": ["a"]})
    assert message[1:] == [None, []]
    assert batch["x"].tolist() == [1.0, 2.0]


def test_arrays_are_aligned_and_of_the_same_bytes(ends):
    given = (large(0), np.asfortranarray(large(1).reshape(100, 200)), np.arange(3, dtype=np.int8),
             rg.tensor(large(2)), large(3)[::2], np.zeros((0, 3)))  # fmt: skip
    batch, _ = passed(ends, given)
    for a, b in zip(given, batch, strict=True):
        assert type(a) is type(b)
        assert np.array_equal(np.asarray(a), np.asarray(b))
    assert all(x.ctypes.data % 64 == 0 for x in batch[:3])


def test_a_segment_is_used_again_when_its_last_array_is_gone(ends):
    sender, receiver = ends
    first, (_, (segment, size), _) = passed(ends, [large(0), large(1)])
    assert size is not None
    part = first[1][5:7]
    del first
    gc.collect()
    assert receiver.released == []  # a view of it is left
    other, (_, (another, _), _) = passed(ends, [large(2)])
    assert another != segment
    assert part.tolist() == [6.0, 7.0]
    del part
    assert receiver.released == [segment]
    sender.free(receiver.released)
    receiver.released.clear()
    again, (_, (used, new), _) = passed(ends, [large(7)])
    assert (used, new) == (segment, None)
    assert again[0].tolist() == large(7).tolist()
    assert other[0].tolist() == large(2).tolist()


def test_a_larger_batch_takes_the_place_of_a_free_segment(ends):
    sender, receiver = ends
    first, (_, (segment, _), _) = passed(ends, large(0))
    del first
    sender.free(receiver.released)
    receiver.released.clear()
    second, (_, (used, size), _) = passed(ends, large(0, 50_000))
    assert used == segment
    assert size >= 400_000
    assert second.tolist() == large(0, 50_000).tolist()


def test_no_descriptor_stays_open(ends):
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    kept = [passed(ends, large(k))[0] for k in range(4)]
    if before is not None:
        # The file of a mapping is the mapping's own.
        assert len(os.listdir("/proc/self/fd")) <= before + 2 * len(kept)
    assert [k[0] for k in kept] == [0, 1, 2, 3]


def test_more_batches_than_descriptors(ends, monkeypatch):
    monkeypatch.setattr(TUNING, "shared_segments", 2)
    kept = [passed(ends, large(k)) for k in range(4)]
    assert [message[1] is None for _, message in kept] == [False, False, True, True]
    assert [batch[0] for batch, _ in kept] == [0, 1, 2, 3]


def test_without_shared_memory(ends, monkeypatch):
    monkeypatch.setattr("retrograd.data.shared_batches._CAN_SHARE", False)
    batch, message = passed(ends, large(0, TUNING.shared_batch_bytes // 16))
    assert message[1] is None
    assert batch[-1] == TUNING.shared_batch_bytes // 16 - 1
