"""What metrics take as arrays, and what they refuse."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, NonFiniteError, OptionError, ShapeError

M = rg.metrics


@pytest.mark.parametrize(
    "kind",
    [list, tuple, np.array, rg.tensor, lambda x: [rg.tensor(v) for v in x],
     lambda x: np.array(x, object), lambda x: np.array(x, np.float32),
     lambda x: rg.tensor(x, dtype=rg.float16), lambda x: rg.tensor(x, dtype=rg.bfloat16),
     lambda x: rg.tensor(x, dtype=rg.float32, requires_grad=True)],
)  # fmt: skip
def test_arrays_of_any_kind(kind):
    found = M.mse(kind([1.0, 2.0, 4.0]), kind([1.0, 0.0, 1.0]))
    assert isinstance(found, rg.Tensor)
    assert found.dtype is rg.float64
    assert not found.requires_grad
    assert abs(found.item() - 13 / 3) < 1e-15


def test_lists_of_numbers_are_in_double_precision():
    assert M.mae([0.1], [0.3]).item() == abs(0.1 - 0.3)


@pytest.mark.parametrize(
    ("predictions", "error", "says"),
    [
        ((x for x in [1.0]), DTypeError, "generator"),
        (object(), DTypeError, "object"),
        ([1.0, None], DTypeError, "list"),
        (["a", "b"], DTypeError, "real numbers"),
        ([1j, 2j], DTypeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], ShapeError, "ragged"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), DTypeError, "masked"),
        ([], ShapeError, "no sample"),
        ([1.0, 2.0, 3.0], ShapeError, "targets"),
        ([1.0, float("nan")], NonFiniteError, r"nan at \[1\]"),
        ([float("inf"), 1.0], NonFiniteError, r"inf at \[0\]"),
        (np.zeros((2, 1, 1)), ShapeError, "flatten"),
    ],
)
def test_what_is_refused(predictions, error, says):
    with pytest.raises(error, match=says):
        M.mse(predictions, [1.0, 2.0])


def test_weights():
    assert M.mse([1.0, 2.0], [0.0, 0.0], sample_weight=[3, 1]).item() == 1.75
    assert M.mse([1.0, 2.0], [0.0, 0.0], sample_weight=2.0).item() == 2.5
    with pytest.raises(ShapeError, match="a weight for each"):
        M.mse([1.0, 2.0], [0.0, 0.0], sample_weight=[1.0])
    with pytest.raises(OptionError, match="all weights of samples are zero"):
        M.mse([1.0, 2.0], [0.0, 0.0], sample_weight=[0, 0])
    with pytest.raises(NonFiniteError, match="sample_weight"):
        M.mse([1.0, 2.0], [0.0, 0.0], sample_weight=[float("nan"), 1])


def test_nothing_given_is_changed():
    p, t, w = np.array([0.2, 0.7]), np.array([0, 1]), np.array([1.0, 2.0])
    for f in (M.accuracy, M.f1, M.roc_auc, M.log_loss, M.calibration_error, M.mse, M.r2):
        f(p, t, sample_weight=w)
    assert (p == [0.2, 0.7]).all()
    assert (t == [0, 1]).all()
    assert (w == [1.0, 2.0]).all()
