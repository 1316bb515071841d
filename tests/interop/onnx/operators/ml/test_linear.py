"""Linear models and support vector machines against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.one_node import agrees_with_runtime, one_node
from tests.interop.onnx.suite import graph_of

ML = "ai.onnx.ml"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 4)).astype(np.float32)
WEIGHTS = RNG.normal(size=12).tolist()
ROWS = [("x", 1, ["N", 4])]


def test_linear_regressor_and_its_gradient() -> None:
    model = one_node(
        "LinearRegressor", ROWS, domain=ML, targets=3, coefficients=WEIGHTS,
        intercepts=[1.0, 2.0, 3.0],
    )  # fmt: skip
    agrees_with_runtime(model, X)
    g = graph_of(model, "m")
    slope = rg.grad(lambda x: g(x).sum())(X)
    expected = np.asarray(WEIGHTS, np.float32).reshape(3, 4).sum(0)
    np.testing.assert_allclose(slope.numpy(), np.tile(expected, (20, 1)), rtol=1e-5)


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_classifier(how: str) -> None:
    with rg.backend("reference"):
        for rows, labels in ((3, [2, 4, 6]), (1, [0, 1]), (2, [5, 3])):
            model = one_node(
                "LinearClassifier", ROWS, 2, ML, post_transform=how, classlabels_ints=labels,
                coefficients=WEIGHTS[: 4 * rows], intercepts=[0.1, -0.2, 0.3][:rows],
            )  # fmt: skip
            agrees_with_runtime(model, X)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    with rg.backend("reference"):
        for one_class in (0, 1):
            model = one_node(
                "SVMRegressor", ROWS, domain=ML, kernel_type=kernel, kernel_params=[0.5, 0.3, 3.0],
                n_supports=3, support_vectors=WEIGHTS, coefficients=[0.7, -1.1, 0.4], rho=[0.2],
                one_class=one_class,
            )  # fmt: skip
            agrees_with_runtime(model, X, rtol=1e-4)


def test_coefficients_that_do_not_fit() -> None:
    model = one_node("LinearRegressor", ROWS, domain=ML, targets=5, coefficients=WEIGHTS)
    with pytest.raises(rg.FormatError, match="12 coefficients cannot stand in 5 rows"):
        graph_of(model, "m")
    model = one_node("LinearClassifier", ROWS, 2, ML, classlabels_ints=[1, 2], coefficients=WEIGHTS)
    with pytest.raises(rg.FormatError, match="2 classes and scores of 3"):
        graph_of(model, "m")
