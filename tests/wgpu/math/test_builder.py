"""Functions in WGSL: branches and loops, run on the device."""

from __future__ import annotations

import numpy as np

from retrograd.wgpu.dispatch import DeviceFacts
from retrograd.wgpu.math.builder import WgslBuilder
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu


def computed(w: WgslBuilder, result: str, x: list[int]) -> list[int]:
    """A function of `x`, an `i32`, at each of these, by an invocation for each."""
    from retrograd.wgpu.device import device
    from retrograd.wgpu.probe import _tried

    source = (
        f"fn f(x: i32) -> i32 {{\n{w.text()}\n  return {result};\n}}\n"
        "@group(0) @binding(0) var<storage, read_write> data: array<i32>;\n"
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) {\n"
        f"  if (at < {len(x)}u) {{ data[at] = f(data[at]); }}\n}}"
    )
    return [int(y) for y in _tried(device().gpu, source, np.array(x, np.int32))]


def builder() -> WgslBuilder:
    return WgslBuilder(lambda text: None, DeviceFacts())


def test_a_loop_with_two_things_that_are_carried() -> None:
    w = builder()
    carried = [("i32", "0i"), ("i32", "1i")]  # Fibonacci's numbers
    now, _ = w.repeat("x", carried, lambda s: [s[1], w.new(f"{s[0]} + {s[1]}")])
    assert computed(w, now, [0, 1, 2, 10, 40]) == [0, 1, 1, 55, 102334155]


def test_loops_under_any_number() -> None:
    """No counter is called as a type: of a loop inside of another, the 32nd name is `i32`."""
    for before in range(20, 34):
        w = builder()
        for _ in range(before):
            w.new("1i")

        def inner(s: list[str], w: WgslBuilder = w) -> list[str]:
            return w.repeat("f32(x)", [("i32", s[0])], lambda t: [w.new(f"{t[0]} + 1i")])

        (found,) = w.repeat("x", [("i32", "0i")], inner)
        assert computed(w, found, [3, 5]) == [9, 25]


def test_while_something_holds() -> None:
    w = builder()

    def half_or_more(s: list[str]) -> list[str]:  # Collatz
        odd = w.new(f"({s[0]} & 1i) == 1i")
        (x,) = w.either_of(
            odd, "i32", lambda: [w.new(f"3i * {s[0]} + 1i")], lambda: [w.new(f"{s[0]} / 2i")]
        )
        return [x, w.new(f"{s[1]} + 1i")]

    _, steps = w.repeat_while(
        [("i32", "x"), ("i32", "0i")], lambda s: w.new(f"{s[0]} != 1i"), half_or_more
    )
    assert computed(w, steps, [1, 2, 3, 27, 97]) == [0, 1, 7, 111, 118]


def test_only_one_branch_is_computed() -> None:
    """The other would not end."""
    w = builder()

    def forever() -> list[str]:
        return w.repeat_while([("i32", "0i")], lambda s: w.new("true"), lambda s: list(s))

    (y,) = w.either_of(w.new("x > 0i"), "i32", lambda: [w.new("x * 7i")], forever)
    assert computed(w, y, [1, 6]) == [7, 42]
