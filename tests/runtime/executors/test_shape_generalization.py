"""Kernels of one operation for all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Dim, Node, float32, int64, spec
from retrograd.ops.elementwise import add
from retrograd.ops.index import Gather, ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.ops.linalg import QR, Cholesky
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.scan import LinearScan
from retrograd.ops.sort import SearchSorted
from retrograd.runtime.executors import op_kernels
from retrograd.runtime.executors.shape_generalization import difference, named, types_of


def test_a_shape_never_seen_compiles_nothing() -> None:
    rg.exp(rg.ones(3) * 0.3).sum().numpy()
    before = len(op_kernels._PROGRAMS)
    for n in range(4, 20):
        x = rg.ones(n) * 0.3
        assert rg.exp(x).sum().item() == pytest.approx(n * np.exp(0.3), rel=1e-5)
    assert len(op_kernels._PROGRAMS) == before


def test_a_product_of_a_shape_never_seen_compiles_nothing() -> None:
    (rg.ones((3, 4)) @ rg.ones((4, 2))).numpy()
    (rg.ones((3, 4)) @ rg.ones(4)).numpy()
    before = len(op_kernels._PROGRAMS)
    for n in range(4, 20):
        assert (rg.ones((n, 7)) @ rg.ones((7, n + 1))).numpy().tolist() == [[7] * (n + 1)] * n
        assert (rg.ones((n, 7)) @ rg.ones(7)).numpy().tolist() == [7] * n
    assert len(op_kernels._PROGRAMS) == before


def given(*shape: int) -> Node:
    return input_node(spec(shape, float32))


def infers(node: Node, kind: str) -> Any:
    """The type of the result for names in place of sizes, with these sizes put in again."""
    types = types_of(node, kind)[: len(node.inputs)]
    found = node.prim.infer(*types)
    sizes: dict[str, int] = {}
    for t, x in zip(types, node.inputs, strict=True):
        for d, n in zip(t.shape, x.shape, strict=True):
            if isinstance(d, Dim) and str(d) in d.names:
                assert sizes.setdefault(str(d), int(n)) == n, "sizes that differ have one name"
    return tuple(d.evaluate(sizes) if isinstance(d, Dim) else d for d in found.shape)


def test_sizes_that_must_agree_have_one_name() -> None:
    nodes = [
        DotGeneral((2,), (1,), (0,), (0,))(given(3, 4, 5), given(3, 5, 6)),
        DotGeneral((0, 1), (1, 0))(given(3, 4), given(4, 3)),
        ScatterAdd(1)(given(3, 4, 5), input_node(spec((7,), int64)), given(3, 7, 5)),
        Gather(0)(given(3, 4), input_node(spec((7,), int64))),
        LinearScan(1)(given(3, 4), given(3, 4)),
        SearchSorted(False, 1)(given(3, 9), given(3, 4)),
    ]
    for node in nodes:
        assert infers(node, "shape") == node.shape, node.describe()


def test_kinds_by_which_sizes_are_equal() -> None:
    """One program serves all of these, and another where others are equal."""
    square, tall = QR()(given(3, 3)), QR()(given(5, 3))
    assert named(QR()(given(9, 8))) == named(tall) != named(square)
    solving = Cholesky()(given(2, 4, 4))
    assert named(solving) == named(Cholesky()(given(3, 7, 7))) != named(Cholesky()(given(3, 3, 3)))
    assert infers(solving, named(solving)) == (2, 4, 4)


def test_a_difference_of_sizes_is_the_length_of_an_array() -> None:
    """As it is what an operation on matrices with more rows than columns depends on."""
    tall, square = QR()(given(8, 3)), QR()(given(3, 3))
    assert [a.shape for a in difference(tall, named(tall))] == [(5,)]
    assert difference(square, named(square)) == []


def test_elementwise_operations_are_flat() -> None:
    (a, b) = types_of(add(given(3, 4), given(3, 4)), "flat")
    assert a == b
    assert [str(d) for d in a.shape] == ["N"]
