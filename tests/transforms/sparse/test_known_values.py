"""What is zero whatever the inputs are: never more than is."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.transforms.sparse.known_values import KnownValues

HALF = np.tril(np.ones((4, 4)))
EYE = np.eye(4)

# Matrices made of a vector of four elements, and whether all that is not said to be zero is not.
MATRICES = {
    "a diagonal": (lambda x: rg.diag(x) * rg.exp(x), True),
    "a half": (lambda x: rg.outer(x, x) * HALF, True),
    "a choice": (lambda x: rg.where(HALF > 0, rg.outer(x, x), 0.0), True),
    "sums": (lambda x: rg.diag(x) + rg.sin(rg.outer(x, x) * EYE[::-1]), True),
    "what is one at zero": (lambda x: rg.cos(rg.diag(x)), True),
    "products": (lambda x: (rg.outer(x, x) * HALF) @ rg.diag(x), True),
    "sums of rows": (lambda x: rg.sum(rg.diag(x)[:, :2], axis=1), True),
    "movement": (lambda x: rg.pad(rg.diag(x)[1:, ::-1], 1), True),
    "rows": (lambda x: rg.diag(x)[np.array([3, 0, 0])], True),
    "added": (lambda x: rg.zeros((4, 4), dtype="float64").at[np.array([1, 1])].add(HALF[:2]), True),
    "a slope": (rg.jacrev(lambda x: rg.sin(x) * x), True),
    "a slope, forward": (rg.jacfwd(lambda x: x[1:] * x[:-1]), True),
    "of an op that is not known": (lambda x: rg.linalg.expm(rg.diag(x)), False),
    "a quotient": (lambda x: rg.diag(x) / rg.outer(x, x), False),
}


@pytest.mark.parametrize("name", MATRICES)
def test_zeros_are_zero(name):
    f, exact = MATRICES[name]
    x = np.random.default_rng(0).uniform(0.5, 1.5, size=4)
    graph = rg.trace(f, x)  # type: ignore[arg-type]
    found = KnownValues({}).support(graph.outputs[0])
    value = graph(x).numpy()
    where = np.ones(value.shape, bool) if found is None else found
    assert not value[~where].any()
    if exact:
        np.testing.assert_array_equal(where, value != 0)


def test_values_of_what_depends_on_nothing():
    graph = rg.trace(lambda x: (x * rg.arange(3), rg.arange(3) * 2), np.ones(3))
    known = KnownValues({})
    np.testing.assert_array_equal(known(graph.outputs[1]), [0, 2, 4])
    assert known(graph.outputs[0]) is None
