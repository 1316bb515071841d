"""Log loss, Brier score, calibration and perplexity, written out."""

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import IndexRangeError, NonFiniteError, OptionError, ShapeError

M = rg.metrics


def test_log_loss():
    p = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]]
    expected = (math.log(2) + math.log(8)) / 2
    assert M.log_loss(p, [0, 2]).item() == pytest.approx(expected)
    assert M.log_loss(np.log(p), [0, 2], from_logits=True).item() == pytest.approx(expected)
    assert M.log_loss(p, ["a", "c"], labels=["a", "b", "c"]).item() == pytest.approx(expected)
    assert M.log_loss(p, [0, 2], normalize=False).item() == pytest.approx(2 * expected)
    assert M.log_loss([0.25, 0.5], [0, 1]).item() == pytest.approx(math.log(8 / 3) / 2)
    logits = [-math.log(3), 0.0]
    assert M.log_loss(logits, [0, 1], from_logits=True).item() == pytest.approx(math.log(8 / 3) / 2)
    assert M.log_loss([-1000.0], [1], from_logits=True).item() == 1000.0
    for dtype, bits in ((np.float64, 52), (np.float32, 23)):  # what is impossible is clipped
        found = M.log_loss(np.array([0.0], dtype), [1]).item()
        assert found == pytest.approx(bits * math.log(2), rel=1e-6)


def test_brier_score():
    assert M.brier_score([0.25, 0.5], [0, 1]).item() == (0.0625 + 0.25) / 2
    assert M.brier_score([0.25, 0.5], [-1, 1]).item() == (0.0625 + 0.25) / 2
    assert M.brier_score([[0.5, 0.25, 0.25]], [0]).item() == 0.375
    assert M.brier_score([[0.5, 0.25, 0.25]], [0], scale_by_half=True).item() == 0.1875


def test_calibration():
    """Bins of thirds: [0, 1/3) holds 2 of mean 0.15, half of them right; [2/3, 1] 1 that is not."""
    p, t = [0.1, 0.2, 1.0], [0, 1, 0]
    assert M.calibration_error(p, t, n_bins=3).item() == pytest.approx((2 * 0.35 + 1.0) / 3)
    assert M.calibration_error(p, t, n_bins=3, norm="max").item() == 1.0
    expected = math.sqrt((2 * 0.35**2 + 1.0) / 3)
    assert M.calibration_error(p, t, n_bins=3, norm="l2").item() == pytest.approx(expected)
    both = [[0.25, 0.75], [0.75, 0.25]]
    assert M.calibration_error(both, [1, 1], n_bins=1).item() == 0.25


def test_perplexity():
    logits = np.log([[[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]]])
    assert M.perplexity(logits, [[0, 2]]).item() == pytest.approx(4.0)
    assert M.perplexity(logits, [[0, -100]], ignore_index=-100).item() == pytest.approx(2.0)
    assert M.perplexity(logits, [[0, 2]], sample_weight=[[2, 1]]).item() == pytest.approx(
        32 ** (1 / 3)
    )
    assert M.perplexity([[-math.inf, 0.0]], [1]).item() == 1.0
    assert M.perplexity([[-math.inf, 0.0]], [0]).item() == math.inf


@pytest.mark.filterwarnings("default:probabilities of the classes")
def test_probabilities_that_do_not_add_up_are_warned_of():
    with pytest.warns(UserWarning, match="do not add up to 1"):
        M.log_loss([[0.5, 0.1]], [0])


@pytest.mark.parametrize(
    ("f", "p", "t", "error"),
    [
        (M.log_loss, [1.5], [1], OptionError),
        (M.log_loss, [[-0.5, 1.5]], [1], OptionError),
        (M.log_loss, [[0.5, 0.5]], [2], IndexRangeError),
        (M.log_loss, [[0.5, 0.5]], ["a"], OptionError),
        (M.log_loss, [[0.5, 0.5]], [0, 1], ShapeError),
        (M.log_loss, [], [], ShapeError),
        (M.log_loss, [math.nan], [0], NonFiniteError),
        (M.brier_score, [2.0], [1], OptionError),
        (M.calibration_error, [2.0], [1], OptionError),
        (M.perplexity, [[1.0, 2.0]], [2], IndexRangeError),
        (M.perplexity, [1.0, 2.0], [0, 1], ShapeError),
        (M.perplexity, [[math.inf, 0.0]], [0], NonFiniteError),
        (M.perplexity, [[math.nan, 0.0]], [0], NonFiniteError),
    ],
)
def test_what_is_refused(f, p, t, error):
    with pytest.raises(error):
        f(p, t)


def test_options_that_there_are_not():
    cases: list[tuple[Any, dict[str, Any]]] = [
        (M.calibration_error, {"norm": "l3"}),
        (M.calibration_error, {"n_bins": 0}),
        (M.brier_score, {"scale_by_half": "yes"}),
        (M.log_loss, {"labels": [0, 1, 2]}),
        (M.perplexity, {"ignore_index": 1}),
    ]
    for f, options in cases:
        p = [[0.5, 0.5]] if f is M.perplexity else [0.5]
        with pytest.raises(OptionError):
            f(p, [1], **options)
