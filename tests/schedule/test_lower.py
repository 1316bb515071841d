"""From stored nodes to loop nests: each op's nests, run by hand or compiled."""

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, float32, int64, spec
from retrograd.ops.index import ScatterAdd
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ArgMax, ArgMin
from retrograd.ops.shape import Concat
from retrograd.runtime.executable import Executable
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.lower import NodeLowering, is_map
from retrograd.tuning import TUNING
from tests.schedule.evaluation import run

rng = np.random.default_rng


def given(*shape: int | Dim) -> Node:
    return input_node(spec(shape, float32))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_concat_of_many_parts_is_copied_part_by_part(axis: int) -> None:
    """Some of them empty; every element is written, and once."""
    lengths = [k % 4 for k in range(TUNING.concat_parts + 3)]
    parts = [given(*((n, 3) if axis == 0 else (2, n))) for n in lengths]
    y = Concat(axis)(*parts)
    stored = {x: Buffer("temporary", k, x.type, x) for k, x in enumerate((*parts, y))}
    nests = NodeLowering(y, stored, lambda t: stored[y]).nests()
    assert len(nests) == len(parts)
    memory = {b: rng(b.number).random(b.type.shape, np.float32) for b in stored.values()}
    memory[stored[y]][...] = np.nan
    for nest in nests:
        run(nest, memory)
    wanted = np.concatenate([memory[stored[x]] for x in parts], axis)
    np.testing.assert_array_equal(memory[stored[y]], wanted)


def compiled(y: Node, nodes: list[Node], arrays: list[np.ndarray]) -> np.ndarray:
    return Executable(Graph(nodes, [y]))(arrays)[0]


def test_extrema_along_any_axis() -> None:
    """The first of equals, NaN before all others; axes of one element."""
    a = rng(0).integers(0, 3, (3, 1, 5, 4)).astype(np.float32)
    a[1, 0, 3, 2] = np.nan
    for axis in range(4):
        x = given(3, 1, 5, 4)
        nodes = [op(axis)(x) for op in (ArgMax, ArgMin)]
        found = Executable(Graph([x], nodes))([a])
        np.testing.assert_array_equal(found[0], np.argmax(a, axis))
        np.testing.assert_array_equal(found[1], np.argmin(a, axis))


def test_scatters_along_any_axis() -> None:
    for axis, shared in ((0, 0), (1, 0), (2, 0), (1, 1)):
        shape = (3, 4, 5)
        x, count = given(*shape), 6
        i = input_node(spec((*shape[:shared], count), int64))
        updates = (*shape[:axis], count, *shape[axis + 1 :])
        u = given(*updates)
        at = rng(1).integers(-shape[axis], shape[axis], i.shape)
        a, b = rng(2).random(shape, np.float32), rng(3).random(updates, np.float32)
        found = compiled(ScatterAdd(axis, shared)(x, i, u), [x, i, u], [a, at, b])
        wanted = a.astype(float)
        for place in np.ndindex(*updates):
            own = at[(*place[:shared], place[axis])] if shared else at[place[axis]]
            wanted[(*place[:axis], own, *place[axis + 1 :])] += b[place]
        np.testing.assert_allclose(found, wanted, 1e-5)


def test_contractions_over_any_axes() -> None:
    x, y = given(2, 3, 4, 5), given(5, 2, 6, 4)
    z = DotGeneral((2, 3), (3, 0), (0,), (1,))(x, y)
    a, b = rng(0).random((2, 3, 4, 5), np.float32), rng(1).random((5, 2, 6, 4), np.float32)
    np.testing.assert_allclose(compiled(z, [x, y], [a, b]), np.einsum("bikl,lbjk->bij", a, b), 1e-5)


def test_what_is_computed_element_by_element() -> None:
    x = given(3, 4)
    assert is_map(x + x)
    assert not is_map(ArgMax(0)(x))
    assert not is_map(DotGeneral((1,), (1,))(x, x))
