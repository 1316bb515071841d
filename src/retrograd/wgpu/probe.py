"""What of a device's arithmetic no feature tells: it is tried."""

from __future__ import annotations

from typing import Any

import numpy as np

# (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 if rounded once; the product alone is 1 + 2^-11.
_SOURCE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[3] = fma(x[0], x[1], x[2]); }
"""
_OPERANDS = (1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11, 0.0)
# Mesa before 23 gets comparisons of an `i32` made an `i64` with a constant wrong.
_WIDENED = """
@group(0) @binding(0) var<storage, read_write> x: array<i32>;
@compute @workgroup_size(1) fn main() { if (i64(x[0]) >= 27li) { x[1] = 1i; } }
"""


def fuses(gpu: Any) -> bool:
    """Whether WGSL's `fma` of float32 rounds once on this device."""
    return bool(_tried(gpu, _SOURCE, np.array(_OPERANDS, np.float32))[3] == np.float32(2.0**-24))


def widens(gpu: Any) -> bool:
    """Whether numbers of 32 bits that are made ones of 64 are compared right."""
    return bool(_tried(gpu, _WIDENED, np.array([3, 0], np.int32))[1] == 0)


def _tried(gpu: Any, source: str, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a shader makes of an array."""
    import wgpu

    usage = wgpu.BufferUsage
    buffer = gpu.create_buffer_with_data(data=data, usage=usage.STORAGE | usage.COPY_SRC)
    module = gpu.create_shader_module(code=source)
    pipeline = gpu.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": "main"}
    )
    resource = {"buffer": buffer, "offset": 0, "size": buffer.size}
    group = gpu.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": resource}]
    )
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(1)
    compute.end()
    gpu.queue.submit([encoder.finish()])
    return np.frombuffer(gpu.queue.read_buffer(buffer), data.dtype)
