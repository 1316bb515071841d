"""Loaders: which batches an epoch has, and that a resumed one goes on to the bit."""

import copy
import itertools
import json
import pickle
from typing import Any, cast

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import (
    ArrayDataset,
    BatchSampler,
    DataLoader,
    MapDataset,
    WeightedRandomSampler,
)
from tests.data.loaders import LOADERS, N, Stream, X, Y, everything, plain


def test_batches_of_arrays():
    batches = list(DataLoader(ArrayDataset(X, Y), batch_size=4))
    assert [x.shape for x, _ in batches] == [(4, 2), (4, 2), (3, 2)]
    assert rg.concat([x for x, _ in batches]).tolist() == X.tolist()
    assert all(isinstance(b, rg.Tensor) and b.dtype is rg.int64 for _, b in batches)
    assert len(everything(DataLoader(ArrayDataset(X, Y)))) == N
    (named,) = DataLoader(ArrayDataset(x=X, y={"z": Y}), batch_size=N)
    assert named["y"]["z"].tolist() == Y.tolist()
    (texts,) = DataLoader(ArrayDataset(["a", "b"]), batch_size=2)
    assert texts == (["a", "b"],)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 11, 20])
def test_the_length_is_the_number_of_batches(batch_size, drop_last):
    for loader in (
        DataLoader(ArrayDataset(X), batch_size, drop_last=drop_last),
        DataLoader(range(N), batch_size, drop_last=drop_last, shuffle=True),
        DataLoader(range(N), batch_sampler=BatchSampler(range(N), batch_size, drop_last)),
        DataLoader(Stream(), batch_size, drop_last=drop_last),
    ):
        batches = everything(loader)
        assert (
            len(batches) == len(loader) == (N // batch_size if drop_last else -(-N // batch_size))
        )


def test_every_epoch_has_another_order_which_is_reproducible():
    loader = DataLoader(ArrayDataset(Y), batch_size=3, shuffle=True, seed=5)
    first, second = everything(loader), everything(loader)
    assert first != second
    assert sorted(itertools.chain.from_iterable(b for (b,) in first)) == Y.tolist()
    again = DataLoader(ArrayDataset(Y), batch_size=3, shuffle=True, seed=5)
    assert [everything(again), everything(again)] == [first, second]
    again.set_epoch(1)
    assert everything(again) == second
    other = DataLoader(ArrayDataset(Y), batch_size=3, shuffle=True, seed=6)
    assert everything(other) != first
    # What samples are made of does not matter to their order.
    one_by_one = DataLoader([(y,) for y in Y], batch_size=3, shuffle=True, seed=5)
    assert everything(one_by_one) == first


def test_two_iterators_at_once_are_two_epochs():
    loader = DataLoader(range(N), batch_size=3, shuffle=True)
    pairs = list(zip(loader, loader, strict=True))
    again = DataLoader(range(N), batch_size=3, shuffle=True)
    assert [plain(a) for a, _ in pairs] == everything(again)
    assert [plain(b) for _, b in pairs] == everything(again)


def test_an_epoch_that_was_left_is_followed_by_the_next():
    loader, other = (DataLoader(range(N), batch_size=3, shuffle=True) for _ in range(2))
    for _ in loader:
        break
    everything(other)
    assert everything(loader) == everything(other)


def check_resumed_at_every_position(make):
    """A loader that is given a state goes on as the one it was saved by, for two epochs."""
    expected = make()
    epochs = [everything(expected) for _ in range(3)]
    for epoch in (0, 1):
        for position in range(len(epochs[epoch]) + 1):
            saved = make()
            for _ in range(epoch):
                everything(saved)
            iterator = iter(saved)
            taken = [plain(b) for b in itertools.islice(iterator, position)]
            state = json.loads(json.dumps(saved.state_dict()))
            assert taken + [plain(b) for b in iterator] == epochs[epoch]
            resumed = make()
            resumed.load_state_dict(pickle.loads(pickle.dumps(state)))
            assert resumed.state_dict() == state
            assert everything(resumed) == epochs[epoch][position:]
            assert everything(resumed) == epochs[epoch + 1]
    return epochs


@pytest.mark.parametrize("name", LOADERS)
def test_loaders_resumed_at_every_position(name):
    first, second, _ = check_resumed_at_every_position(LOADERS[name])
    assert (first == second) == (name in ("in order", "concatenated in order"))


def test_between_epochs_a_state_is_that_of_the_next():
    loader = LOADERS["random"]()
    fresh = loader.state_dict()
    assert (fresh["epoch"], fresh["batch"]) == (0, 0)
    first = everything(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (1, 0)
    resumed = LOADERS["random"](seed=99)
    resumed.load_state_dict(state)
    assert everything(resumed) == everything(loader)
    resumed.load_state_dict(fresh)
    assert everything(resumed) == first


def test_a_sampler_that_cannot_be_drawn_again_is_kept_in_the_state():
    class Once:
        def __iter__(self):
            return iter(np.random.default_rng().permutation(N))

    make = lambda: DataLoader(ArrayDataset(Y), 2, sampler=Once())
    saved = make()
    iterator = iter(saved)
    next(iterator)
    state = json.loads(json.dumps(saved.state_dict()))
    resumed = make()
    resumed.load_state_dict(state)
    assert everything(resumed) == [plain(b) for b in iterator]


def test_copies_begin_where_the_next_epoch_does():
    loader = DataLoader(range(N), 3, shuffle=True, num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    others = [pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)]
    expected = everything(loader)
    assert [everything(other) for other in others] == [expected] * 2
    iterator.close()  # type: ignore[attr-defined]


def test_a_generator_gives_its_samples_once():
    loader = DataLoader((i for i in range(3)), 2)
    assert everything(loader) == [[0, 1], [2]]
    with pytest.raises(rg.OptionError, match="generator, gives its samples once"):
        everything(loader)


# -- what is refused ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataLoader([]), "the dataset, list, is empty"),
        (lambda: DataLoader(ArrayDataset(X[:0]), shuffle=True), "ArrayDataset, is empty"),
        (lambda: DataLoader(3), "int has neither"),
        (lambda: DataLoader({"x": X}), r"a dict \['x'\] is no dataset.*ArrayDataset\(\*\*arrays\)"),
        (lambda: DataLoader(X, 0), "batch_size is a positive integer, not 0"),
        (lambda: DataLoader(X, cast("Any", 2.0)), "batch_size is a positive integer, not 2.0"),
        (lambda: DataLoader(X, shuffle=True, sampler=[1]), "leave shuffle out"),
        (lambda: DataLoader(Stream(), shuffle=True), "ShuffleBuffer"),
        (lambda: DataLoader(X, 2, batch_sampler=[[1]]), "gives whole batches"),
        (lambda: DataLoader(X, batch_sampler=[[1]], drop_last=True), "gives whole batches"),
        (lambda: DataLoader(X, None, drop_last=True), "drop_last needs a batch_size"),
        (lambda: DataLoader(X, num_workers=-1), "num_workers is an integer from 0 on"),
        (lambda: DataLoader(X, prefetch_factor=2), "prefetch_factor is for workers"),
        (lambda: DataLoader(X, timeout=2), "timeout is for workers"),
        (lambda: DataLoader(X, timeout=-2), "timeout is a number of seconds"),
        (lambda: DataLoader(X, persistent_workers=True), "persistent_workers is for workers"),
        (lambda: DataLoader(X, seed=-1), "a seed is"),
        (lambda: DataLoader(X, collate_fn=cast("Any", 3)), "collate_fn is a function"),
        (lambda: DataLoader(X, collate_fn=list, pad=0), "give one of both"),
        (lambda: next(iter(DataLoader(X, batch_sampler=[1, 2]))), "gives lists of indices"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(rg.RetrogradError, match=message):
        make()


def test_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(rg.ArgumentError, match="DataFrame of pandas is no dataset"):
        DataLoader(pandas.DataFrame({"a": [1]}))


def test_samples_of_different_shapes_are_named():
    loader = DataLoader([np.ones(2)] * 5 + [np.ones(3)], 2)
    with pytest.raises(rg.ShapeError, match=r"sample 5 has \(3,\) and sample 4 has \(2,\).*pad=0"):
        everything(loader)
    assert everything(DataLoader([np.ones(2), np.ones(3)], 2, pad=0))[0][0] == [1, 1, 0]


def test_errors_of_a_dataset_name_the_sample():
    def broken(i):
        if i == 7:
            raise KeyError("broken")
        return i

    with pytest.raises(KeyError) as caught:
        everything(DataLoader(MapDataset(range(N), broken), 3))
    assert caught.value.__notes__ == ["raised while sample 7 of MapDataset was made"]

    def stops(i):
        raise StopIteration

    with pytest.raises(RuntimeError, match="sample 0 raised StopIteration"):
        everything(DataLoader(MapDataset(range(N), stops), 3))


def test_datasets_that_change_their_length():
    data = list(range(N))
    loader = DataLoader(data, 2)
    iterator = iter(loader)
    next(iterator)
    del data[5:]
    with pytest.raises(rg.IndexRangeError, match=r"has 5 samples.* index 5; it had 11 when"):
        list(iterator)
    assert everything(loader) == [[0, 1], [2, 3], [4]]
    data += [7, 8]
    assert len(loader) == len(everything(loader)) == 4
    with pytest.raises(rg.IndexRangeError, match="none with the index 11"):
        everything(DataLoader(ArrayDataset(X), 2, sampler=[0, N]))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: DataLoader(ArrayDataset(X[:-1]), 3, shuffle=True), "its length was 11.*is 10"),
        (lambda: DataLoader(ArrayDataset(-X), 3, shuffle=True), "its content was.*strict=False"),
        (lambda: DataLoader(X.tolist(), 3, shuffle=True), "its kind was ArrayDataset"),
        (lambda: DataLoader(ArrayDataset(X), 2, shuffle=True), "batch_size=3, but .* batch_size=2"),
        (lambda: DataLoader(ArrayDataset(X), 3, True, drop_last=True), "drop_last=False, but"),
    ],
)
def test_states_of_another_loader(other, message):
    loader = DataLoader(ArrayDataset(X), 3, shuffle=True)
    next(iter(loader))
    with pytest.raises(rg.FormatError, match=message):
        other().load_state_dict(loader.state_dict())


def test_states_of_another_order():
    loader = DataLoader(ArrayDataset(X), 3, shuffle=True)
    next(iter(loader))
    other = DataLoader(ArrayDataset(X), 3, sampler=WeightedRandomSampler(Y, N))
    other.load_state_dict(loader.state_dict())
    with pytest.raises(rg.FormatError, match="an epoch in another order"):
        iter(other)
    listed = DataLoader(ArrayDataset(X), 3, sampler=list(Y))
    listed.load_state_dict(loader.state_dict())
    with pytest.raises(rg.FormatError, match="this loader has"):
        iter(listed)
    changed = DataLoader(ArrayDataset(-X), 3, shuffle=True)
    changed.load_state_dict(loader.state_dict(), strict=False)
    assert len(everything(changed)) == 3


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "no state of a DataLoader: batch, batch_size, .* missing"),
        (None, "no state of a DataLoader"),
        ({"epochs": 1}, "it has 'epochs', near 'epoch'"),
        ({"version": 9}, "of version 9, not 1"),
    ],
)
def test_states_that_are_none(state, message):
    loader = DataLoader(X)
    given = {**loader.state_dict(), **state} if state and "version" in state else state
    with pytest.raises(rg.FormatError, match=message):
        loader.load_state_dict(given)


# -- datasets of others ---------------------------------------------------------------------------
@pytest.mark.torch
def test_datasets_and_samplers_of_pytorch():
    import torch
    from torch.utils import data

    x = torch.arange(2.0 * N).reshape(N, 2)
    theirs = data.TensorDataset(x, torch.arange(N))
    expected = [[a.tolist(), b.tolist()] for a, b in data.DataLoader(theirs, batch_size=4)]
    assert everything(DataLoader(theirs, 4)) == expected
    assert everything(DataLoader(data.Subset(theirs, range(N)), 4)) == expected
    assert everything(DataLoader(data.ConcatDataset([theirs]), 4)) == expected
    weights = torch.ones(N)
    for sampler in (
        data.RandomSampler(theirs),
        data.WeightedRandomSampler(weights, N),
        data.SubsetRandomSampler([3, 1]),
    ):
        assert len(everything(DataLoader(theirs, 4, sampler=sampler))) == -(-len(sampler) // 4)
    batched = data.BatchSampler(data.SequentialSampler(theirs), 4, drop_last=False)
    assert everything(DataLoader(theirs, batch_sampler=batched)) == expected
    (rows,) = DataLoader(x, N)
    assert rows.tolist() == x.tolist()

    class Own(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return {"x": torch.full((2,), float(i)), "y": i}

    (batch,) = DataLoader(Own(), 4)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]

    class Flow(data.IterableDataset):
        def __iter__(self):
            return iter(x)

    assert [*itertools.chain.from_iterable(everything(DataLoader(Flow(), 4)))] == x.tolist()


def test_datasets_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    table: Any = {"ids": [[i, i + 1] for i in range(N)], "label": list(range(N)), "t": ["a"] * N}
    theirs = datasets.Dataset.from_dict(table)
    batches = list(DataLoader(theirs, 4))
    assert batches[0]["ids"].tolist() == table["ids"][:4]
    assert batches[2]["label"].tolist() == [8, 9, 10]
    assert batches[0]["t"] == ["a"] * 4
    assert batches[0]["ids"].dtype is rg.int64
    formatted = theirs.with_format("numpy")
    assert everything(DataLoader(formatted, 4)) == [plain(b) for b in batches]
    flow = theirs.to_iterable_dataset()
    assert everything(DataLoader(flow, 4)) == [plain(b) for b in batches]
    shuffled = DataLoader(flow.shuffle(seed=3, buffer_size=5), 2)
    first, second = everything(shuffled), everything(shuffled)
    assert first != second
    again = DataLoader(flow.shuffle(seed=3, buffer_size=5), 2)
    iterator = iter(again)
    next(iterator)
    state = again.state_dict()
    resumed = DataLoader(flow.shuffle(seed=3, buffer_size=5), 2)
    resumed.load_state_dict(state)
    assert everything(resumed) == first[1:]
    assert everything(resumed) == second
