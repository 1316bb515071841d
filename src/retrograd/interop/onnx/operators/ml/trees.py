"""Ensembles of trees: all rows and trees go down one level at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.interop.onnx.operators.ml.scores import (
    ML,
    classes,
    decided,
    floats,
    of_two,
    transformed,
    values_of,
)  # fmt: skip
from retrograd.interop.onnx.registry import NodeCall, rule

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")  # BRANCH_...; by number since version 5
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_TESTS = (rg.less_equal, rg.less, rg.greater_equal, rg.greater, rg.equal, rg.not_equal)


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees in arrays; a leaf is its own child."""

    roots: Any
    features: Any
    modes: Any  # places in MODES
    splits: Any
    true: Any
    false: Any
    missing: Any  # whether NaN goes the way of true
    members: Any  # sets of numbers, by node and filled up with NaN

    def depth(self) -> int:
        """Levels below the roots; `FormatError` where a node is below itself."""
        at, levels = np.unique(self.roots), 0
        while True:
            inner = at[(self.true[at] != at) | (self.false[at] != at)]
            if not inner.size:
                return levels
            if levels > len(self.true):
                raise FormatError("the trees of an ensemble have a cycle")
            at = np.unique(np.concatenate([self.true[inner], self.false[inner]]))
            levels += 1


def leaves(trees: Trees, x: Any) -> Any:
    """For each row of x and each tree the node where it ends."""
    count = x.shape[1]
    if np.any((trees.features < 0) | (trees.features >= count)):
        raise FormatError(f"a tree asks for a feature that x, with {count}, does not have")
    at = rg.broadcast_to(rg.asarray(trees.roots), (x.shape[0], len(trees.roots)))
    kinds = np.unique(trees.modes)
    for _ in range(trees.depth()):
        value = rg.take_along_axis(x, rg.take(rg.asarray(trees.features), at), axis=1)
        mode = rg.take(rg.asarray(trees.modes), at)
        split = rg.take(rg.asarray(trees.splits), at)
        holds = rg.take(rg.asarray(trees.missing), at) & rg.isnan(value)
        for kind in kinds.tolist():
            holds = holds | ((mode == kind) & _test(trees, kind, value, split, at))
        true, false = (rg.take(rg.asarray(way), at) for way in (trees.true, trees.false))
        at = rg.where(holds, true, false)
    return at


def _test(trees: Trees, kind: int, value: Any, split: Any, at: Any) -> Any:
    if kind < len(_TESTS):
        return _TESTS[kind](value, split)
    return rg.any(value[..., None] == rg.take(rg.asarray(trees.members), at, axis=0), axis=-1)


def gathered(at: Any, trees: Trees, votes: Any, how: str) -> Any:
    """What the leaves of all trees say: `votes` are leaves, targets, weights, and how many targets
    there are."""
    leaf, target, weight, count = votes
    if np.any((target < 0) | (target >= count)):
        raise FormatError(f"a leaf votes for a target that is none of {count}")
    bound = np.finfo(weight.dtype).max
    empty = {"MIN": bound, "MAX": -bound}.get(how, 0)
    table = np.full((len(trees.true), count), empty, weight.dtype)
    join = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
    join.at(table, (leaf, target), weight)
    said = rg.take(rg.asarray(table), at, axis=0)
    match how:
        case "SUM":
            return rg.sum(said, axis=1)
        case "AVERAGE":
            return rg.sum(said, axis=1) / len(trees.roots)
        case "MIN":
            return rg.min(said, axis=1)
        case "MAX":
            return rg.max(said, axis=1)
    raise FormatError(f"aggregate_function is {how!r:.40}, which ONNX does not have")


def _equally_long(call: NodeCall, **arrays: Any) -> None:
    if len({len(a) for a in arrays.values()}) > 1:
        sizes = ", ".join(f"{len(a)} {name}" for name, a in arrays.items())
        raise FormatError(f"{call.operator} has {sizes}; there must be as many of each")


def _ints(call: NodeCall, name: str) -> Any:
    return np.asarray(call.get(name), np.int64)


def _places(ids: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    return {key: i for i, key in enumerate(ids)}


def _place(places: Any, key: tuple[int, int]) -> int:
    if key not in places:
        raise FormatError(f"a tree has no node {key[1]} (tree {key[0]}), which something names")
    return int(places[key])


def _by_id(call: NodeCall, x: Any) -> tuple[Trees, Any]:
    """The trees up to version 3, whose nodes have numbers within their trees; and their places."""
    tree, number = _ints(call, "nodes_treeids").tolist(), _ints(call, "nodes_nodeids").tolist()
    modes = call.get("nodes_modes")
    true, false = (_ints(call, f"nodes_{way}nodeids") for way in ("true", "false"))
    features = _ints(call, "nodes_featureids")
    splits = values_of(call, "nodes_values")
    missing = np.asarray(call.get("nodes_missing_value_tracks_true", None) or [0] * len(modes))
    _equally_long(
        call, trees=tree, nodes=number, modes=modes, true=true, false=false, features=features,
        values=splits, missing=missing,
    )  # fmt: skip
    places = _places(list(zip(tree, number, strict=True)))
    own = np.arange(len(modes))
    is_leaf = np.asarray([m == "LEAF" for m in modes])
    kinds = np.asarray([0 if m == "LEAF" else _mode(m) for m in modes])
    ways = [
        [i if leaf else _place(places, (t, w)) for i, leaf, t, w in zip(own, is_leaf, tree, way)]  # noqa: B905
        for way in (true.tolist(), false.tolist())
    ]
    first = np.sort(np.unique(tree, return_index=True)[1])
    made = Trees(
        first, np.where(is_leaf, 0, features), kinds, splits.astype(x.dtype.dtype),
        np.asarray(ways[0]), np.asarray(ways[1]), missing.astype(bool), np.zeros((len(modes), 0)),
    )  # fmt: skip
    return made, places


def _mode(text: str) -> int:
    name = text.removeprefix("BRANCH_")
    if name not in MODES[:6]:
        raise FormatError(f"a node of a tree has the mode {text!r:.40}, which ONNX does not have")
    return MODES.index(name)


def _votes(call: NodeCall, places: Any, kind: str, count: int) -> Any:
    weights = values_of(call, f"{kind}_weights")
    names = (f"{kind}_{what}" for what in ("treeids", "nodeids", "ids"))
    trees, nodes, targets = (_ints(call, name) for name in names)
    _equally_long(call, trees=trees, nodes=nodes, targets=targets, weights=weights)
    at = [_place(places, key) for key in zip(trees.tolist(), nodes.tolist(), strict=True)]
    return np.asarray(at, np.int64), targets, weights, count


@rule("TreeEnsembleRegressor", domain=ML)
def regressor(call: NodeCall, x: Any) -> Any:
    x = floats(x)
    trees, places = _by_id(call, x)
    votes = _votes(call, places, "target", call.get("n_targets"))
    y = gathered(leaves(trees, x), trees, votes, call.get("aggregate_function", "SUM"))
    base = values_of(call, "base_values")
    y = y if base is None else y + rg.asarray(base)
    return transformed(y, call.get("post_transform", "NONE")).astype(rg.float32)


@rule("TreeEnsembleClassifier", domain=ML)
def classifier(call: NodeCall, x: Any) -> Any:
    """Labels and scores. With votes for one class alone the score is that of the second of two.

    Source: ONNX Runtime, whose binary case differs from ONNX's reference where all weights are
    positive: the scores are probabilities already.
    """
    x, labels = floats(x), classes(call, "classlabels_int64s")
    trees, places = _by_id(call, x)
    votes = _votes(call, places, "class", len(labels))
    y = gathered(leaves(trees, x), trees, votes, "SUM")
    base = values_of(call, "base_values")
    how = call.get("post_transform", "NONE")
    if len(labels) == 2 and len(np.unique(votes[1])) == 1:
        score = y[:, int(votes[1][0])] + (0 if base is None else float(base[-1]))
        return _binary(score, labels, bool(np.all(votes[2] >= 0)), how)
    y = y if base is None else y + rg.asarray(base)
    y = y.astype(rg.float32)
    return decided(labels, y), transformed(y, how)


def _binary(score: Any, labels: Any, is_probability: bool, how: str) -> Any:
    score = score.astype(rg.float32)
    chosen = rg.where(score > (0.5 if is_probability else 0.0), int(labels[1]), int(labels[0]))
    return chosen, of_two(score, how, is_probability)


@rule("TreeEnsemble", domain=ML)
def ensemble(call: NodeCall, x: Any) -> Any:
    """Since version 5: inner nodes and leaves stand apart."""
    weights = np.asarray(call.get("leaf_weights"))
    trees, inner = _apart(call, len(weights))
    targets = _ints(call, "leaf_targetids")
    _equally_long(call, targets=targets, weights=weights)
    own = inner + np.arange(len(weights))
    votes = own, targets, weights, call.get("n_targets")
    how = _named(AGGREGATES, call.get("aggregate_function", 1), "aggregate_function")
    y = gathered(leaves(trees, x), trees, votes, how)
    after = _named(TRANSFORMS, call.get("post_transform", 0), "post_transform")
    return transformed(y, after).astype(x.dtype)


def _named(names: Sequence[str], number: int, what: str) -> str:
    if not 0 <= number < len(names):
        raise FormatError(f"{what} is {number}, which ONNX does not have")
    return names[number]


def _apart(call: NodeCall, count: int) -> tuple[Trees, int]:
    """The trees with the leaves behind the inner nodes; and how many of these there are."""
    modes = np.asarray(call.get("nodes_modes"), np.int64)
    n = len(modes)
    features, splits = _ints(call, "nodes_featureids"), np.asarray(call.get("nodes_splits"))
    missing = np.asarray(call.get("nodes_missing_value_tracks_true", None) or [0] * n, bool)
    ways = []
    for way in ("true", "false"):
        ids, is_leaf = _ints(call, f"nodes_{way}nodeids"), _ints(call, f"nodes_{way}leafs")
        _equally_long(
            call, modes=modes, features=features, splits=splits, missing=missing, ids=ids,
            leafs=is_leaf,
        )  # fmt: skip
        limit = np.where(is_leaf, count, n)
        if np.any((ids < 0) | (ids >= limit)):
            raise FormatError("a node of a tree has a child that is not there")
        ways.append(np.concatenate([np.where(is_leaf, n + ids, ids), n + np.arange(count)]))
    if np.any((modes < 0) | (modes >= len(MODES))):
        raise FormatError(f"a node of a tree has a mode that is none of 0 to {len(MODES) - 1}")
    roots = _ints(call, "tree_roots")
    if np.any((roots < 0) | (roots >= n)):
        raise FormatError("a tree has a root that is not there")
    members = _members(call, modes, splits.dtype)
    filled = [np.concatenate([a, np.zeros((count, *a.shape[1:]), a.dtype)])
              for a in (features, modes, splits, missing, members)]  # fmt: skip
    features, modes, splits, missing, members = filled
    return Trees(roots, features, modes, splits, ways[0], ways[1], missing, members), n


def _members(call: NodeCall, modes: Any, dtype: Any) -> Any:
    """The sets, which stand one behind the other with NaN after each, by node."""
    at = np.flatnonzero(modes == MODES.index("MEMBER"))
    found = call.get("membership_values", None)
    flat = np.asarray([] if found is None else found, dtype)
    ends = np.flatnonzero(np.isnan(flat))
    if len(ends) != len(at):
        raise FormatError(f"{len(at)} nodes of trees ask for a set, and there are {len(ends)} sets")
    sets = [part[~np.isnan(part)] for part in np.split(flat, ends)][: len(at)]
    table = np.full((len(modes), max(map(len, sets), default=0)), np.nan, dtype)
    for i, values in zip(at, sets, strict=True):
        table[i, : len(values)] = values
    return table
