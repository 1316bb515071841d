"""Linear models and support vector machines against ONNX Runtime."""

from __future__ import annotations

from typing import Any

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


def machine(count: int, how: str, kernel: str, is_probability: bool) -> Any:
    """A classifier of so many classes, each with support vectors of its own."""
    rng = np.random.default_rng(count)
    owned = [2, 1, 3, 2][:count]
    total, pairs = sum(owned), count * (count - 1) // 2
    more: dict[str, Any] = {}
    if is_probability:
        more = {"prob_a": rng.normal(size=pairs).tolist(), "prob_b": [0.1] * pairs}
    return one_node(
        "SVMClassifier", ROWS, 2, ML, kernel_type=kernel, kernel_params=[0.5, 0.3, 3.0],
        post_transform=how, classlabels_ints=[3, 7, 5, 1][:count], vectors_per_class=owned,
        support_vectors=rng.normal(size=4 * total).tolist(), rho=rng.normal(size=pairs).tolist(),
        coefficients=rng.normal(size=total * (count - 1)).tolist(), **more,
    )  # fmt: skip


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_probability", [False, True])
def test_support_vectors_of_classes(count: int, is_probability: bool) -> None:
    cases = [("NONE", k) for k in ("LINEAR", "POLY", "SIGMOID")]
    cases += [(how, "RBF") for how in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")]
    with rg.backend("reference"):
        for how, kernel in cases:
            agrees_with_runtime(machine(count, how, kernel, is_probability), X, rtol=1e-4)


@pytest.mark.slow
def test_linear_scores_of_classes() -> None:
    """Labels go by the greatest score, of two classes by its sign, too."""
    with rg.backend("reference"):
        for labels in ([3, 7], [2, 4, 6]):
            for weights in (WEIGHTS, np.abs(WEIGHTS).tolist()):
                for shift in ([0.2], [0.1, -0.2, 0.3][: len(labels)]):
                    model = one_node(
                        "SVMClassifier", ROWS, 2, ML, classlabels_ints=labels, rho=shift,
                        kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
                        coefficients=weights[: 4 * len(labels)],
                    )  # fmt: skip
                    agrees_with_runtime(model, X)


@pytest.mark.slow
def test_probabilities_of_classes_have_slopes() -> None:
    g = graph_of(machine(3, "NONE", "RBF", True), "m")
    f = lambda x: g(x)[1][:, 0].sum()
    with rg.backend("reference"):
        slope = rg.grad(f)(X[:2].astype(np.float32)).numpy()
        by = np.zeros((2, 4), np.float32)
        by[1, 2] = 1e-2
        there = (f(X[:2] + by).item() - f(X[:2] - by).item()) / 2e-2
    assert slope[1, 2] == pytest.approx(there, rel=0.05, abs=1e-4)


def test_classes_that_do_not_fit() -> None:
    model = one_node(
        "SVMClassifier", ROWS, 2, ML, classlabels_ints=[1, 2], vectors_per_class=[1, 1],
        support_vectors=WEIGHTS[:8], coefficients=WEIGHTS[:2],
    )  # fmt: skip
    with pytest.raises(rg.FormatError, match="no coefficients, or no rho"):
        graph_of(model, "m")
    model = one_node(
        "SVMClassifier", ROWS, 2, ML, classlabels_ints=[1, 2, 3], vectors_per_class=[1, 1],
        support_vectors=WEIGHTS[:8], coefficients=WEIGHTS[:4], rho=[0.1],
    )  # fmt: skip
    with pytest.raises(rg.FormatError, match=r"of 3 classes .* do not fit"):
        graph_of(model, "m")


def test_coefficients_that_do_not_fit() -> None:
    model = one_node("LinearRegressor", ROWS, domain=ML, targets=5, coefficients=WEIGHTS)
    with pytest.raises(rg.FormatError, match="12 coefficients cannot stand in 5 rows"):
        graph_of(model, "m")
    model = one_node("LinearClassifier", ROWS, 2, ML, classlabels_ints=[1, 2], coefficients=WEIGHTS)
    with pytest.raises(rg.FormatError, match="2 classes and scores of 3"):
        graph_of(model, "m")
