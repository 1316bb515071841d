"""Trees of cases: they cover the region, and each leaf has its proof."""

import time

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.branch_and_bound import BranchAndBound
from retrograd.verify.problem import problem_of
from tests.verify.networks import minimum, mlp, run

verify = rg.verify


@pytest.mark.slow
@pytest.mark.parametrize("split", ["relu", "input"])
def test_every_input_is_in_a_leaf_whose_function_is_a_bound(split):
    f, layers = mlp([3, 8, 8, 1], 2)
    box = verify.Box(np.full(3, -1, np.float32), np.full(3, 1, np.float32))
    random = np.random.default_rng(0)
    x = random.random((300, 3)) * 2 - 1
    y = run(layers, x)[:, 0]
    least = minimum(layers, box.lower, box.upper, [1.0])[0] - 0.002
    with rg.backend("reference"):
        problem = problem_of(f, verify.Property(box, lambda v: v[0] > least))
        search = BranchAndBound(problem, 10, split)
        search.start()
        until = time.monotonic() + 60
        while not (proof := search.run(until, 10**6)).done and time.monotonic() < until:
            proof.points.clear()  # these only look like counterexamples
    assert proof.done
    (tree,) = proof.trees
    first = layers[0][0].astype(np.float64), layers[0][1]
    second = layers[1][0].astype(np.float64), layers[1][1]
    found = 0
    for point, value in zip(x, y, strict=True):
        arguments = {1: point @ first[0] + first[1]}
        arguments[3] = np.maximum(arguments[1], 0) @ second[0] + second[1]
        node = tree
        while node.split is not None:
            kind, where, which = node.split
            above = arguments[where][which] >= 0 if kind == "relu" else point[where] >= which
            node = node.children[int(above)]
        assert node.leaf is not None
        bound = node.leaf.coefficients @ point + node.leaf.constant
        assert 0 < bound <= value - least + 1e-9
        found += 1
    assert found == len(x)
    assert proof.leaves > 1
