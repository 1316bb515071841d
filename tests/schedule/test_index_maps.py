"""Nodes as functions of an index: chains of views against NumPy's, element by element."""

import itertools

import numpy as np
import pytest

from retrograd.errors import BackendError
from retrograd.ir import Dim, Node, float32, int64, spec
from retrograd.ops.elementwise import exp, sin
from retrograd.ops.index import Gather
from retrograd.ops.leaf import constant, input_node
from retrograd.ops.reduce import ReduceSum
from retrograd.ops.shape import Concat, Expand, Flip, Pad, Permute, Reshape, Slice
from retrograd.ops.windows import Windows
from retrograd.runtime.backend import Array
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.index_maps import IndexMapper
from retrograd.schedule.ssa import ScalarBlock
from tests.schedule.evaluation import evaluate


def elements(y: Node, inputs: dict[Node, Array], sizes: dict[str, int] | None = None) -> Array:
    """All elements, each computed from the arrays by its index map."""
    memory, stored = {}, {}
    for k, (x, array) in enumerate(inputs.items()):
        stored[x] = Buffer("input", k, x.type, x)
        memory[stored[x]] = array
    body = ScalarBlock()
    value = IndexMapper(body, stored).read(y, tuple(body.loop(k) for k in range(y.type.rank)))
    shape = [d.evaluate(sizes or {}) if isinstance(d, Dim) else d for d in y.shape]
    found = [evaluate(value, at, memory, sizes) for at in itertools.product(*map(range, shape))]
    return np.array(found, y.dtype.dtype).reshape(shape)


def test_each_view() -> None:
    x = input_node(spec((3, 4), float32))
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    fill = constant(np.float32(-1))
    windows = np.lib.stride_tricks.sliding_window_view(a, 2, axis=1)[:, ::2]
    cases = [
        (Permute((1, 0))(x), a.T),
        (Slice((1, 0), (3, 4), (1, 3))(x), a[1:, ::3]),
        (Flip((0, 1))(x), a[::-1, ::-1]),
        (Reshape((2, 6))(x), a.reshape(2, 6)),
        (Expand((2, 3, 4), (0,))(x), np.stack([a, a])),
        (Pad((1, 0), (0, 2), (0, 0))(x, fill), np.pad(a, ((1, 0), (0, 2)), constant_values=-1)),
        (Concat(0)(x, Slice((0, 0), (0, 4), (1, 1))(x), Flip((1,))(x)),
         np.concatenate([a, a[:, ::-1]])),
        (Windows((2,), (2,), (1,))(x), windows),
    ]  # fmt: skip
    for node, right in cases:
        np.testing.assert_array_equal(elements(node, {x: a}), right, err_msg=node.op)


def test_gaps_between_elements() -> None:
    x = input_node(spec((3,), float32))
    y = Pad((1,), (2,), (2,))(x, constant(np.float32(9)))
    found = elements(y, {x: np.array([5, 6, 7], np.float32)})
    assert found.tolist() == [9, 5, 9, 9, 6, 9, 9, 7, 9, 9]


@pytest.mark.parametrize("seed", range(6))
def test_chains_of_views(seed: int) -> None:
    """Of random ones, with elementwise operations between them."""
    rng = np.random.default_rng(seed)
    x = y = input_node(spec((3, 4, 2), float32))
    a = right = rng.standard_normal((3, 4, 2)).astype(np.float32)
    for _ in range(7):
        way, rank = rng.integers(6), y.type.rank
        if way == 0:
            perm = tuple(int(p) for p in rng.permutation(rank))
            y, right = Permute(perm)(y), right.transpose(perm)
        elif way == 1:
            axis = int(rng.integers(rank))
            y, right = Flip((axis,))(y), np.flip(right, axis)
        elif way == 2:
            shape = tuple(int(n) for n in rng.permutation(right.shape))
            y, right = Reshape(shape)(y), right.reshape(shape)
        elif way == 3 and right.shape[0] > 1:
            rest = (0,) * (rank - 1)
            y = Slice((1, *rest), right.shape, (2, *(1 for _ in rest)))(y)
            right = right[1::2]
        elif way == 4:
            low, high = (0,) * (rank - 1), (0,) * (rank - 1)
            y = Pad((*low, 1), (*high, 1), (0,) * rank)(y, constant(np.float32(3)))
            right = np.pad(right, [(0, 0)] * (rank - 1) + [(1, 1)], constant_values=3)
        else:
            y, right = sin(y), np.sin(right)
    np.testing.assert_allclose(elements(y, {x: a}), right, 1e-6)


def test_named_sizes_and_positions_from_memory() -> None:
    n = Dim("N")
    x, i = input_node(spec((n, 2), float32)), input_node(spec((3,), int64))
    a, at = np.arange(10, dtype=np.float32).reshape(5, 2), np.array([4, 0, 4])
    y = exp(Permute((1, 0))(Gather(0)(Flip((0,))(x), i)))
    found = elements(y, {x: a, i: at}, {"N": 5})
    np.testing.assert_allclose(found, np.exp(a[::-1][at].T), 1e-6)


def test_what_is_stored_is_loaded_and_what_has_no_rule_is_named() -> None:
    x = input_node(spec((3,), float32))
    y = sin(exp(x))
    stored = {z: Buffer("temporary", 0, z.type, z) for z in (y.inputs[0],)}
    body = ScalarBlock()
    value = IndexMapper(body, stored).read(y, (body.loop(0),))
    assert [a.attr for a in value.args] == [stored[y.inputs[0]]]
    with pytest.raises(BackendError, match="reduce_sum"):
        IndexMapper(body, {}).read(ReduceSum((0,))(x), ())
