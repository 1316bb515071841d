"""Images, against loops over pixels written out here."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.transforms import (
    CenterCrop,
    RandomCrop,
    RandomHorizontalFlip,
    RandomRotation,
    RandomVerticalFlip,
)

X = np.random.default_rng(0).integers(0, 256, (3, 6, 7)).astype(np.uint8)


def test_crops():
    assert np.array_equal(CenterCrop((2, 3))(X), X[:, 2:4, 2:5])
    assert np.array_equal(CenterCrop(6)(X), X[:, :, 0:6])
    padded = np.pad(X, ((0, 0), (2, 2), (2, 2)), constant_values=9)
    parts = {padded[:, i : i + 4, j : j + 5].tobytes(): (i, j) for i in range(7) for j in range(7)}
    crop = RandomCrop((4, 5), padding=2, fill=9)
    places = {parts[crop(X).tobytes()] for _ in range(400)}
    assert len(places) == 49
    assert RandomCrop(6)(X[0]).shape == (6, 6)


def test_flips():
    for flip, axis in ((RandomHorizontalFlip, 2), (RandomVerticalFlip, 1)):
        assert np.array_equal(flip(p=1)(X), np.flip(X, axis))
        assert np.array_equal(flip(p=0)(X), X)
        some = flip(seed=2)
        assert 60 < sum(np.array_equal(some(X), X) for _ in range(200)) < 140


def rotated(image, degrees, fill):
    """The nearest pixels, each looked for by itself."""
    h, w = image.shape
    out = np.full((h, w), fill, image.dtype)
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    for i in range(h):
        for j in range(w):
            y, x = i - (h - 1) / 2, j - (w - 1) / 2
            # Against the clock in a picture whose rows go down.
            at = (c * y + s * x + (h - 1) / 2, -s * y + c * x + (w - 1) / 2)
            if all(-0.5 < a < n - 0.5 for a, n in zip(at, (h, w), strict=True)):
                near = [math.floor(a + 0.5) for a in at]
                if all(0 <= a <= n - 1 for a, n in zip(at, (h, w), strict=True)):
                    out[i, j] = image[near[0], near[1]]
    return out


@pytest.mark.parametrize("degrees", [10.0, -33.0, 77.0, 200.0])
def test_rotations(degrees):
    found = RandomRotation((degrees, degrees), fill=7)(X)
    expected = np.stack([rotated(c, degrees, 7) for c in X])
    assert (found == expected).mean() > 0.97  # two pixels may be equally near


def test_rotations_by_right_angles_are_exact():
    square = X[:, :, :6]
    for turns in range(4):
        for order in (0, 1):
            found = RandomRotation((90 * turns, 90 * turns), order=order)(square)
            assert np.array_equal(found, np.rot90(square, turns, axes=(-2, -1)))
            assert found.dtype == square.dtype
    smooth = RandomRotation(30, order=1)(square.astype(np.float32))
    assert smooth.dtype == np.float32
    assert not np.array_equal(smooth, RandomRotation(30, order=0)(square.astype(np.float32)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CenterCrop(7)(X), "an image of 6 x 7 has no part of 7 x 7"),
        (lambda: RandomCrop(9, padding=1)(X), "8 x 9 has no part of 9 x 9"),
        (lambda: RandomCrop(0), "a positive integer"),
        (lambda: CenterCrop((1, 2, 3)), "a positive integer, or two"),
        (lambda: RandomHorizontalFlip()(np.ones(3)), r"the axes \[..., H, W\]"),
        (lambda: RandomRotation(-3.0), "two that ascend"),
        (lambda: RandomRotation(3.0, order=3), "order is 0"),
        (lambda: RandomVerticalFlip(p=2), "p is a probability"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(rg.RetrogradError, match=message):
        make()
