"""Windows and their transpose: by indices, adjoint to the last digit, errors."""

import numpy as np
import pytest

from retrograd.errors import DTypeError, ShapeError
from retrograd.ir import TensorType, bool_, float64
from retrograd.ops import windows as w
from retrograd.ops.leaf import input_node
from retrograd.verify.rule_checks import check_result

SETTINGS = [((2,), (1,), (1,)), ((3,), (2,), (2,)), ((2, 1), (3, 1), (1, 1)), ((1,), (4,), (1,))]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_each_element_of_each_window(settings):
    """`y[..., o, k] = x[..., o * stride + k * dilation]`; what no window reaches is left out."""
    sizes, strides, dilations = settings
    x = np.random.default_rng(0).integers(-9, 9, (2, 8, 7)).astype(float)
    y = check_result(w.Windows(*settings), [x])
    rank = len(sizes)
    lead, outs = y.shape[: 3 - rank], y.shape[3 - rank : 3]
    assert outs == tuple(
        (d - (k - 1) * g - 1) // s + 1
        for d, k, s, g in zip(x.shape[3 - rank :], sizes, strides, dilations, strict=True)
    )
    for at in np.ndindex(*y.shape):
        o, k = at[len(lead) : 3], at[3:]
        place = [a * s + b * d for a, b, s, d in zip(o, k, strides, dilations, strict=True)]
        assert y[at] == x[(*at[: len(lead)], *place)]
    u = np.random.default_rng(1).integers(-9, 9, y.shape).astype(float)
    back = check_result(w.Fold(x.shape[3 - rank :], strides, dilations), [u])
    assert np.sum(y * u) == np.sum(x * back)


def test_overlaps_are_added_in_float32():
    x = np.full((2, 2), 2049, np.float32).astype(np.float16)
    found = check_result(w.Fold((3,), (1,), (1,)), [x])
    assert found.tolist() == [2048, 4096, 2048]


def test_sizes():
    assert w.span(3, 2) == 5
    assert w.count(9, 5, 2) == 3
    assert w.full_size(3, 1, -1, 2) == 5


@pytest.mark.parametrize(
    ("op", "shape", "match"),
    [
        (
            w.Windows((3,), (1,), (2,)),
            (4,),
            "a window of 5 elements does not fit into an axis of 4",
        ),
        (w.Windows((0,), (1,), (1,)), (4,), "at least one element"),
        (w.Windows((1,), (0,), (1,)), (4,), "strides and dilations are at least 1"),
        (w.Windows((1, 1), (1, 1), (1, 1)), (4,), "fewer than 2 axes"),
        (w.Windows((1,), (1, 1), (1,)), (4,), "a size, a stride and a dilation"),
        (w.Fold((5,), (1,), (1,)), (3, 2), "have .4,. such windows"),
        (w.Fold((5,), (1,), (1,)), (3,), r"fewer than 2 \* 1 axes"),
    ],
    ids=str,
)
def test_what_does_not_fit(op, shape, match):
    with pytest.raises(ShapeError, match=match):
        op(input_node(TensorType(float64, shape)))


def test_booleans_are_not_added():
    with pytest.raises(DTypeError, match="fold adds numbers"):
        w.Fold((3,), (1,), (1,))(input_node(TensorType(bool_, (2, 2))))
