"""What NumPy computes in place of compiled code has its bits: sums and products in the order of
nests, what selects one of its operands, whole numbers."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, Node, float32, float64, int8, int64, spec, uint8
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import (
    ArgMax,
    ArgMin,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
)
from retrograd.ops.scan import CumProd, CumSum
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.numpy_mirror import ordered
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from tests.runtime.executors.test_op_by_op import assert_same_bits, bits

SHAPES = (
    (1,), (2,), (16,), (17,), (333,), (1, 1), (1, 5), (40, 1), (2, 40), (40, 2), (16, 16), (33, 17),
    (3, 10), (7, 5), (11, 27), (3, 1, 50), (3, 50, 1), (5, 17, 3), (2, 3, 18), (1, 2, 1, 19),
)  # fmt: skip


def numbers(shape: tuple[int, ...], dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, shape)
    x[rng.random(shape) < 0.2] = (0.0, -0.0)[seed % 2]
    x = x.astype(dtype.dtype)
    return np.asfortranarray(x) if seed % 3 == 0 else x


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.sample(10)
def test_sums_and_products(shape, dtype, monkeypatch) -> None:
    monkeypatch.setattr(ordered, "_DONE", OrderedDict())
    x = input_node(spec(shape, dtype))
    rank = len(shape)
    axes = [a for n in range(1, rank + 1) for a in itertools.combinations(range(rank), n)]
    outputs: list[Node] = [op(a)(x) for a in axes for op in (ReduceSum, ReduceProd)]
    program = Executable(Graph([x], outputs))
    for seed in range(3):
        given = numbers(shape, dtype, seed)
        for y, compiled in zip(outputs, program([given]), strict=True):
            assert isinstance(y.prim, Reduction)
            found = ordered.reduced(y.prim, given)
            assert (found.shape, found.dtype) == (compiled.shape, compiled.dtype)
            assert found.tobytes() == compiled.tobytes(), y.describe()


def test_another_order_is_noticed() -> None:
    given = numbers((333,), float32, 1)
    assert ordered.reduced(ReduceSum((0,)), given) != ordered.reduced(ReduceSum((0,)), given[::-1])


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_what_selects(dtype) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 5.0], dtype.dtype)
    a, b = (np.ascontiguousarray(x.reshape(9, 9)) for x in np.meshgrid(special, special))
    x, y, z = (input_node(spec((9, 9), dtype)) for _ in range(3))
    outputs = [ELEMENTWISE[n](x, y) for n in ("max", "min")]
    outputs += [ELEMENTWISE[n](x) for n in ("relu", "sign")]
    outputs += [ELEMENTWISE["clamp"](z, x, y)]
    outputs += [op((axis,))(x) for op in (ReduceMax, ReduceMin) for axis in (0, 1)]
    outputs += [op(axis)(x) for op in (ArgMax, ArgMin) for axis in (0, 1)]
    for c in (a, b, np.roll(a, 3).T):
        assert_same_bits(Graph([x, y, z], outputs), [a, b, np.ascontiguousarray(c)])


@pytest.mark.parametrize("dtype", [int8, uint8, int64], ids=str)
def test_whole_numbers(dtype) -> None:
    info = np.iinfo(dtype.dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max], dtype.dtype)
    if dtype.kind == "int":
        edges = np.r_[edges, np.array([-1, -2, -3], dtype.dtype)]
    n = len(edges)
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(edges, edges))
    x, y = (input_node(spec((n, n), dtype)) for _ in range(2))
    outputs = [ELEMENTWISE[name](x, y) for name in ("floor_div", "mod", "max", "min")]
    outputs += [op((axis,))(x) for op in (ReduceSum, ReduceProd, ReduceMax) for axis in (0, 1)]
    outputs += [op(axis)(y) for op in (CumSum, CumProd, ArgMax, ArgMin) for axis in (0, 1)]
    assert_same_bits(Graph([x, y], outputs), [a, b])


def test_nothing_is_compiled_for_them() -> None:
    x = input_node(spec((3, 5), float32))
    k = input_node(spec((4,), int64))
    outputs = [ReduceSum((1,))(x), ReduceMax((0,))(x), ELEMENTWISE["relu"](x)]
    outputs += [CumSum(0)(k), ELEMENTWISE["mod"](k, k)]
    before = op_kernels.COMPILED["programs"]
    OpByOpExecutor(Graph([x, k], outputs))([np.ones((3, 5), np.float32), np.arange(4)])
    assert op_kernels.COMPILED["programs"] == before


def test_what_is_summed_often_is_compiled(monkeypatch) -> None:
    monkeypatch.setattr(ordered, "_DONE", OrderedDict())
    monkeypatch.setattr(op_kernels, "_PROGRAMS", OrderedDict())
    x = np.random.default_rng(0).standard_normal((600, 300)).astype(np.float32)
    node = ReduceSum((1,))(input_node(spec(x.shape, float32)))
    before, found = op_kernels.COMPILED["programs"], []
    for _ in range(1 + ordered.ENOUGH // x.size + 1):
        found.append(op_kernels.run(node, [x]))
    assert op_kernels.COMPILED["programs"] == before + 1
    assert len({y.tobytes() for y in found}) == 1


def test_extremes_where_subnormal_numbers_are_flushed() -> None:
    x = np.array([1e-40, -1e-40, 0.0], np.float32)
    with rg.flush_subnormals():
        node = input_node(spec((3,), float32))
        graph = Graph([node], [ReduceMax((0,))(node), ELEMENTWISE["relu"](node)])
        for a, b in zip(Executable(graph)([x]), OpByOpExecutor(graph)([x]), strict=True):
            np.testing.assert_array_equal(bits(a), bits(b))
