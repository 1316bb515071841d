"""A function traced for one signature: its graph, what it captured, what its results are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import pytree
from retrograd.backend_registry import compile_graph
from retrograd.ir import Dim, TensorType, float32
from retrograd.transforms.jit.fast_call import COMPUTED
from retrograd.transforms.jit.signature import StaticLeaf
from retrograd.transforms.jit.traced_function import TracedFunction, as_number

VECTOR = TensorType(float32, (3,))
X = np.arange(3, dtype=np.float32)


def traced(f: Any, *keys: Any, asks: bool = False) -> TracedFunction:
    structure = pytree.flatten(((0,) * len(keys), {}))[1]
    return TracedFunction(f, structure, keys, [f"x{i}" for i in range(len(keys))], asks=asks)


def test_the_graph_computes_the_results_in_order() -> None:
    found = traced(lambda x, y: {"sum": x + y, "n": 3, "text": "t", "twice": (2 * x, None)},
                   VECTOR, VECTOR)  # fmt: skip
    assert [n.name for n in found.graph.inputs] == ["x0", "x1"]
    assert [y.type for y in found.graph.outputs] == [VECTOR, VECTOR]
    assert found.fixed.count(COMPUTED) == 2
    assert {3, "t"} <= {x for x in found.fixed if x is not COMPUTED}
    assert found.captured == []
    assert found.tracked is None
    outputs = compile_graph(found.graph, "reference", ())([X, 10 * X])
    assert [y.tolist() for y in outputs] == [(11 * X).tolist(), (2 * X).tolist()]


def test_arguments_that_are_no_arrays_are_part_of_the_key() -> None:
    seen = []

    def f(x: Any, power: int, k: Any) -> Any:
        seen.append((power, k.shape, k.dtype))
        return x**power * k

    found = traced(f, VECTOR, StaticLeaf(2), "float64")
    assert seen == [(2, (), float32)]  # the number is weak, as Python's are
    assert [n.type for n in found.graph.inputs] == [VECTOR, TensorType(rg.float64, ())]
    assert found.graph.outputs[0].dtype is float32


def test_what_is_captured_comes_after_the_inputs() -> None:
    w, table = rg.tensor([1.0, 2.0, 3.0], requires_grad=True), rg.asarray(10 * X)
    found = traced(lambda x: x * w + table, VECTOR)
    assert len(found.graph.inputs) == 3
    assert found.captured[0] is w  # a handle, whose value may be replaced
    assert [np.asarray(a.detach() if a is w else a).tolist() for a in found.captured] == [
        [1.0, 2.0, 3.0], [0.0, 10.0, 20.0]
    ]  # fmt: skip


def test_tracked_says_which_results_have_gradients() -> None:
    found = traced(lambda x: (x * 2, x.detach(), x.argmax()), VECTOR, asks=True)
    assert found.tracked == [True, False, False]


def test_changes_of_modules_that_would_be_lost_are_seen() -> None:
    norm = rg.nn.BatchNorm1d(3)
    leaves, structure = pytree.flatten(((norm, rg.ones((2, 3))), {}))
    keys = [x.dtype and TensorType(x.dtype, x.shape) for x in leaves]
    names = [str(i) for i in range(len(keys))]
    assert TracedFunction(lambda m, x: m(x), structure, keys, names).loses_state
    assert not TracedFunction(lambda m, x: (m(x), m), structure, keys, names).loses_state
    norm.eval()
    _, still = pytree.flatten(((norm, rg.ones((2, 3))), {}))
    assert not TracedFunction(lambda m, x: m(x), still, keys, names).loses_state


def test_named_sizes_are_known() -> None:
    n = Dim("n")
    kind = TensorType(float32, (n,))
    found = traced(lambda x: (x.sum() * as_number(n), x.shape[0], rg.fft.fft(x)), kind)
    assert found.inner_sizes == [n]
    assert found.exact_sizes == [n]
    assert found.sizes == [n]
    assert traced(lambda x: x * 2, kind).exact_sizes == []
    assert traced(lambda x: x * 2, VECTOR).inner_sizes == []


def test_programs_of_one_function_are_alike() -> None:
    one = traced(lambda x: (x * 2, 3), VECTOR)
    with rg.backend("reference"):
        program = one.compiled(())
    for f, alike in (
        (lambda x: (x * 5, 3), True),
        (lambda x: (x * 2, 4), False),
        (lambda x: (x * 2, 3.0), False),
        (lambda x: [x * 2, 3], False),
        (lambda x: (x.sum(), 3), False),
        (lambda x: (x > 2, 3), False),
        (lambda x: (x * 2, x), False),
    ):
        assert traced(f, VECTOR).is_like(program) is alike


def test_an_error_in_the_function_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        traced(f, VECTOR)
    assert (rg.ones(2) * 2).tolist() == [2.0, 2.0]  # not traced any more
