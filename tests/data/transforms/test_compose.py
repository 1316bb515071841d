"""Where random transforms have their numbers from."""

import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import DataLoader, Dataset, MapDataset
from retrograd.data.transforms import Compose, RandomApply, RandomTransform


class Draw(RandomTransform):
    def apply(self, x, rng):
        return x, int(rng.integers(10**6))


class Own(Dataset):
    """A dataset of a user's that calls its transform itself, as those of torchvision do."""

    def __init__(self):
        self.transform = Draw()

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return self.transform(i)


def drawn(loader):
    return {i: n for a, b in loader for i, n in zip(a.tolist(), b.tolist(), strict=True)}


def test_in_a_loader_they_are_of_seed_epoch_and_index():
    make = lambda d, **k: DataLoader(d, 2, shuffle=True, **k)
    own = make(Own())
    first, second = drawn(own), drawn(own)
    assert first != second
    for same in (
        make(Own(), num_workers=2),
        make(MapDataset(range(6), Draw())),
        make(MapDataset(range(6), Compose([Draw()]))),
        make(MapDataset(range(6), RandomApply(Draw(), p=1.0))),
        DataLoader(Own(), 3),
    ):
        found = drawn(same)
        assert found.keys() == first.keys()
        assert (found == first) != isinstance(getattr(same.dataset, "f", None), RandomApply)
    assert drawn(make(Own(), seed=1)) != first


def test_alone_they_go_on_from_their_seed():
    a, b = Draw(seed=3), Draw(seed=3)
    found = [a(0) for _ in range(4)]
    assert found == [b(0) for _ in range(4)]
    assert len({*found}) == 4
    assert Draw(seed=4)(0) != found[0]
    assert a(0, rng=np.random.default_rng(1)) == b(0, rng=np.random.default_rng(1))
    assert pickle.loads(pickle.dumps(a))(0) == a(0)


def test_what_is_composed_draws_one_after_the_other():
    _, first = Draw(seed=5)(0)
    both = Compose([Draw(), lambda pair: pair[1], Draw()], seed=5)(0)
    assert both[0] != both[1]
    assert first not in both
    rng = np.random.default_rng(2)
    expected = int(rng.integers(10**6)), int(rng.integers(10**6))
    twice = Compose([Draw(), lambda pair: pair[1], Draw()])
    assert twice(0, rng=np.random.default_rng(2)) == expected


def test_how_often():
    t = RandomApply(lambda x: x + 1, p=0.3)
    assert 230 < sum(t(0) for _ in range(1000)) < 370
    assert RandomApply(str, p=1)(3) == "3"


def test_what_is_refused():
    with pytest.raises(rg.OptionError, match="p is a probability"):
        RandomApply(str, p=1.5)
    with pytest.raises(rg.ArgumentError, match="transform 1 is a function"):
        Compose([str, 3])  # type: ignore[list-item]
    with pytest.raises(rg.OptionError, match="Draw: a seed is"):
        Draw(seed=-1)
    with pytest.raises(NotImplementedError, match="RandomTransform has no apply"):
        RandomTransform()(0)
