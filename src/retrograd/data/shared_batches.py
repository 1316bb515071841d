"""Batches from one process to another: their arrays through memory that both have mapped.

A batch is pickled with its arrays out of band (PEP 574). These go into a segment of shared memory:
a file without a name, which the system frees when nobody has it any more, however that came to
pass. The other process makes arrays of it without a copy; when the last of them is gone, the
segment is used again.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import tempfile
import weakref
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from retrograd.tuning import TUNING

ALIGNMENT = 64  # bytes, of the arrays within a segment
_CAN_SHARE = hasattr(socket, "send_fds")


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _nameless_file(size: int) -> int:
    """The descriptor of a file of this size in memory; on disk, where the system has none."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("retrograd-batch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    os.ftruncate(handle, size)
    return handle


class BatchSender:
    """The end that makes batches."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._segments: list[mmap.mmap] = []
        self._free: list[int] = []

    def free(self, segments: list[int]) -> None:
        """Segments that the other process is done with."""
        self._free += segments

    def send(self, key: Any, batch: Any) -> None:
        """Send a batch, and what it is called."""
        buffers: list[pickle.PickleBuffer] = []
        content = pickle.dumps(batch, 5, buffer_callback=buffers.append)
        raw = [b.raw() for b in buffers]
        size = sum(_aligned(r.nbytes) for r in raw)
        if size < TUNING.shared_batch_bytes or not self._has_room():
            content = pickle.dumps(batch, 5)
            self.connection.send(("batch", key, content, None, []))
            return
        segment, handle = self._segment(size)
        memory, offset, places = self._segments[segment], 0, []
        for r in raw:
            memory[offset : offset + r.nbytes] = r
            places.append((offset, r.nbytes))
            offset += _aligned(r.nbytes)
        is_new = None if handle is None else len(memory)
        try:
            self.connection.send(("batch", key, content, (segment, is_new), places))
            if handle is not None:
                with socket.socket(fileno=os.dup(self.connection.fileno())) as channel:
                    socket.send_fds(channel, [b"F"], [handle])
        finally:
            if handle is not None:
                os.close(handle)

    def _has_room(self) -> bool:
        """Whether there may be another segment, as each takes descriptors in both processes, of
        which there are not many: where the other process keeps all batches, they go the slow way.
        """
        return _CAN_SHARE and bool(self._free or len(self._segments) < TUNING.shared_segments)

    def _segment(self, size: int) -> tuple[int, int | None]:
        """A free segment that is large enough; if it is new, with its descriptor."""
        for at in self._free:
            if len(self._segments[at]) >= size:
                self._free.remove(at)
                return at, None
        size += size // 4  # batches of different sizes soon find one that is large enough
        handle = _nameless_file(size)
        memory = mmap.mmap(handle, size)
        if self._free:
            at = self._free.pop()
            self._segments[at] = memory
        else:
            at = len(self._segments)
            self._segments.append(memory)
        return at, handle


class BatchReceiver:
    """The end that is given batches."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.released: list[int] = []  # segments nobody looks at any more; the sender is to know
        self._memory: dict[int, mmap.mmap] = {}
        self._watched: dict[int, Any] = {}

    def receive(self, content: bytes, shared: Any, places: list[tuple[int, int]]) -> Any:
        """The batch of a message."""
        if shared is None:
            return pickle.loads(content)
        segment, new_size = shared
        if new_size is not None:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as channel:
                _, handles, _, _ = socket.recv_fds(channel, 1, 1)
            self._memory[segment] = mmap.mmap(handles[0], new_size)
            os.close(handles[0])
        whole = np.frombuffer(self._memory[segment], np.uint8)
        released, watched = self.released, self._watched

        def gone(_: Any) -> None:
            watched.pop(segment, None)
            released.append(segment)

        watched[segment] = weakref.ref(whole, gone)
        return pickle.loads(content, buffers=[whole[o : o + n] for o, n in places])
