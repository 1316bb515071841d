"""What the functions of `rg.nn.functional` refuse, and that messages say what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import AxisError, OptionError, RetrogradError, ShapeError

F = rg.nn.functional


def ones(*shape: int) -> rg.Tensor:
    return rg.ones(shape)


CASES: list[tuple[Any, type[RetrogradError], str]] = [
    (lambda: F.glu(ones(3, 5)), ShapeError, "even size"),
    (lambda: F.glu(ones(4), 1), AxisError, "glu: axis 1 of an array with 1 axes"),
    (lambda: F.glu(ones()), AxisError, "glu: axis -1 of an array with 0 axes"),
    (lambda: F.prelu(ones(2, 3), ones(2)), ShapeError, r"\(2,\)"),
    (lambda: F.hardtanh(ones(2), 1.0, -1.0), OptionError, "not above"),
    (lambda: F.softshrink(ones(2), -1.0), OptionError, "-1.0"),
    (lambda: F.gumbel_softmax(ones(2), tau=0), OptionError, "tau is positive, not 0"),
    (lambda: F.batch_norm(ones(4), None, None), ShapeError, r"\[N, C, ...\]"),
    (lambda: F.batch_norm(ones(4, 2), None, None), OptionError, "running statistics"),
    (lambda: F.batch_norm(ones(1, 2), None, None, training=True), ShapeError, "more than one"),
    (lambda: F.group_norm(ones(2, 4), 3), OptionError, "4 channels do not make 3"),
    (lambda: F.group_norm(ones(2, 4), 2, ones(3)), ShapeError, "each of 4 channels"),
    (lambda: F.local_response_norm(ones(2, 4, 1), 0), OptionError, "at least 1"),
    (lambda: F.cdist(ones(2, 3), ones(2, 4)), ShapeError, "one length"),
    (lambda: F.pdist(ones(2, 3, 4)), ShapeError, r"\(2, 3, 4\)"),
    (lambda: F.cosine_embedding_loss(ones(2, 3), ones(2, 3), ones(3)), ShapeError, r"\[N\]"),
    (lambda: F.triplet_margin_loss(ones(2), ones(2), ones(2), margin=0), OptionError, "margin"),
    (lambda: F.multi_margin_loss(ones(2, 3), [0, 1], p=3), OptionError, "p is 1 or 2"),
    (lambda: F.multi_margin_loss(ones(2, 3), [0, 1, 2]), ShapeError, "classes"),
    (lambda: F.multilabel_margin_loss(ones(2, 3), [[0], [1]]), ShapeError, "one shape"),
    (lambda: F.gaussian_nll_loss(ones(2, 3), ones(2, 3), ones(3)), ShapeError, "variance"),
    (lambda: F.ctc_loss(ones(4, 2, 3), [[1], [2]], [4, 5], [1, 1]), ShapeError, "from 0 to 4"),
    (lambda: F.ctc_loss(ones(4), [1], [4], [1]), ShapeError, "T, N, C"),
    (lambda: F.adaptive_max_pool2d(ones(1, 2, 3, 4), (0, 1)), OptionError, "at least 1"),
    (lambda: F.adaptive_max_pool1d(ones(1, 2, 0), 1), ShapeError, "no maximum"),
    (lambda: F.max_unpool1d(ones(1, 1, 2), np.zeros((1, 1, 3), int), 2), ShapeError, "one shape"),
    (lambda: F.unfold(ones(1, 2, 3, 4), 5), ShapeError, "do not fit"),
    (lambda: F.unfold(ones(1, 2, 3, 4), 2, stride=0), OptionError, "positive"),
    (lambda: F.fold(ones(1, 6, 4), (3, 3), 2), ShapeError, "columns"),
    (lambda: F.interpolate(ones(1, 2, 3), 4, mode="bilinear"), ShapeError, "does not fit"),
    (lambda: F.interpolate(ones(1, 2, 3), 4, mode="cubic"), OptionError, "no mode 'cubic'"),
    (lambda: F.interpolate(ones(1, 2, 3)), OptionError, "either size or scale_factor"),
    (lambda: F.interpolate(ones(1, 2, 3), (4, 5)), OptionError, "each of 1 axes"),
    (lambda: F.interpolate(ones(1, 2, 3), 4, align_corners=True), OptionError, "no meaning"),
    (lambda: F.interpolate(ones(1, 2, 3), 4, antialias=True), OptionError, "antialias is for"),
    (lambda: F.affine_grid(ones(1, 2, 3), (2, 1, 4, 4)), ShapeError, "theta"),
    (lambda: F.grid_sample(ones(1, 2, 3, 4), ones(1, 2, 2, 3)), ShapeError, r"\[N, H, W, 2\]"),
    (lambda: F.grid_sample(ones(1, 2, 3, 4), ones(2, 2, 2, 2)), ShapeError, "differ in samples"),
    (lambda: F.grid_sample(ones(1, 2, 3, 4), ones(1, 2, 2, 2), "cubic"), OptionError, "'cubic'"),
    (
        lambda: F.grid_sample(ones(1, 2, 3, 4), ones(1, 2, 2, 2), "nearest", "wrap"),
        OptionError,
        "wrap",
    ),
    (lambda: F.pad(ones(3), (1, 2, 3)), ShapeError, "before, after"),
    (lambda: F.pad(ones(3), (1, 2), "mirror"), OptionError, "no mode 'mirror'"),
    (lambda: F.pad(ones(3), (1, 2), "reflect", 1.0), OptionError, "value"),
    (lambda: F.pad(ones(3), (-2, -2)), ShapeError, "cuts off more"),
    (lambda: F.pixel_shuffle(ones(6, 2, 2), 2), ShapeError, "divide by 4"),
    (lambda: F.pixel_unshuffle(ones(1, 5, 4), 2), ShapeError, "divide by 2"),
    (lambda: F.channel_shuffle(ones(1, 5, 4), 2), ShapeError, "groups"),
    (lambda: F.bilinear(ones(2, 3), ones(2, 4), ones(5, 4, 3)), ShapeError, "weight"),
    (lambda: F.embedding_bag([1, 2], ones(3, 2)), ShapeError, "offsets"),
    (lambda: F.embedding_bag([[1]], ones(3, 2), mode="min"), OptionError, "'min'"),
    (lambda: F.embedding_bag([1, 2], ones(3, 2), [1]), ShapeError, "rise from 0"),
    (lambda: F.dropout2d(ones(3, 4)), ShapeError, "dropout2d"),
    (lambda: F.alpha_dropout(ones(3), p=2.0, training=True), OptionError, "probability"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_refused(case: int) -> None:
    call, error, message = CASES[case]
    with pytest.raises(error, match=message) as caught:
        call()
    assert "test_errors.py" in str(caught.value), "the user's line"
