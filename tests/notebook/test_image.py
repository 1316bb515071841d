"""Pictures of arrays, read back by a reader of PNG that is not ours."""

import io

import numpy as np
import pytest

from retrograd.notebook.image import picture

RNG = np.random.default_rng(0)
NAN, INFINITE = (214, 36, 159), (255, 128, 0)


def pixels(found):
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(found.png))
    return np.asarray(image.convert("RGB"))


def test_numbers_grow_with_the_colours_and_what_is_not_finite_has_its_own():
    a = np.array([[0.0, 1.0, 2.0], [np.nan, np.inf, -np.inf]])
    seen = pixels(picture(a))
    assert seen.shape == (2, 3, 3)
    brightness = seen[0].astype(int).sum(axis=1)
    assert (np.diff(brightness) > 0).all()
    assert tuple(seen[1, 0]) == NAN
    assert tuple(seen[1, 1]) == tuple(seen[1, 2]) == INFINITE


def test_zero_is_white_where_there_are_both_signs():
    red, white, blue = pixels(picture(np.array([[1.0, 0.0, -3.0]] * 2)))[0].astype(int)
    assert min(white) > 240
    assert red[0] > red[2]
    assert blue[2] > blue[0]


@pytest.mark.parametrize("axis", [0, 2])
def test_images_keep_their_colours(axis):
    image = RNG.integers(0, 256, (9, 11, 3)).astype(np.uint8)
    np.testing.assert_array_equal(pixels(picture(np.moveaxis(image, 2, axis))), image)
    floating = np.moveaxis(image, 2, axis).astype(np.float32) / 255
    np.testing.assert_array_equal(pixels(picture(floating)), image)


def test_floating_channels_beyond_one_are_no_colours():
    assert "3 matrices" in picture(RNG.normal(size=(3, 9, 9))).note


def test_a_large_matrix_is_averaged_and_hides_no_nan():
    a = np.zeros((600, 500))
    a[333, 444] = np.nan
    found = picture(a)
    assert "averaged" in found.note
    assert (pixels(found) == NAN).all(axis=2).sum() == 1
    assert len(found.png) < 60_000


def test_a_stack_says_how_many_of_how_many():
    assert picture(np.ones((30, 8, 8))).note.endswith("the first 12 of 30 matrices")
    assert "the first 12 of 64 images" in picture(np.ones((64, 3, 32, 32))).note


@pytest.mark.parametrize("shape", [(), (5,), (0, 4), (4, 0), (1, 500), (500, 1), (3, 0, 2)])
def test_what_no_picture_shows(shape):
    assert picture(np.zeros(shape)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e308, -1e308, 5e-324])
def test_constants_and_extremes(value):
    a = np.full((4, 4), value)
    pixels(picture(a))
    a[0, 0] = -1e308
    pixels(picture(a))
