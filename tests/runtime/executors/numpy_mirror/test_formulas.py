"""Formulas that are run instruction by instruction have the bits of compiled code."""

from __future__ import annotations

import math
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrograd.codegen.emit.elementwise import ELEMENTWISE as WRITTEN
from retrograd.errors import DTypeError
from retrograd.ir import DType, Graph, Node, bfloat16, float32, float64, spec
from retrograd.ops.elementwise import ELEMENTWISE
from retrograd.ops.leaf import input_node
from retrograd.ops.reduce import LogSumExp
from retrograd.ops.scan import LogCumSumExp
from retrograd.runtime import denormals
from retrograd.runtime.backend import Array
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.numpy_mirror import formulas, listing, ordered
from retrograd.runtime.executors.numpy_mirror.instructions import (
    Unknown,
    comparison,
    function,
    operation,
)
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from tests.runtime.executors.test_op_by_op import assert_same_bits, bits

COUNT = 240
SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 100.0, math.inf, -math.inf, math.nan, 1e-40, -1e-45,
    3e38, 1e5, -700.0, 88.5,
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_DONE", OrderedDict())
    monkeypatch.setattr(op_kernels, "_PROGRAMS", OrderedDict())
    monkeypatch.setattr(denormals, "_used", False)  # another test may have flushed them


def node_of(name: str, dtype: DType) -> Node | None:
    """An operation on arrays of so many elements; None where that is not for floats."""
    op = ELEMENTWISE[name]
    inputs = [input_node(spec((COUNT,), dtype)) for _ in range(op.arity or 0)]
    try:
        node = op(*inputs)
    except DTypeError:
        return None
    return node if node.dtype is dtype else None


def arguments(dtype: DType, k: int) -> Array:
    rng = np.random.default_rng(k)
    x = rng.standard_normal(COUNT) * 10.0 ** rng.uniform(-6, 2.5, COUNT)
    x[: COUNT // 3] = rng.uniform(0, 1, COUNT // 3)
    x[-len(SPECIAL) :] = rng.permutation(SPECIAL)
    return x.astype(dtype.dtype)


CASES = [
    (name, dtype)
    for name in ELEMENTWISE
    for dtype in (float32, float64)
    if name in WRITTEN and node_of(name, dtype) is not None
]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
@pytest.mark.sample(40)
def test_every_formula(name: str, dtype: DType) -> None:
    node = node_of(name, dtype)
    assert node is not None
    arrays = [arguments(dtype, k) for k in range(len(node.inputs))]
    (compiled,) = Executable(Graph(list(node.inputs), [node]))(arrays)
    formula, done = formulas.formula(name, dtype, len(arrays)), 0
    for start in range(0, COUNT, 5):  # few at a time: one that is not known stops all
        part = slice(start, start + 5)
        found = formula([a[part] for a in arrays])
        if found is not None:
            done += 1
            np.testing.assert_array_equal(bits(found), bits(compiled[part]))
    # max and min of numbers are NumPy's own.
    assert done or name in ("max", "min", "clamp")


def test_nothing_is_compiled() -> None:
    x = input_node(spec((3, 5), float32))
    names = ("exp", "log", "tanh", "sin", "erf", "gamma", "j0", "sigmoid")
    graph = Graph([x], [ELEMENTWISE[n](x) for n in names])
    given = np.linspace(0.1, 3, 15, dtype=np.float32).reshape(3, 5)
    before = op_kernels.COMPILED["programs"]
    found = OpByOpExecutor(graph)([given])
    assert op_kernels.COMPILED["programs"] == before
    for a, b in zip(found, Executable(graph)([given]), strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))


def test_what_is_not_known_is_compiled_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    x = input_node(spec((3,), float32))
    program = OpByOpExecutor(Graph([x], [ELEMENTWISE["sin"](x)]))
    program([np.array([1, 2, 1e30], np.float32)])  # reduced by integers of 192 bits
    asked: list[object] = []
    monkeypatch.setattr(formulas.Formula, "__call__", lambda self, arrays: asked.append(arrays))
    program([np.array([1, 2, 3], np.float32)])
    assert not asked


def test_many_elements_are_compiled() -> None:
    x = input_node(spec((1_000_000,), float32))
    node = ELEMENTWISE["exp"](x)
    assert formulas.written(node, [np.ones(1_000_000, np.float32)]) is None
    assert formulas.written(node, [np.ones(10, np.float32)]) is not None


def test_several_threads_use_a_formula_at_once() -> None:
    x = np.linspace(0.1, 3, 15, dtype=np.float32)
    for _ in range(5):
        listing.listed.cache_clear()
        formula = formulas.Formula("gamma", float32, 1)
        with ThreadPoolExecutor(4) as pool:
            found = [f.result() for f in [pool.submit(formula, [x]) for _ in range(4)]]
        assert len({y.tobytes() for y in found}) == 1


def test_instructions_that_are_not_known() -> None:
    for do in (
        operation("frem", float32),
        comparison("true", floats=True),
        comparison("ult", floats=False),
        function("maximum"),
    ):
        with pytest.raises(Unknown):
            do(np.ones(2), np.ones(2))


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16], ids=str)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)], ids=str)
def test_logsumexp(axes: tuple[int, ...], dtype: DType) -> None:
    x = input_node(spec((3, 4, 5), dtype))
    given = np.random.default_rng(1).standard_normal((3, 4, 5))
    given[0, 1], given[1, 2, 3], given[2, 0, 1] = -np.inf, np.inf, np.nan
    assert_same_bits(Graph([x], [LogSumExp(axes)(x)]), [given.astype(dtype.dtype)])


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_logcumsumexp(axis: int, dtype: DType) -> None:
    x = input_node(spec((4, 20), dtype))
    given = np.random.default_rng(1).standard_normal((4, 20)) * 9
    given[0, :2], given[1, 2], given[2, 5] = -np.inf, np.inf, np.nan
    outputs = [LogCumSumExp(axis, reverse)(x) for reverse in (False, True)]
    assert_same_bits(Graph([x], outputs), [given.astype(dtype.dtype)])
