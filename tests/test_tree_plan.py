import numpy as np
import pytest

from retrograd import nn, pytree
from retrograd.tree_plan import Static


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1, True), (1, 1.0, False), (True, 1, False), ("a", "a", True),
        (np.arange(3), np.arange(3), True), (np.arange(3), np.arange(3.0), False),
        ([1], [1], True),
    ],
)  # fmt: skip
def test_configuration_is_compared_by_type_and_value(a, b, same):
    assert (Static(a) == Static(b)) is same
    assert hash(Static(a)) == hash(Static(a))


def test_structures_of_modules_are_compared_by_what_they_hold():
    def structure(features: int, p: float):
        return pytree.flatten(nn.Sequential(nn.Linear(2, features), nn.Dropout(p)))[1]

    assert structure(3, 0.5) == structure(3, 0.5)
    assert structure(3, 0.5) != structure(3, 0.25)
