"""Datasets: samples by number, views of them, and what is refused."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    ConcatDataset,
    Dataset,
    MapDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
    sample_generator,
)
from retrograd.data.dataset import fingerprint, gather_of

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6)


def test_samples_have_the_structure_of_the_arrays():
    x, y = ArrayDataset(X, Y)[-1]
    assert (x.tolist(), y) == ([10.0, 11.0], 5)
    assert TensorDataset is ArrayDataset
    assert ArrayDataset({"x": X, "y": rg.tensor(Y)})[1]["y"] == 1
    assert ArrayDataset(x={"a": X, "b": Y})[2]["x"]["b"] == 2
    assert ArrayDataset(X)[0][0].tolist() == [0.0, 1.0]
    assert ArrayDataset.from_tree(X)[0].tolist() == [0.0, 1.0]
    assert ArrayDataset.from_tree([4, 5])[1] == 5
    assert ArrayDataset.from_tree((X, {"y": Y}))[3][1]["y"] == 3
    assert [s[1] for s in ArrayDataset(X, Y)] == list(range(6))
    assert ArrayDataset(X, ["a", "b", "c", "d", "e", "f"])[1][1] == "b"
    assert ArrayDataset(X, Y)[2:4][1].tolist() == [2, 3]


def test_arrays_that_make_no_dataset():
    with pytest.raises(rg.ShapeError, match=r"equally many rows, not \[0\]: 6, \[1\]: 5"):
        ArrayDataset(X, Y[:5])
    with pytest.raises(rg.ShapeError, match=r"\['x'\]: 6, \['y'\]: 5"):
        ArrayDataset(x=X, y=Y[:5])
    with pytest.raises(rg.ArgumentError, match="takes arrays"):
        ArrayDataset()
    with pytest.raises(rg.ArgumentError, match="has no arrays"):
        ArrayDataset({})
    with pytest.raises(rg.ShapeError, match="has no axis"):
        ArrayDataset(3.0)


@pytest.mark.parametrize(
    ("dataset", "count"),
    [
        (ArrayDataset(X, Y), 6),
        (Subset(ArrayDataset(X, Y), [1, 2]), 2),
        (ConcatDataset([range(3), range(2)]), 5),
        (MapDataset(Subset(range(6), [3, 4]), lambda x: x), 2),
    ],
)
def test_indices_from_the_end_and_outside(dataset, count):
    assert len(dataset) == count
    assert str(dataset[-1]) == str(dataset[count - 1])
    assert str(dataset[-count]) == str(dataset[0])
    for index in (count, -count - 1):
        with pytest.raises(IndexError):
            dataset[index]
    assert len(list(dataset)) == count


def test_subsets_of_subsets_are_gathered_at_once():
    inner = Subset(ArrayDataset(X, Y), [5, 3, 1])
    outer = Subset(inner, np.array([2, 0]))
    gather = gather_of(outer)
    assert gather is not None
    assert [a.tolist() for a in gather(np.array([1, 0]))] == [[[10, 11], [2, 3]], [5, 1]]
    assert [int(s[1]) for s in outer.__getitems__([1, 0])] == [5, 1]
    assert gather_of(MapDataset(outer, lambda s: s)) is None

    class Changed(ArrayDataset):
        def __getitem__(self, index):
            return 0

    assert gather_of(Changed(X)) is None


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([6], "index 6 of a dataset that has 6 samples"),
        ([-7], "index -7"),
        ([0.5], "a list of indices, not float64"),
        ([[1]], r"shape \(1, 1\)"),
        (np.ones(6, bool), "a mask"),
    ],
)
def test_subsets_that_are_none(indices, message):
    with pytest.raises(rg.RetrogradError, match=message):
        Subset(ArrayDataset(X), indices)
    assert len(Subset(ArrayDataset(X), [])) == 0


def test_concatenated():
    joined = ArrayDataset(X, Y) + Subset(ArrayDataset(X, Y), [0])
    assert isinstance(joined, ConcatDataset)
    assert (len(joined), joined.cumulative_sizes, joined[6][1]) == (7, [6, 7], 0)
    with pytest.raises(rg.ArgumentError, match="dataset 1, generator, has no samples by number"):
        ConcatDataset([range(3), (i for i in range(3))])
    with pytest.raises(rg.ArgumentError, match="at least one"):
        ConcatDataset([])


def test_side_by_side():
    both = StackDataset(ArrayDataset(Y), "abcdef")
    assert (both[-1], len(both)) == (((5,), "f"), 6)
    assert StackDataset(a=Y, b="abcdef")[1] == {"a": 1, "b": "b"}
    assert fingerprint(both) != fingerprint(StackDataset(ArrayDataset(-Y), "abcdef"))
    with pytest.raises(rg.ShapeError, match=r"have one length, not \[6, 2\]"):
        StackDataset(Y, "ab")
    with pytest.raises(rg.ArgumentError, match="takes datasets"):
        StackDataset()
    with pytest.raises(IndexError):
        both[6]


def test_mapped_parts():
    assert MapDataset([{"a": 1, "b": 2}], lambda x: x + 1, key="b")[0] == {"a": 1, "b": 3}
    assert MapDataset([[1, 2]], lambda x: -x, key=1)[0] == [1, -2]
    with pytest.raises(rg.ArgumentError, match=r"key='c' is no part of a sample, \['a'\]"):
        MapDataset([{"a": 1}], lambda x: x, key="c")[0]
    with pytest.raises(rg.ArgumentError, match="f is a function"):
        MapDataset([1], 3)  # type: ignore[arg-type]


def test_random_functions_outside_of_a_loader_are_functions_of_the_index():
    given = MapDataset(range(4), lambda i, rng: (i, rng.random()))
    asked = MapDataset(range(4), lambda i: (i, sample_generator().random()))
    assert [given[i] for i in range(4)] == [asked[i] for i in range(4)] == list(given)
    assert given[-1] == given[3]
    assert len({r for _, r in given}) == 4


def test_random_split():
    parts = random_split(ArrayDataset(X, Y), [4, 2], seed=3)
    assert [len(p) for p in parts] == [4, 2]
    assert sorted(int(s[1]) for p in parts for s in p) == list(range(6))
    again = random_split(ArrayDataset(X, Y), [4, 2], seed=3)
    assert [p.indices.tolist() for p in again] == [p.indices.tolist() for p in parts]
    other = random_split(range(100), [0.5, 0.5], seed=4)
    assert other[0].indices.tolist() != random_split(range(100), [50, 50])[0].indices.tolist()
    # Rounded down, and what is left goes round, as in PyTorch.
    assert [len(p) for p in random_split(range(11), [0.3, 0.3, 0.4])] == [4, 3, 4]
    for lengths in ([3, 2], [0.5, 0.2], [7, -1]):
        with pytest.raises(rg.OptionError, match="random_split"):
            random_split(range(6), lengths)


@pytest.mark.torch
@pytest.mark.parametrize("fractions", [[0.3, 0.3, 0.4], [0.5, 0.5], [0.1, 0.9]])
@pytest.mark.parametrize("n", [7, 10, 11])
def test_parts_have_the_sizes_of_pytorch(n, fractions):
    from torch.utils.data import random_split as theirs

    expected = [len(p) for p in theirs(range(n), fractions)]
    assert [len(p) for p in random_split(range(n), fractions)] == expected


def test_fingerprints_tell_datasets_apart():
    changed = X.copy()
    changed[3] += 1
    found = [
        fingerprint(d)
        for d in (
            ArrayDataset(X, Y),
            ArrayDataset(changed, Y),
            ArrayDataset(X.astype(np.float32), Y),
            ArrayDataset(x=X, y=Y),
            Subset(ArrayDataset(X, Y), [1, 2]),
            Subset(ArrayDataset(X, Y), [2, 1]),
            MapDataset(ArrayDataset(X, Y), abs),
            ConcatDataset([ArrayDataset(X, Y)]),
            range(6),
        )
    ]
    assert len({str(f) for f in found}) == len(found)
    assert fingerprint(ArrayDataset(X.copy(), Y)) == found[0]


def test_a_class_without_its_methods():
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        Dataset()[0]
