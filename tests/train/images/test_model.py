import numpy as np
import pytest

import retrograd as rg
from retrograd.train.images.model import ImageNetwork, RandomShift


@pytest.mark.parametrize(("size", "blocks"), [(4, 1), (8, 2), (15, 3), (33, 4), (64, 4)])
def test_blocks_halve_the_image_until_few_rows_are_left(size, blocks):
    model = ImageNetwork(size, 3, 5, 4, 0.0, True, rg.random.Generator(0)).eval()
    assert len(model.blocks) == blocks
    with rg.backend("reference"):
        assert model(rg.zeros((2, 3, size, size))).shape == (2, 5)


def test_images_move_only_while_training():
    x = np.random.default_rng(0).normal(size=(50, 2, 6, 5)).astype(np.float32)
    layer = RandomShift(1, False, rg.random.Generator(0))
    with rg.backend("reference"):
        moved = layer(rg.tensor(x)).numpy()
        assert np.array_equal(layer.eval()(rg.tensor(x)).numpy(), x)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    places = set()
    for image, given in zip(moved, padded, strict=True):
        fits = [
            (i, j)
            for i in range(3)
            for j in range(3)
            if np.array_equal(image, given[:, i : i + 6, j : j + 5])
        ]
        assert len(fits) == 1
        places.update(fits)
    assert len(places) == 9


def test_images_are_mirrored_every_other_time():
    x = np.random.default_rng(0).normal(size=(60, 1, 4, 4)).astype(np.float32)
    with rg.backend("reference"):
        moved = RandomShift(0, True, rg.random.Generator(0))(rg.tensor(x)).numpy()
    same = [np.array_equal(a, b) for a, b in zip(moved, x, strict=True)]
    turned = [np.array_equal(a, b[..., ::-1]) for a, b in zip(moved, x, strict=True)]
    assert all(a or b for a, b in zip(same, turned, strict=True))
    assert 15 < sum(same) < 45
