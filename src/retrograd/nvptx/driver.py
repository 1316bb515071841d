"""A device of NVIDIA's, through the driver's own interface (`cuda-bindings`)."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from retrograd.errors import BackendError
from retrograd.lazy_import import need
from retrograd.nvptx import cublas
from retrograd.nvptx.device import CudaDevice
from retrograd.runtime.backend import Array
from retrograd.shared import at_fork, lock
from retrograd.tuning import TUNING

_LOCK = lock(62)
_devices: list[DriverDevice] = []
at_fork(in_child=_devices.clear)  # a child has no context; it may not use its parent's


def device() -> DriverDevice:
    """The first device, opened when it is first asked for."""
    with _LOCK:
        if not _devices:
            _devices.append(DriverDevice())
        return _devices[0]


def lacking() -> str | None:
    """What there is no device for, and the remedy; None if there is one."""
    try:
        driver = need("cuda.bindings.driver", "the backend 'cuda'")
    except BackendError as error:
        return str(error)
    try:
        code, *_ = driver.cuInit(0)
    except RuntimeError:  # of `cuda.pathfinder`, where the library is not found
        return "there is no driver here (libcuda): install NVIDIA's driver for this GPU"
    if code == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        return "the driver finds no device: a GPU of NVIDIA's must be there, and visible"
    if code != driver.CUresult.CUDA_SUCCESS:
        return f"the driver does not start: {_described(driver, code)}"
    code, count = driver.cuDeviceGetCount()
    if code != driver.CUresult.CUDA_SUCCESS or count == 0:
        return "the driver finds no device: a GPU of NVIDIA's must be there, and visible"
    return None


def _described(driver: Any, code: Any) -> str:
    """What the driver says of a result."""
    _, text = driver.cuGetErrorString(code)
    return f"{code.name} ({text.decode()})" if text else code.name


class DriverDevice(CudaDevice):
    """The first GPU of this machine, with the context that all libraries of the process share."""

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.driver = driver = need("cuda.bindings.driver", "the backend 'cuda'")
        self._do(driver.cuInit(0))
        own = self._do(driver.cuDeviceGet(number))
        attribute = driver.CUdevice_attribute
        major, minor = (
            self._do(driver.cuDeviceGetAttribute(a, own))
            for a in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.capability = 10 * major + minor
        self.name = self._do(driver.cuDeviceGetName(128, own)).decode().rstrip("\0")
        self._context = self._do(driver.cuDevicePrimaryCtxRetain(own))
        self.enter()
        flag = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.stream = self._do(driver.cuStreamCreate(flag))
        self._library: list[cublas.Cublas | None] = []  # once it was looked for

    def _do(self, result: tuple[Any, ...]) -> Any:
        """What a function of the driver gives, or a `BackendError`."""
        code, *values = result
        if code != self.driver.CUresult.CUDA_SUCCESS:
            raise BackendError(f"the cuda backend: {_described(self.driver, code)}")
        return values[0] if len(values) == 1 else values

    def enter(self) -> None:
        """Use the device in this thread."""
        self._do(self.driver.cuCtxSetCurrent(self._context))

    # -- memory -------------------------------------------------------------------------------
    def new_memory(self, size: int) -> int | None:
        code, *values = self.driver.cuMemAlloc(size)
        if code == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return None
        return int(self._do((code, *values)))

    def delete_memory(self, address: int) -> None:
        self._do(self.driver.cuStreamSynchronize(self.stream))
        self._do(self.driver.cuMemFree(address))

    def free_bytes(self) -> int:
        free, _ = self._do(self.driver.cuMemGetInfo())
        return int(free)

    def upload(self, address: int, array: Array) -> None:
        if array.nbytes:
            self._do(
                self.driver.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, self.stream)
            )

    def download(self, address: int, array: Array) -> None:
        if array.nbytes:
            self._do(
                self.driver.cuMemcpyDtoHAsync(array.ctypes.data, address, array.nbytes, self.stream)
            )
        self.synchronize()

    def synchronize(self) -> None:
        self._do(self.driver.cuStreamSynchronize(self.stream))

    def copy(self, to: int, source: int, size: int) -> None:
        self._do(self.driver.cuMemcpyDtoDAsync(to, source, size, self.stream))

    # -- kernels ------------------------------------------------------------------------------
    def load(self, ptx: str) -> dict[str, Any]:
        module = self._do(self.driver.cuModuleLoadData(ptx.encode() + b"\0"))
        names = re.findall(r"\.visible \.entry ([\w$]+)", ptx)
        return {n: self._do(self.driver.cuModuleGetFunction(module, n.encode())) for n in names}

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        count = len(arguments)
        words = (ctypes.c_int64 * count)(*arguments)
        start = ctypes.addressof(words)
        places = (ctypes.c_void_p * count)(*range(start, start + 8 * count, 8))
        self._do(
            self.driver.cuLaunchKernel(
                kernel, blocks, 1, 1, threads, 1, 1, 0, self.stream, ctypes.addressof(places), 0
            )
        )

    @property
    def products(self) -> Any:
        if not TUNING.cuda_cublas:
            return None
        if not self._library:
            size = TUNING.cuda_cublas_bytes
            self._library = [cublas.load(int(self.stream), (self.allocate(size), size))]
        return self._library[0]

    # -- graphs -------------------------------------------------------------------------------
    def begin_graph(self) -> None:
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._do(self.driver.cuStreamBeginCapture(self.stream, mode))
        self.noting = True

    def end_graph(self) -> Any:
        self.noting = False
        graph = self._do(self.driver.cuStreamEndCapture(self.stream))
        made = self._do(self.driver.cuGraphInstantiate(graph, 0))
        self._do(self.driver.cuGraphDestroy(graph))
        return made

    def run_graph(self, graph: Any) -> None:
        self._do(self.driver.cuGraphLaunch(graph, self.stream))

    def drop_graph(self, graph: Any) -> None:
        self._do(self.driver.cuGraphExecDestroy(graph))
