"""Nodes as strided views of memory, and contractions as matrix products of such views."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd.ir import Dim, Graph, Node, float32, float64, int32, spec
from retrograd.ops.elementwise import exp
from retrograd.ops.leaf import input_node
from retrograd.ops.matmul import DotGeneral, matmul
from retrograd.ops.shape import Expand, Permute, Reshape, Slice
from retrograd.ops.windows import Windows
from retrograd.passes.lowering.strided_views import (
    as_product,
    contiguous,
    in_rows,
    merge,
    reads_once,
    reads_windows,
    slides,
    view_of,
    wants_routine,
)
from retrograd.runtime.executors.reference import ReferenceProgram

X = np.arange(120.0, dtype=np.float32).reshape(4, 5, 6)

# Views of an array of the shape (4, 5, 6)
VIEWS: dict[str, Callable[[Node], Node]] = {
    "itself": lambda x: x,
    "permuted": Permute((2, 0, 1)),
    "sliced": Slice((1, 0, 1), (4, 5, 6), (2, 1, 3)),
    "expanded": Expand((7, 4, 5, 3, 6), (0, 3)),
    "split": Reshape((2, 2, 5, 3, 2)),
    "joined": Reshape((20, 6)),
    "windows": Windows((2, 3), (2, 1), (1, 2)),
    "split after a permutation": lambda x: Reshape((6, 2, 2, 5))(Permute((2, 0, 1))(x)),
    "joined after a slice": lambda x: Reshape((10, 6))(Slice((1, 0, 0), (3, 5, 6), (1,) * 3)(x)),
    "sliced, expanded, permuted": lambda x: Permute((3, 1, 0, 2))(
        Expand((4, 3, 2, 6), (1,))(Slice((0, 1, 0), (4, 5, 6), (1, 2, 1))(x))
    ),
    "ones": lambda x: Reshape((4, 1, 5, 6, 1))(x),
}


def is_input(x):
    return not x.inputs


@pytest.mark.parametrize("name", VIEWS)
def test_strides_and_offset_give_the_elements(name):
    x = input_node(spec(X.shape))
    y = VIEWS[name](x)
    view = view_of(y, is_input)
    assert view is not None
    assert view.root is x
    steps = [4 * int(s) for s in view.strides]
    shape: Any = y.shape
    found = np.lib.stride_tricks.as_strided(X.reshape(-1)[view.offset :], shape, steps)
    np.testing.assert_array_equal(found, ReferenceProgram(Graph([x], [y]))([X])[0])


def test_what_is_not_evenly_spaced_is_no_view():
    x = input_node(spec(X.shape))
    assert view_of(Reshape((24, 5))(Permute((0, 2, 1))(x)), is_input) is None
    assert view_of(exp(x), is_input) is None
    stop = exp(x)
    assert view_of(Permute((1, 0, 2))(stop), lambda n: n is stop).root is stop


def test_named_sizes():
    n = Dim("N")
    x = input_node(spec((3, n)))
    view = view_of(Permute((1, 0))(Slice((1, 0), (3, n), (1, 1))(x)), is_input)
    assert (view.offset, view.strides) == (n, (1, n))
    assert contiguous((2, n, 3)) == (3 * n, 3, 1)


@pytest.mark.parametrize(
    ("shape", "strides", "merged"),
    [((2, 3), (3, 1), (6, 1)), ((2, 3), (6, 2), (6, 2)), ((2, 3), (4, 1), None),
     ((1, 3), (99, 2), (3, 2)), ((), (), (1, 1)), ((2, 1, 3), (3, 7, 1), (6, 1)),
     ((4, 5), (0, 0), (20, 0))],
)  # fmt: skip
def test_axes_that_are_one(shape, strides, merged):
    assert merge(shape, strides) == merged


def product_of(equation, *nodes):
    """As the scheduler asks."""
    node = equation(*nodes)
    return as_product(node, lambda x: x.op in ("input", "exp"))


def test_transposes_are_read_as_such():
    a, b = input_node(spec((30, 20))), input_node(spec((20, 40)))
    p = product_of(matmul, a, b)
    assert (p.batch, p.m, p.k, p.n) == ((), 30, 20, 40)
    assert (p.a.transposed, p.a.leading, p.b.transposed, p.b.leading) == (False, 20, False, 40)
    turned = product_of(DotGeneral((0,), (1,)), input_node(spec((20, 30))), Permute((1, 0))(b))
    assert (turned.a.transposed, turned.a.leading) == (True, 30)
    assert (turned.b.transposed, turned.b.leading) == (False, 40)


def test_batches_have_strides_and_one_may_be_shared():
    a, b = input_node(spec((3, 30, 20))), input_node(spec((20, 40)))
    p = product_of(DotGeneral((2,), (1,), (0,), (0,)), a, Expand((3, 20, 40), (0,))(b))
    assert (p.batch, p.a.batch, p.b.batch) == ((3,), (600,), (0,))


def test_rows_that_overlap_or_repeat_are_no_matrix():
    a, b = input_node(spec((20,))), input_node(spec((20, 40)))
    assert product_of(matmul, Expand((30, 20), (0,))(a), b) is None
    x = input_node(spec((30, 40)))
    assert product_of(matmul, Slice((0, 0), (30, 40), (1, 2))(x), b) is None


def test_windows_are_the_left_matrix_by_lists_of_offsets():
    x, w = input_node(spec((30, 32))), input_node(spec((9, 64)))
    windows = Windows((3, 3), (1, 1), (1, 1))(x)  # 28 x 30 x 3 x 3
    product = DotGeneral((2, 3), (0, 1))(windows, Reshape((3, 3, 64))(w))
    found = as_product(product, is_input)
    assert found.a.spread == (((28, 32), (30, 1)), ((3, 32), (3, 1)))
    large = DotGeneral((2, 3), (0, 1))(windows, input_node(spec((3, 3, 1024))))
    assert reads_windows(large)
    assert not reads_windows(matmul(x, input_node(spec((32, 1024)))))


@pytest.mark.parametrize(("places", "wanted"), [((7, 10), True), ((2, 10), False)])
def test_places_of_several_images_are_the_left_matrix_where_they_lie(places, wanted):
    """For each channel the places of all images, in runs, unless these are short."""
    x, w = input_node(spec((5, 64, *places))), input_node(spec((5, *places, 32)))
    product = DotGeneral((1, 2, 3), (0, 1, 2))(Permute((1, 0, 2, 3))(x), w)
    found = as_product(product, is_input)
    assert (found is not None) is wanted
    if wanted:
        run = places[0] * places[1]
        columns = ((5, 64 * run), (places[0], places[1]), (places[1], 1))
        assert found.a.spread == (((64, run),), columns)


@pytest.mark.parametrize(
    ("size", "kernels", "stride", "wanted"),
    [
        ((9, 18), 16, 1, True),
        ((9, 20), 16, 1, True),  # a vector has parts of several rows
        ((9, 34), 16, 2, True),
        ((9, 34), 16, 3, False),  # what is side by side in the result is too far apart
        ((9, 6), 16, 1, False),  # short rows, of which a vector would have many parts
        ((9, 18), 2, 1, False),  # few rows
        ((2, 1 << 19), 16, 1, False),  # vectors that nobody wants to list
        ((9, Dim("W")), 16, 1, False),
    ],
)
def test_windows_are_the_right_matrix_by_vectors(size, kernels, stride, wanted):
    x, w = input_node(spec(size)), input_node(spec((kernels, 2, 3)))
    windows = Windows((2, 3), (1, stride), (1, 1))(x)
    product = DotGeneral((1, 2), (2, 3))(w, windows)
    assert slides(product) is wanted
    found = as_product(product, is_input)
    assert (found is not None and found.b.spread is not None) is wanted
    if wanted:
        wide = size[1]
        length = (wide - 3) // stride + 1
        assert found.b.spread == (((2, wide), (3, 1)), ((8, wide), (length, stride)))


@pytest.mark.parametrize(
    ("shapes", "dtype", "wanted"),
    [
        ([(64, 64), (64, 256)], float32, True),
        ([(64, 64), (64, 256)], int32, False),  # no routine for it
        ([(4, 64), (64, 256)], float32, False),  # few rows
        ([(64, 8), (8, 8)], float32, False),  # a matrix that stays in the cache
        ([(500, 500), (500, 1)], float64, False),  # nothing is read twice
        ([(Dim("N"), 64), (64, 256)], float32, True),  # what is not known counts as large
    ],
)
def test_whether_a_routine_is_faster(shapes, dtype, wanted):
    a, b = (input_node(spec(s, dtype)) for s in shapes)
    assert wants_routine(matmul(a, b)) is wanted


def test_rows_of_the_matrix_on_the_right():
    a, b = input_node(spec((8, 16))), input_node(spec((16, 32)))
    assert in_rows(matmul(a, b))
    assert not in_rows(matmul(a, Permute((1, 0))(input_node(spec((32, 16))))))
    assert not in_rows(matmul(a, input_node(spec((16, 1)))))


@pytest.mark.parametrize(
    ("left", "right", "once"),
    [
        ((300, 400), (400,), (True, False)),
        ((400, 300), (400,), (True, False)),
        ((400,), (400, 300), (False, True)),
        ((400,), (400,), (True, True)),
        ((300, 400), (400, 2), (False, False)),
        ((300, 400), (400, Dim("N")), (False, False)),
    ],
)
def test_what_is_multiplied_by_a_vector_is_read_once(left, right, once):
    a, b = input_node(spec(left)), input_node(spec(right))
    y = DotGeneral((left.index(400),), (right.index(400),))(a, b)
    assert tuple(reads_once(y, i) for i in (0, 1)) == once
