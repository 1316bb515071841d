"""Ensembles of trees against ONNX Runtime, scikit-learn, and walks from node to node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.interop.onnx.one_node import agrees_with_runtime, one_node
from tests.interop.onnx.suite import graph_of, run_file

ML = "ai.onnx.ml"
X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
X[3, 1] = np.nan


@pytest.mark.slow
def test_cases_of_onnx() -> None:
    run_file("trees", values=2, gradients=0)


def forest(mode: str, trees: int = 4, depth: int = 3) -> tuple[dict[str, Any], list[Any]]:
    """Full trees with random splits, and their leaves."""
    rng = np.random.default_rng(1)
    nodes: dict[str, list[Any]] = {}
    leaves = []
    for tree in range(trees):
        for i in range(2 ** (depth + 1) - 1):
            is_leaf = i >= 2**depth - 1
            leaves += [(tree, i)] * is_leaf
            row = {
                "treeids": tree, "nodeids": i, "featureids": int(rng.integers(4)),
                "values": float(np.float32(rng.normal())), "modes": "LEAF" if is_leaf else mode,
                "truenodeids": 2 * i + 1, "falsenodeids": 2 * i + 2,
                "missing_value_tracks_true": int(rng.integers(2)),
            }  # fmt: skip
            for name, value in row.items():
                nodes.setdefault(f"nodes_{name}", []).append(value)
    return nodes, leaves


def regressor(mode: str, how: str) -> Any:
    nodes, leaves = forest(mode)
    rng = np.random.default_rng(2)
    return one_node(
        "TreeEnsembleRegressor", [("x", 1, ["N", 4])], domain=ML, n_targets=2,
        aggregate_function=how, base_values=[0.5, -1.0],
        target_treeids=[t for t, _ in leaves for _ in (0, 1)],
        target_nodeids=[i for _, i in leaves for _ in (0, 1)],
        target_ids=[0, 1] * len(leaves),
        target_weights=rng.normal(size=2 * len(leaves)).tolist(), **nodes,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
def test_regressors(mode: str) -> None:
    how = ["SUM", "AVERAGE", "MIN", "MAX"][len(mode) % 4]
    with rg.backend("reference"):
        agrees_with_runtime(regressor(f"BRANCH_{mode}", how), X)


def classifier(labels: list[int], ids: list[int], weights: Any, how: str) -> Any:
    nodes, leaves = forest("BRANCH_LEQ")
    return one_node(
        "TreeEnsembleClassifier", [("x", 1, ["N", 4])], 2, ML, post_transform=how,
        classlabels_int64s=labels, class_treeids=[t for t, _ in leaves],
        class_nodeids=[i for _, i in leaves], class_ids=ids, class_weights=weights.tolist(),
        **nodes,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_classifiers(how: str) -> None:
    weights = np.random.default_rng(3).normal(size=32).astype(np.float32)
    with rg.backend("reference"):
        several = classifier([3, 5, 9], [i % 3 for i in range(32)], np.abs(weights), how)
        agrees_with_runtime(several, X)
        agrees_with_runtime(classifier([4, 7], [0] * 32, weights, how), X)
        agrees_with_runtime(classifier([4, 7], [0] * 32, np.abs(weights) / 4, how), X)


@pytest.mark.slow
def test_a_forest_of_scikit_learn() -> None:
    """Its arrays in the operator of version 5."""
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4)).astype(np.float32)
    fitted = ensemble.RandomForestRegressor(5, max_depth=5, random_state=0)
    fitted.fit(x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2])
    attributes = as_version_5([t.tree_ for t in fitted.estimators_])
    g = graph_of(one_node("TreeEnsemble", [("x", 1, ["N", 4])], domain=ML, **attributes), "m")
    new = rng.normal(size=(50, 4)).astype(np.float32)
    np.testing.assert_allclose(g(new).numpy()[:, 0], fitted.predict(new), rtol=1e-4, atol=1e-5)


def as_version_5(trees: list[Any]) -> dict[str, Any]:
    from tests.interop.onnx.suite import onnx

    inner: dict[str, list[Any]] = {
        k: [] for k in ("featureids", "splits", "truenodeids", "falsenodeids", "trueleafs",
                        "falseleafs")
    }  # fmt: skip
    weights: list[float] = []
    roots = []
    for tree in trees:
        splits = np.flatnonzero(tree.children_left >= 0)
        leaf = np.flatnonzero(tree.children_left < 0)
        place: dict[Any, int] = {n: len(inner["splits"]) + i for i, n in enumerate(splits)}
        place |= {n: len(weights) + i for i, n in enumerate(leaf)}
        roots.append(place[0])
        weights += tree.value[leaf, 0, 0].tolist()
        inner["featureids"] += tree.feature[splits].tolist()
        inner["splits"] += tree.threshold[splits].tolist()
        for way, children in (("true", tree.children_left), ("false", tree.children_right)):
            inner[f"{way}nodeids"] += [place[n] for n in children[splits]]
            inner[f"{way}leafs"] += [int(n in leaf) for n in children[splits]]
    tensor = onnx.numpy_helper.from_array
    return {
        **{f"nodes_{k}": v for k, v in inner.items() if k != "splits"},
        "nodes_splits": tensor(np.asarray(inner["splits"], np.float32)),
        "nodes_modes": tensor(np.zeros(len(inner["splits"]), np.uint8)),
        "leaf_weights": tensor(np.asarray(weights, np.float32)),
        "leaf_targetids": [0] * len(weights), "tree_roots": roots, "n_targets": 1,
        "aggregate_function": 0,
    }  # fmt: skip


def test_trees_that_are_none() -> None:
    bad = regressor("BRANCH_LEQ", "SUM")
    children = next(a for a in bad.graph.node[0].attribute if a.name == "nodes_truenodeids")
    children.ints[1] = 0
    with pytest.raises(rg.FormatError, match="have a cycle"):
        graph_of(bad, "m")
    children.ints[1] = 1000
    with pytest.raises(rg.FormatError, match=r"no node 1000 \(tree 0\)"):
        graph_of(bad, "m")
    del children.ints[1]
    with pytest.raises(rg.FormatError, match="59 true"):
        graph_of(bad, "m")
    with pytest.raises(rg.FormatError, match="the mode 'BRANCH_ODD'"):
        graph_of(regressor("BRANCH_ODD", "SUM"), "m")
    texts = classifier([1], [0] * 32, X[:, 0].repeat(2)[:32], "NONE")
    (labels,) = [a for a in texts.graph.node[0].attribute if a.name == "classlabels_int64s"]
    labels.name = "classlabels_strings"
    with pytest.raises(rg.BackendError, match="labels that are texts"):
        graph_of(texts, "m")
