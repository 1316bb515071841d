"""Networks as numbers and as JSON."""

import numpy as np

from retrograd.verify import checker
from retrograd.verify.network import Affine, Relu, ReluNetwork

NET = ReluNetwork(
    2,
    (
        Affine(((0, np.array([[1.0, 0.1], [0.0, -3.0]])),), np.array([0.5, 0.0]), "float32"),
        Relu(1),
        Affine(((0, np.array([[1.0, 0.0]])), (2, np.array([[2.0, 1.0]]))), np.array([-1.0])),
    ),
)


def test_values_sizes_and_structure():
    x = np.array([[1.0, 2.0], [-4.0, 1.0]])
    hidden = np.maximum(np.stack([x[:, 0] + 0.1 * x[:, 1] + 0.5, -3 * x[:, 1]], 1), 0)
    expected = x[:, :1] + 2 * hidden[:, :1] + hidden[:, 1:] - 1
    np.testing.assert_allclose(NET(x), expected)
    assert NET.sizes == [2, 2, 2, 1]
    assert NET.relus == [2]
    assert NET.source(2) == 1
    assert NET.structure == (("affine", 0), ("relu", 1), ("affine", 0, 2))


def test_json_is_exact():
    """The checker reads the same numbers, as integers of one scale."""
    read = checker.read_network(NET.to_json())
    assert read.sizes == NET.sizes
    for step, own in zip(read.steps, NET.steps, strict=True):
        if isinstance(own, Relu):
            assert step == checker.ReluStep(own.source)
            continue
        assert isinstance(step, checker.AffineStep)
        assert step.dtype == own.dtype
        assert [b / 2**read.scale for b in step.bias] == own.bias.tolist()
        for (source, rows), (v, w) in zip(step.terms, own.terms, strict=True):
            assert source == v
            for (columns, weights), row in zip(rows, w, strict=True):
                full = np.zeros(len(row))
                full[columns] = [x / 2**read.scale for x in weights]
                np.testing.assert_array_equal(full, row)


def test_the_hash_is_that_of_the_weights():
    other = ReluNetwork(2, (*NET.steps[:2], Affine(NET.steps[2].terms, np.array([-1.0 - 2**-52]))))
    assert NET.digest() == ReluNetwork(2, NET.steps).digest() != other.digest()
