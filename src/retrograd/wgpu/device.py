"""The GPU: adapter, limits, pipelines, memory."""

from __future__ import annotations

import functools
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from retrograd.errors import BackendError, MemoryLimitError
from retrograd.ir import DType
from retrograd.memory_limit import scaled
from retrograd.wgpu.dispatch import DeviceFacts, Dispatch
from retrograd.wgpu.probe import fuses, widens
from retrograd.wgpu.types import stored_dtype

FEATURES = {"int64": "shader-int64", "float64": "shader-f64", "subgroups": "subgroup"}
ALIGNMENT = 256  # of what is bound: no device wants more
POOL_BYTES = 1 << 30  # that are kept for later, or as many as are in use
MOST_COMPILERS = 8  # threads that compile shaders
BUDGET = 95  # percent of the memory, beyond which the driver is not asked for more
LIMITS = (
    "max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size",
    "max-compute-workgroup-storage-size", "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x", "max-dynamic-uniform-buffers-per-pipeline-layout",
)  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """A compiled shader and the layout of what is bound to it."""

    pipeline: Any
    layout: Any


class Device:
    """A GPU that is open. Command buffers run in the order in which they are submitted."""

    def __init__(self, adapter: Any) -> None:
        import wgpu

        self.wgpu = wgpu
        self.adapter = adapter
        features = [f for f in FEATURES.values() if f in adapter.features]
        limits = {name: adapter.limits[name] for name in LIMITS if name in adapter.limits}
        self.gpu = adapter.request_device_sync(
            required_features=features, required_limits=limits, label="retrograd"
        )
        self.queue = self.gpu.queue
        own = self.gpu.limits
        self.facts = DeviceFacts(
            **{name: feature in features for name, feature in FEATURES.items()},
            fused=fuses(self.gpu),
            widens="shader-int64" not in features or widens(self.gpu),
            storage_buffers=own["max-storage-buffers-per-shader-stage"],
            workgroup_memory=own["max-compute-workgroup-storage-size"],
            workgroup_size=own["max-compute-invocations-per-workgroup"],
            binding_bytes=own["max-storage-buffer-binding-size"],
        )
        self.most_bytes = own["max-buffer-size"]
        self.lock = threading.RLock()
        self._pipelines: dict[str, Pipeline] = {}
        self._layouts: dict[tuple[int, bool], tuple[Any, Any]] = {}
        # By size, the free buffers, each with its number. The first one is taken: so a loop gets
        # the same buffers in the same places again, and its commands are known.
        self._free: defaultdict[int, list[tuple[int, Any]]] = defaultdict(list)
        self._made = 0
        self.pooled = 0  # bytes of these
        self.in_use = 0  # bytes of what is not in the pool
        self.trimmed = 0  # how often the pool was emptied: what was bound before is gone
        self.shares_memory = adapter.info["adapter_type"] in ("CPU", "IntegratedGPU")
        usage = wgpu.BufferUsage
        self.storage = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST

    # -- pipelines ----------------------------------------------------------------------------
    def pipelines(self, dispatches: Iterable[Dispatch]) -> None:
        """Compile the shaders of dispatches, each once, several at a time."""
        fresh = {d.source: d for d in dispatches if d.source not in self._pipelines}
        for d in fresh.values():
            self._layout(len(d.bindings), bool(d.parameters))
        if len(fresh) < 2:
            found = [self._compiled(d) for d in fresh.values()]
        else:
            with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_COMPILERS)) as pool:
                found = list(pool.map(self._compiled, fresh.values()))
        self._pipelines |= zip(fresh, found, strict=True)

    def pipeline(self, dispatch: Dispatch) -> Pipeline:
        """The pipeline of a dispatch."""
        if dispatch.source not in self._pipelines:
            self.pipelines([dispatch])
        return self._pipelines[dispatch.source]

    def _compiled(self, dispatch: Dispatch) -> Pipeline:
        group, layout = self._layout(len(dispatch.bindings), bool(dispatch.parameters))
        try:
            module = self.gpu.create_shader_module(code=dispatch.source)
            made = self.gpu.create_compute_pipeline(
                layout=layout, compute={"module": module, "entry_point": "main"}
            )
        except self.wgpu.GPUError as error:
            raise BackendError(f"wgpu refused a shader: {error}\n{dispatch.source}") from error
        return Pipeline(made, group)

    def _layout(self, bindings: int, parameters: bool) -> tuple[Any, Any]:
        key = bindings, parameters
        found = self._layouts.get(key)
        if found is None:
            visible = self.wgpu.ShaderStage.COMPUTE
            entries = [
                {"binding": k, "visibility": visible, "buffer": {"type": "storage"}}
                for k in range(1, bindings + 1)
            ]
            if parameters:
                uniform = {"type": "uniform", "has_dynamic_offset": True}
                entries.append({"binding": 0, "visibility": visible, "buffer": uniform})
            group = self.gpu.create_bind_group_layout(entries=entries)
            layout = self.gpu.create_pipeline_layout(bind_group_layouts=[group])
            found = self._layouts[key] = group, layout
        return found

    # -- memory -------------------------------------------------------------------------------
    def allocate(self, size: int) -> Any:
        """A buffer of at least so many bytes, from the pool where it has one; see `release`."""
        size = rounded_size(size)
        with self.lock:
            free = self._free[size]
            if free:
                self.pooled -= size
                self.in_use += size
                return heappop(free)[1]
            if size > self.most_bytes:
                raise MemoryLimitError(
                    f"an array, or all temporary ones of a program, of {scaled(size)} is more than "
                    f"one buffer of this GPU may have, {scaled(self.most_bytes)}"
                )
            made = self._create(size)
            self.in_use += size
            return made

    def _create(self, size: int) -> Any:
        """A new buffer; for which the pool is emptied, if there is no memory left."""
        for last in (False, True):
            try:
                self._made += 1
                return self.gpu.create_buffer(size=size, usage=self.storage, label=str(self._made))
            except self.wgpu.GPUError as error:
                if last:
                    raise MemoryLimitError(
                        f"the GPU has no {scaled(size)} left beside the {scaled(self.in_use)} that "
                        f"arrays here take: {error}"
                    ) from error
                self.trim()
        raise AssertionError("not reached")

    def release(self, buffer: Any) -> None:
        """Give a buffer back. What was submitted before still has it."""
        with self.lock:
            size = buffer.size
            self.in_use -= size
            if self.pooled + size <= max(POOL_BYTES, self.in_use):
                heappush(self._free[size], (int(buffer.label), buffer))
                self.pooled += size

    def trim(self) -> None:
        """Give the memory of the pool back to the system."""
        with self.lock:
            self.trimmed += 1
            self.pooled = 0
            self._free.clear()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Where the GPU is waited for: that it is lost is an error that says so."""
        try:
            yield
        except self.wgpu.GPUOutOfMemoryError as error:
            raise MemoryLimitError(f"the GPU ran out of memory: {error}") from error
        except (self.wgpu.GPUError, RuntimeError) as error:
            raise BackendError(
                f"the GPU stopped answering, or refused its commands: {error}; what is on it is "
                "lost. Start the process again, from the last checkpoint"
            ) from error

    def read(self, buffer: Any, offset: int, size: int, dtype: DType) -> np.ndarray[Any, Any]:
        """The numbers in a part of a buffer, in one dimension, once they are computed."""
        with self.answering():
            data = self.queue.read_buffer(buffer, offset, size)
        return np.frombuffer(data, stored_dtype(dtype)).astype(dtype.dtype)

    def write(self, buffer: Any, array: np.ndarray[Any, Any], offset: int = 0) -> None:
        """Upload an array, contiguous and of the dtype that the buffer holds."""
        if array.nbytes:
            with self.answering():
                self.queue.write_buffer(buffer, offset, array)


def rounded_size(size: int) -> int:
    """Sizes of buffers: multiples of the alignment, for large ones in steps of an eighth of a power
    of two, so that the pool finds one again."""
    step = max(ALIGNMENT, 1 << max(size.bit_length() - 4, 0))
    return max(-(-size // step) * step, ALIGNMENT)


@functools.cache
def adapter() -> Any:
    """The adapter that is used, or None."""
    import wgpu
    from wgpu.backends.wgpu_native import extras

    with suppress(RuntimeError):  # somebody else in this process made the instance
        extras.set_instance_extras(
            backends=("Vulkan", "Metal", "DX12"), budget_for_device_creation=BUDGET
        )
    # Mesa looks for a Wayland display there, and says on stderr where the name is not set.
    unset = "XDG_RUNTIME_DIR" not in os.environ
    if unset:
        os.environ["XDG_RUNTIME_DIR"] = os.sep
    try:
        return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (RuntimeError, wgpu.GPUError):
        return None
    finally:
        if unset:
            del os.environ["XDG_RUNTIME_DIR"]


@functools.cache
def device() -> Device:
    """The device of this process; opened once."""
    found = adapter()
    if found is None:
        raise BackendError("wgpu finds no GPU here")
    return Device(found)
