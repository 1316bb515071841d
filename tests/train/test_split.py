import numpy as np
import pytest

from retrograd.train.split import stratified_split


def test_each_class_is_split_and_no_place_is_in_two_parts():
    labels = np.repeat([0, 5, 7], [100, 20, 3])
    learn, look, test = stratified_split(labels, 0)
    assert sorted([*learn, *look, *test]) == list(range(123))
    for part in (look, test):
        assert [int((labels[part] == i).sum()) for i in (0, 5, 7)] == [15, 3, 1]
    assert not np.array_equal(test, stratified_split(labels, 1)[2])
    assert np.array_equal(test, stratified_split(labels, 0)[2])


@pytest.mark.parametrize("labels", [[], [3], [1, 1, 2, 2]])
def test_of_a_class_of_two_none_is_held_out(labels):
    learn, look, test = stratified_split(np.array(labels, np.int64), 0)
    assert learn.tolist() == list(range(len(labels)))
    assert len(look) == len(test) == 0
