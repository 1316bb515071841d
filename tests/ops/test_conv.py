"""Convolution by its definition, in loops: strides, dilations, negative padding, groups."""

import itertools

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import Dim, TensorType, float32, float64, reachable
from retrograd.ops.conv import Conv, framed, has_more_places
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_result
from tests.ops.derive import cotangents

RNG = np.random.default_rng(0)


def by_loops(op, x, w):
    """`y[n, o, p] = sum over c, k of w[o, c, k] * X[n, c, p * stride + k * w_dilation]`."""
    full = framed(x, op.low, op.high, op.x_dilation)
    own, per = w.shape[1], w.shape[0] // op.groups
    steps = list(zip(full.shape[2:], w.shape[2:], op.strides, op.w_dilation, strict=True))
    places = [(d - (k - 1) * gap - 1) // s + 1 for d, k, s, gap in steps]
    y = np.zeros((x.shape[0], w.shape[0], *places))
    for n, o in np.ndindex(*y.shape[:2]):
        for p, k in itertools.product(np.ndindex(*places), np.ndindex(*w.shape[2:])):
            at = tuple(a * s + b * gap for a, b, (_, _, s, gap) in zip(p, k, steps, strict=True))
            for c in range(own):
                y[(n, o, *p)] += w[(o, c, *k)] * full[(n, o // per * own + c, *at)]
    return y


@pytest.mark.parametrize(
    ("op", "places", "kernel", "groups"),
    [
        (Conv((1,), (0,), (0,), (1,), (1,)), (5,), (3,), 1),
        (Conv((2,), (1,), (2,), (1,), (2,)), (6,), (3,), 1),
        (Conv((1,), (-1,), (-2,), (3,), (1,)), (4,), (2,), 1),
        (Conv((1, 2), (1, 0), (0, 1), (2, 1), (1, 2), 2), (3, 5), (2, 2), 2),
        (Conv((1,), (0,), (0,), (1,), (1,), 4), (4,), (4,), 4),
    ],
    ids=str,
)
def test_definition(op, places, kernel, groups):
    x = RNG.standard_normal((2, 4, *places))
    w = RNG.standard_normal((4, 4 // groups, *kernel))
    np.testing.assert_allclose(check_result(op, [x, w]), by_loops(op, x, w), atol=1e-14)


def test_no_axes_to_slide_along_is_a_product():
    x, w = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 4))
    np.testing.assert_allclose(check_result(Conv((), (), (), (), ()), [x, w]), x @ w.T)


def test_long_sums_are_taken_in_halves():
    """More products than one after the other is accurate for: small integers are exact."""
    x = RNG.integers(-3, 4, (1, 300, 5)).astype(np.float32)
    w = RNG.integers(-3, 4, (2, 300, 3)).astype(np.float32)
    op = Conv((1,), (0,), (0,), (1,), (1,))
    np.testing.assert_array_equal(check_result(op, [x, w]), by_loops(op, x, w))


def test_zeros_between_and_around():
    x = np.array([[1.0, 2.0, 3.0]])
    assert framed(x, (1,), (2,), (2,)).tolist() == [[0, 1, 0, 2, 0, 3, 0, 0]]
    assert framed(x, (-1,), (-1,), (2,)).tolist() == [[0, 2, 0]]


@pytest.mark.parametrize(
    ("x", "w", "groups", "error", "match"),
    [
        ((1, 4, 5), (3, 2, 3), 1, ShapeError, r"its 4 channels must be 2 \* 1"),
        ((1, 4, 5), (3, 2, 3), 2, ShapeError, "its 3 channels do not divide into 2 groups"),
        ((1, 4, 2), (3, 4, 3), 1, ShapeError, "a window of 3 elements does not fit"),
        ((4, 5), (3, 4, 3), 1, ShapeError, r"with 1 strides it is \[N, C, \*S\]"),
        ((1, 4, 0), (3, 4, 1), 1, ShapeError, "an axis to slide along has no elements"),
    ],
)
def test_what_does_not_fit(x, w, groups, error, match):
    op = Conv((1,), (0,), (0,), (1,), (1,), groups)
    with pytest.raises(error, match=match):
        op(*[input_node(TensorType(float64, s)) for s in (x, w)])


def test_one_dtype():
    x, w = (input_node(TensorType(d, (1, 1, 1))) for d in (float32, float64))
    with pytest.raises(DTypeError, match="one dtype"):
        Conv((1,), (0,), (0,), (1,), (1,))(x, w)


N, K = Dim("N"), Dim("K")


@pytest.mark.parametrize(
    ("op", "places", "kernel", "needs"),
    [
        (Conv((1,), (1,), (1,), (1,), (1,)), N, 3, False),  # as many places
        (Conv((2,), (1,), (1,), (1,), (1,)), N, 3, False),  # fewer
        (Conv((1,), (1,), (2,), (2,), (1,)), N, 3, False),  # more: the gradient of that
        (Conv((2,), (1,), (1,), (3,), (1,)), N, 3, False),
        (Conv((1,), (3,), (3,), (1,), (1,)), N, K, True),  # more or fewer
        (Conv((1,), (1,), (2,), (2,), (1,)), 9, 3, False),
    ],
)
def test_bits_that_need_the_value_of_a_size(op, places, kernel, needs):
    types = [TensorType(float32, (2, 4, places)), TensorType(float32, (4, 4, kernel))]
    assert op.needs_sizes(op.infer(*types), *types) == needs


def test_more_places():
    assert has_more_places((N, 3), (N, 4))
    assert has_more_places((N, 3), (N, 3)) is False
    assert has_more_places((N, 3), (N + 1, 2)) is False
    assert has_more_places(((N + 1) // 2,), (N,))
    assert has_more_places((N,), (K,)) is None
    assert has_more_places((N // 2,), (4,)) is None


@pytest.mark.parametrize("kernel", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])  # two ways to the gradient by the kernel
def test_gradients_move_no_more_than_they_have_to(kernel, dilation):
    """A kernel of one place is not turned round, and one group is not taken apart."""
    x, w = (input_node(TensorType(float64, s)) for s in ((2, 4, 5), (6, 4, kernel)))
    y = Conv((1,), (0,), (0,), (dilation,), (1,))(x, w)
    to_x, to_w = ({n.op for n in reachable([g])} for g in cotangents(y, [x, w]))
    assert "reshape" not in to_x | to_w
    assert ("flip" in to_x) is (kernel > 1)
    assert ("flip" in to_w) is (kernel > 1 and dilation > 1)
