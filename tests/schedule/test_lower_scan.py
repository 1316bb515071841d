"""Running sums and extrema along any axis, from either end, in vectors and one by one."""

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, float32, int32, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.scan import CumArgMax, CumMax, CumProd, CumSum, LinearScan
from retrograd.runtime.executable import Executable
from retrograd.schedule.planning.plan import KernelPlan

SHAPES = [(5,), (3, 4), (1, 37), (2, 1, 3), (4, 0), (2, 18, 1)]


def flipped(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    return np.flip(x, axis) if reverse else x


@pytest.mark.parametrize("reverse", [False, True])
def test_against_numpy(reverse: bool) -> None:
    """Of whole numbers, so that no order of sums matters."""
    nodes, arrays, outputs, wanted = [], [], [], []
    for number, shape in enumerate(SHAPES):
        x = input_node(spec(shape, int32))
        a = np.random.default_rng(number).integers(-5, 6, shape).astype(np.int32)
        nodes.append(x)
        arrays.append(a)
        for axis in range(len(shape)):
            given = flipped(a, axis, reverse)
            for op, f in ((CumSum, np.add), (CumProd, np.multiply), (CumMax, np.maximum)):
                outputs.append(op(axis, reverse)(x))
                wanted.append(flipped(f.accumulate(given, axis, np.int32), axis, reverse))
    found = Executable(Graph(nodes, outputs))(arrays)
    for y, z, node in zip(found, wanted, outputs, strict=True):
        np.testing.assert_array_equal(y, z, err_msg=node.describe())


@pytest.mark.parametrize("axis", [0, 1])
def test_recurrences_and_positions(axis: int) -> None:
    n, m = Dim("N"), Dim("M")
    f, x = (input_node(spec((n, m), float32)) for _ in range(2))
    outputs = [LinearScan(axis, True)(f, x), CumArgMax(axis, False)(x)]
    program = Executable(Graph([f, x], outputs))
    for shape in ((1, 1), (4, 3), (17, 18)):
        rng = np.random.default_rng(0)
        a, b = rng.integers(-1, 2, shape), rng.integers(-3, 4, shape)
        states, places = program([a.astype(np.float32), b.astype(np.float32)])
        a, b, s, p = (np.moveaxis(v, axis, 0) for v in (a, b, states, places))
        state = np.zeros_like(b[0])
        for k in reversed(range(len(a))):
            state = a[k] * state + b[k]
            np.testing.assert_array_equal(s[k], state)
        for k in range(len(b)):
            running = b[: k + 1]
            np.testing.assert_array_equal(np.take_along_axis(b, p[k][None], 0)[0], running.max(0))


def test_along_rows_sums_go_in_vectors() -> None:
    """Down a column vectors of neighbours go; what is not associative takes one element."""

    def kind(op: CumSum | LinearScan) -> tuple[str, bool]:
        inputs = [input_node(spec((3, 40), float32)) for _ in range(1 + isinstance(op, LinearScan))]
        (kernel,) = KernelPlan(Graph(inputs, [op(*inputs)])).kernels
        nest = kernel.nests[-1]
        return nest.kind, nest.vec >= 0

    assert kind(CumSum(1)) == ("along", True)
    assert kind(CumSum(0)) == ("scan", True)
    assert kind(LinearScan(1)) == ("scan", False)
