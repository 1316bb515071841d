"""One call of a program: where its buffers are, and the commands that the GPU gets.

Commands are encoded into one command buffer, which is submitted at the end; before that only where
the host has to know a number (`read`), or where very many have been encoded (`FLUSH`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.wgpu.commands import LEAST_BYTES, BufferSlice, Instruction, Item
from retrograd.wgpu.device import ALIGNMENT
from retrograd.wgpu.dispatch import Start
from retrograd.wgpu.plan import device_bytes
from retrograd.wgpu.specialization import Specialization
from retrograd.wgpu.types import stored_bytes, stored_dtype

KEPT_BIND_GROUPS = 1 << 14  # of a program
FLUSH = 4096  # dispatches, after which the GPU starts on what was encoded


Recorded = tuple[Any, Any, list[int], tuple[int, int, int]]  # pipeline, bind group, words, grid


class CommandEncoder:
    """Encodes the commands of one call."""

    region: ClassVar[Any]  # `control_flow.py` sets it: what encodes a region

    def __init__(self, program: Specialization, sizes: Mapping[str, int]) -> None:
        self.program = program
        self.device = program.device
        self.places: dict[Buffer, BufferSlice] = {}
        self.sizes = sizes
        program.refresh()
        self.taken: list[Any] = []  # buffers from the pool, to be given back after the call
        self._encoder: Any = None
        self._pass: Any = None
        self._encoded = 0
        self.recorded: list[Recorded] = []

    def replay(self, recorded: Sequence[Recorded]) -> None:
        """Encode what another call on the same buffers did."""
        if not recorded:
            return
        self._open()
        set_pipeline, bind = self._pass.set_pipeline, self._pass.set_bind_group
        dispatch = self._pass.dispatch_workgroups
        last = None
        for pipeline, group, offsets, grid in recorded:
            if pipeline is not last:
                set_pipeline(pipeline)
                last = pipeline
            bind(0, group, offsets)
            dispatch(*grid)

    def _open(self) -> None:
        """Have a pass of the command buffer."""
        if self._encoder is None:
            self._encoder = self.device.gpu.create_command_encoder()
        if self._pass is None:
            self._pass = self._encoder.begin_compute_pass()

    def run(self, items: Sequence[Item]) -> None:
        """Encode these, in order."""
        for item in items:
            if isinstance(item, Instruction):
                self.step(item)
                continue
            self.region(item)

    def block(self, kernels: Sequence[Kernel]) -> None:
        """Encode the kernels of a block of a region."""
        self.run(self.program.block(kernels, self.sizes))

    def place(self, buffer: Buffer) -> BufferSlice:
        """Where a buffer is. What got no place in the arena, as its size was not known, gets memory
        of its own."""
        found = self.places.get(buffer)
        if found is None:
            size = device_bytes(buffer, self.sizes)
            gpu = self.device.allocate(size)
            self.taken.append(gpu)
            found = self.places[buffer] = BufferSlice(gpu, 0, max(size, LEAST_BYTES))
        return found

    def step(self, item: Instruction) -> None:
        """Encode a dispatch."""
        program, dispatch = self.program, item.dispatch
        places = [self.place(b) for b in dispatch.bindings]
        offsets: list[int] = []
        if dispatch.parameters:
            words = tuple([p if isinstance(p, int) else self._word(p) for p in dispatch.parameters])
            offset = program.words.get(words)
            if offset is None:
                if program.words_full:  # those that were encoded get theirs first
                    self.submit()
                    program.more_words()
                offset = program.enter_words(words)
            offsets = [offset]
        self._open()
        pipeline, group = self.device.pipeline(dispatch).pipeline, self._bind_group(item, places)
        self._pass.set_pipeline(pipeline)
        self._pass.set_bind_group(0, group, offsets)
        self._pass.dispatch_workgroups(*item.grid)
        self.recorded.append((pipeline, group, offsets, item.grid))
        self._encoded += 1
        if self._encoded >= FLUSH:
            self.submit()

    def _word(self, what: Buffer | Start) -> int:
        """Where a buffer begins, in elements."""
        if isinstance(what, Buffer):
            return self.place(what).first
        place, size = self.place(what.buffer), stored_bytes(what.buffer.type.dtype)
        return place.offset // size + place.first

    def _bind_group(self, item: Instruction, places: Sequence[BufferSlice]) -> Any:
        uniform = self.program.uniform if item.dispatch.parameters else None
        key = (id(item), id(uniform), *[(id(p.gpu), p.offset, p.bytes) for p in places])
        found, _ = self.program.bind_groups.get(key, (None, None))
        if found is None:
            entries: list[Any] = [
                {"binding": k, "resource": {"buffer": p.gpu, "offset": p.offset, "size": p.bytes}}
                for k, p in enumerate(places, 1)
            ]
            if uniform is not None:
                resource = {"buffer": uniform, "offset": 0, "size": ALIGNMENT}
                entries.append({"binding": 0, "resource": resource})
            found = self.device.gpu.create_bind_group(
                layout=self.device.pipeline(item.dispatch).layout, entries=entries
            )
            if len(self.program.bind_groups) >= KEPT_BIND_GROUPS:
                self.program.bind_groups.clear()
            # The buffers stay alive with it, so that none of others has the same identity.
            self.program.bind_groups[key] = found, [p.gpu for p in places]
        return found

    def duplicate(self, source: Any, target: Any, size: int) -> None:
        """Encode a copy of memory."""
        self._end_pass()
        if self._encoder is None:
            self._encoder = self.device.gpu.create_command_encoder()
        self._encoder.copy_buffer_to_buffer(source, 0, target, 0, size)

    def begin_checks(self, status: Any) -> None:
        """Nothing has failed yet."""
        self._encoder = self.device.gpu.create_command_encoder()
        self._encoder.clear_buffer(status)

    def end_checks(self, status: Any, found: Any) -> np.ndarray[Any, Any]:
        """What has failed, once all is computed; `found` is a buffer that the host can read."""
        self._end_pass()
        if self._encoder is None:
            self._encoder = self.device.gpu.create_command_encoder()
        self._encoder.copy_buffer_to_buffer(status, 0, found, 0, found.size)
        self.submit()
        with self.device.answering():
            found.map_sync(self.device.wgpu.MapMode.READ)
            data = np.frombuffer(found.read_mapped(), np.uint32).copy()
            found.unmap()
        return data

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._pass.end()
            self._pass = None

    def submit(self) -> None:
        """Have the GPU run what was encoded."""
        self._end_pass()
        self.program.write_words()
        if self._encoder is not None:
            with self.device.answering():
                self.device.queue.submit([self._encoder.finish()])
            self._encoder = None
        self._encoded = 0

    def read(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The numbers of a buffer, once the GPU has computed them."""
        self.submit()
        place = self.place(buffer)
        kind = buffer.type.dtype
        size = device_bytes(buffer, self.sizes)
        start = place.offset + place.first * stored_bytes(kind)
        return self.device.read(place.gpu, start, size, kind)

    def write(self, buffer: Buffer, value: int) -> None:
        """Set a buffer of one number, after what was submitted so far."""
        place = self.place(buffer)
        number = np.array([value], stored_dtype(buffer.type.dtype))
        self.device.write(place.gpu, number, place.offset + place.first * number.itemsize)

    def give_back(self, first: int = 0) -> None:
        """Return to the pool what was taken from it since the first of these."""
        for gpu in self.taken[first:]:
            self.device.release(gpu)
        del self.taken[first:]
