"""The text of a shader: names, sizes, grids."""

from __future__ import annotations

import re

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import BackendError
from retrograd.ir import Dim, TensorType, float32, float64, int64, uint64
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer
from retrograd.wgpu.dispatch import DeviceFacts, EmitContext
from retrograd.wgpu.plan import ShaderPlan
from retrograd.wgpu.shader_writer import MAX_GROUPS, ShaderWriter
from tests.wgpu.gpu import needs_gpu

# Words of WGSL that a letter and a number might be.
TYPES = {"i32", "u32", "f32", "f16", "i64", "u64", "f64"}


def context(**facts: bool) -> EmitContext:
    plan = ShaderPlan(rg.trace(lambda x: x + 1, np.ones(3, np.float32)))
    return EmitContext(plan.kernels[0], {"N": 70}, DeviceFacts(**facts))


def test_no_name_is_that_of_a_type() -> None:
    w, names = ShaderWriter(context()), set()
    for _ in range(70):
        names |= {w.new("1i"), w.variable("i32", "0i")}
        with w.loop("2i") as counter:
            names.add(counter)
    assert len(names) == 210
    assert not names & TYPES


@needs_gpu
def test_a_loop_in_the_place_of_the_32nd_name() -> None:
    """A counter was called `i32` there, and what was to be made an `i32` called it."""
    from retrograd.wgpu.device import device

    for before in range(25, 36):
        w = ShaderWriter(context())
        for _ in range(before):
            w.new("1.5f")
        with w.loop("3i") as counter:
            w.new(f"i32(f32({counter}))")
        device().pipeline(w.dispatch(1))


def test_a_function_is_written_once() -> None:
    w = ShaderWriter(context())
    for _ in range(2):
        with w.function("twice", "x: f32") as fresh:
            if fresh:
                w.line("return 2.0f * x;")
    w.new("twice(1.0f)")
    source = w.dispatch(1).source
    assert source.count("fn twice(") == 1
    assert source.index("fn twice(") < source.index("fn main(") < source.index("twice(1.0f)")


def test_named_sizes_are_parameters_and_numbers_are_not() -> None:
    """So programs of other sizes have the same text."""
    w, n = ShaderWriter(context()), Dim("N")
    names = [w.size(n), w.size(7), w.size(2 * n), w.size(n)]
    assert names == ["parameters[0].x", "7i", "parameters[0].y", "parameters[0].x"]
    made = w.dispatch(1)
    assert made.parameters == (70, 140)
    assert "array<vec4<i32>, 1>" in made.source
    for k in range(3, 6):
        w.size(k * n)
    assert "array<vec4<i32>, 2>" in w.dispatch(1).source


def test_grids_with_room_at_the_end() -> None:
    few, many = (ShaderWriter(context()).dispatch(n) for n in (MAX_GROUPS, MAX_GROUPS + 1))
    assert "return" not in few.source.partition("fn main")[2]
    assert re.search(r"if \(group >= parameters\[0\]\.x\) \{ return; \}", many.source)
    assert many.parameters == (MAX_GROUPS + 1,)


def test_buffers_are_bound_in_the_order_of_their_use() -> None:
    w = ShaderWriter(context())
    node = input_node(TensorType(float32, (3,)))
    one, two = (Buffer("input", k, node.type, node) for k in range(2))
    assert [w.buffer(b) for b in (two, one, two)] == ["b1", "b2", "b1"]
    made = w.dispatch(1)
    assert made.bindings == (two, one)
    assert "@binding(2) var<storage, read_write> b2: array<f32>" in made.source


@pytest.mark.parametrize("dtype", [float64, int64, uint64], ids=str)
def test_what_a_device_lacks_is_named(dtype: object) -> None:
    with pytest.raises(BackendError, match=rf"no {dtype}, which add.*fallback=True"):
        ShaderWriter(context(int64=False)).need(dtype)
    ShaderWriter(context(int64=True, float64=True)).need(dtype)
