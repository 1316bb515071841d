"""The module of a plan: kernels that are alike are one, and what they call comes with them."""

from __future__ import annotations

from retrograd.ir import float64, spec
from retrograd.nvptx.emit.module import DeviceModule
from retrograd.ops.leaf import input_node
from retrograd.schedule.buffer import Buffer


def buffer(number: int) -> Buffer:
    node = input_node(spec((4,), float64))
    return Buffer("input", number, node.type, node)


def test_equal_kernels_are_one() -> None:
    module, names = DeviceModule(), []
    module.scratches.append([])
    for number in range(2):
        w = module.emitter()
        (at,) = w.spread([4])
        w.line(f"store double 1.0, ptr {w.address(buffer(number), at)}")
        names.append(module.kernel(w)[0])
    assert names == ["k0", "k0"]
    assert module.text().count("define ptx_kernel") == 1


def test_a_function_that_devices_lack_comes_with_its_definition() -> None:
    module = DeviceModule()
    module.declare("double @rg_fmod(double, double) #1")
    assert "define internal double @rg_fmod" in module.text()
    assert "declare i64 @llvm.ctlz.i64" in module.text()
