"""The bits of an operation are a function of the operation and its inputs, never of what it is
fused with: the same random programs on every executor, and through `jit` and eager tensors."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph, float32, float64, spec
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceSum
from retrograd.passes import optimize
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.bytecode import BytecodeExecutor
from retrograd.runtime.executors.op_by_op import Calls, OpByOpExecutor
from retrograd.runtime.executors.reference import ReferenceProgram
from tests.functions.programs import random_program
from tests.runtime.agreement import assert_close
from tests.runtime.executors.test_op_by_op import bits
from tests.runtime.random_graphs import Builder

RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


def assert_bits(found: list[Array], expected: list[Array], what: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        np.testing.assert_array_equal(bits(a), bits(b), str(what))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(5)
def test_executors_agree(seed: int) -> None:
    b = Builder(seed, float64 if seed % 3 else float32, symbolic=False)
    graph, arrays = b.graph(15), b.arrays()
    expected = Executable(graph)(arrays)
    for y, x, meant in zip(graph.outputs, expected, ReferenceProgram(graph)(arrays), strict=True):
        assert_close(x, meant, 4096, 1.0, y.describe())
    for make in (OpByOpExecutor, BytecodeExecutor):
        assert_bits(make(graph)(arrays), expected, (seed, make))
    for narrow in (False, True):
        light = Executable(graph, light=True, narrow=narrow)
        assert_bits(light(arrays), expected, (seed, "light", narrow))
    assert_bits(driven(OpByOpExecutor(graph).calls({}), arrays)[0], expected, (seed, "table"))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(5)
def test_jit_and_eager_agree(seed: int) -> None:
    p = random_program(seed, np.float32)
    leaves = [rg.tensor(x, requires_grad=True) for x in p.inputs]
    every = tuple(range(len(leaves)))
    traced = optimize(rg.trace(rg.value_and_grad(p.loss, argnums=every), *p.inputs))
    expected = Executable(traced)(p.inputs)
    loss, gradients = rg.jit(rg.value_and_grad(p.loss, argnums=every))(*p.inputs)
    assert_bits([loss.numpy(), *[g.numpy() for g in gradients]], expected, (seed, "jit"))
    for turn in range(3):
        for x in leaves:
            x.grad = None
        value = p.loss(*leaves)
        if value.requires_grad:
            value.backward()
        found = [value.numpy()]
        found += [
            np.zeros(x.shape, x.dtype.dtype) if x.grad is None else x.grad.numpy() for x in leaves
        ]
        assert_bits(found, expected, (seed, "eager", turn))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_sums_of_two_operations_are_rounded_twice(dtype: Any) -> None:
    """Also where one of them reduces."""
    x, y, z = np.random.default_rng(0).standard_normal((3, 40, 33)).astype(dtype)
    nodes = [input_node(spec(a.shape, a.dtype)) for a in (x, y, z)]
    a, b, c = nodes
    product = x * y
    total = Executable(Graph([a], [ReduceSum((1,))(a), ReduceSum((0,))(a)]))([product])
    expected = [product + z, product - z, z - product, *total]
    graph = Graph(nodes, [
        a * b + c, a * b - c, c - a * b, ReduceSum((1,))(a * b), ReduceSum((0,))(a * b)
    ])  # fmt: skip
    for make in (Executable, OpByOpExecutor, BytecodeExecutor):
        assert_bits(make(graph)([x, y, z]), expected, make)
        assert_bits(make(optimize(graph))([x, y, z]), expected, make)


def driven(calls: Calls, arrays: list[Array]) -> tuple[list[Array], int]:
    """The results of a table, gone through as a driver in C would, and how many are native."""
    table, at, native = calls.table(), 0, 0
    words = table.words.tolist()
    values: list[Any] = [np.array(a, order="C") for a in arrays]
    for call, *_ in calls.steps:
        code, block, result, count = words[at : at + 4]
        given = [values[k] for k in words[at + 4 : at + 4 + count]]
        at += 4 + count
        assert result == len(values)
        if not code:
            with np.errstate(all="ignore"):
                values.append(np.array(call(given), order="C"))
            continue
        native += 1
        node = call.node
        y = np.empty(node.type.shape, node.dtype.dtype)
        first = (ctypes.c_int64 * (count + 1)).from_address(block)
        first[:] = [a.ctypes.data for a in (*given, y)]
        assert RUN(code)(block, 0, 1, None) == 0
        values.append(y)
    assert at == len(words)
    return [values[k] for k in calls.outputs], native


def test_a_table_has_what_c_needs() -> None:
    x, w = input_node(spec((5, 4), float32)), input_node(spec((4, 3), float32))
    h = rg.ops.elementwise.tanh(DotGeneral((1,), (0,))(x, w))
    turned = DotGeneral((0,), (0,))(x, h)
    graph = Graph([x, w], [ReduceSum((1,))(h * h), turned])
    rng = np.random.default_rng(0)
    calls = OpByOpExecutor(graph).calls({})
    for _ in range(2):
        arrays = [rng.standard_normal(s).astype(np.float32) for s in ((5, 4), (4, 3))]
        found, native = driven(calls, arrays)
        assert_bits(found, Executable(graph)(arrays), "table")
    assert native == 3  # the product, tanh, the sum; NumPy multiplies, and turns matrices around
