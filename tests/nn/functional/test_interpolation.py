"""Interpolation, grids, padding and shuffles against PyTorch."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from retrograd import nn
from tests.nn.functional.torch_cases import (
    IMAGE,
    Case,
    agree,
    compare,
    floats,
    normal,
    uniform,
)

F = nn.functional

SPATIAL: dict[str, Case] = {
    "pixel_shuffle": (lambda m, x: m.pixel_shuffle(x, 2), (normal(2, 8, 3, 5),)),
    "pixel_unshuffle": (lambda m, x: m.pixel_unshuffle(x, 3), (normal(2, 2, 6, 9),)),
    "channel_shuffle": (lambda m, x: m.channel_shuffle(x, 3), (IMAGE,)),
    "upsample_nearest": (
        lambda m, x: m.upsample_nearest(x, (7, 3)) if m is F else m.interpolate(x, (7, 3)),
        (IMAGE,),
    ),
}
PADS = {
    "constant": ((1, 2, -1, 0, 0, 1), 1.5),
    "reflect": ((2, 1, 1, 3), None),
    "replicate": ((9, 1, 0, 3), None),
    "circular": ((2, 1, 5, 0), None),
}
for _mode, (_widths, _value) in PADS.items():
    SPATIAL[f"pad {_mode}"] = (
        lambda m, x, mode=_mode, p=_widths, v=_value: m.pad(x, p, mode, v),
        (IMAGE,),
    )
SPATIAL["pad negative"] = (lambda m, x: m.pad(x, (-1, 2, 1, -2), "replicate"), (IMAGE,))


@pytest.mark.torch
@pytest.mark.parametrize("name", SPATIAL)
def test_as_in_torch(name: str) -> None:
    f, arrays = SPATIAL[name]
    compare(f, arrays, name)


SIZES = [
    {"size": (9, 4)},
    {"scale_factor": 2.0},
    {"scale_factor": (0.6, 1.7)},
    {"scale_factor": (0.6, 1.7), "recompute_scale_factor": True},
    {"size": (1, 1)},
    {"size": (5, 7)},
]
MODES = [
    ("nearest", None),
    ("nearest-exact", None),
    ("area", None),
    ("bilinear", False),
    ("bilinear", True),
    ("bicubic", False),
    ("bicubic", True),
]


@pytest.mark.torch
@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize(("mode", "corners"), MODES)
def test_interpolate(mode: str, corners: bool | None, options: dict[str, Any]) -> None:
    def f(m, x):
        return m.interpolate(x, mode=mode, align_corners=corners, **options)

    compare(f, (IMAGE,), mode)


@pytest.mark.torch
@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_with_antialias(mode: str, options: dict[str, Any]) -> None:
    compare(lambda m, x: m.interpolate(x, mode=mode, antialias=True, **options), (IMAGE,), mode)


@pytest.mark.torch
@pytest.mark.parametrize("corners", [False, True])
def test_interpolate_one_and_three_axes(corners: bool) -> None:
    for mode, x in (("linear", normal(2, 3, 7)), ("trilinear", normal(2, 3, 4, 3, 5))):

        def f(m, x, mode=mode):
            return m.interpolate(x, scale_factor=1.6, mode=mode, align_corners=corners)

        compare(f, (x,), mode)
    compare(lambda m, x: m.interpolate(x, scale_factor=1.6), (normal(2, 3, 4, 3, 5),), "nearest")


@pytest.mark.torch
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str, corners: bool) -> None:
    grid = uniform(2, 4, 3, 2, low=-2.7, high=2.7)

    def f(m, x, g):
        return m.grid_sample(x, g, mode, padding, corners)

    compare(f, (IMAGE, grid), mode)
    if mode != "bicubic":
        compare(f, (normal(2, 3, 4, 3, 5), uniform(2, 3, 2, 4, 3, low=-1.6, high=1.6)), mode)


@pytest.mark.torch
@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(corners: bool) -> None:
    for theta, size in ((normal(2, 2, 3), (2, 3, 4, 5)), (normal(2, 3, 4), (2, 1, 3, 4, 2))):
        compare(lambda m, x, s=size: m.affine_grid(x, s, align_corners=corners), (theta,), "affine")


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pad_by_numbers_of_both_signs(mode, rank):
    widths = list(itertools.product([-2, -1, 0, 1, 2], repeat=2 * rank))
    taken = 0
    for pad in random.Random(1).sample(widths, min(len(widths), 15)):
        taken += agree("pad", floats(2, 3, *(4, 5, 4)[:rank]), pad=pad, mode=mode, grad=rank < 3)
    assert taken > 8


def test_lines_between_corners_are_those_of_numpy() -> None:
    x = normal(2, 3, 5)
    at = np.linspace(0, 4, 9)
    expected = [[np.interp(at, np.arange(5), row) for row in sample] for sample in x]
    found = F.interpolate(x, 9, mode="linear", align_corners=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    nearest = F.interpolate(x, 8).numpy()
    np.testing.assert_array_equal(nearest, x[..., np.arange(8) * 5 // 8])


def test_the_grid_of_no_change_samples_the_image_and_a_flip_flips_it() -> None:
    same = np.broadcast_to(np.eye(2, 3), (2, 2, 3))
    for theta, expected in ((same, IMAGE), (same * [[-1.0], [1.0]], IMAGE[..., ::-1])):
        for corners in (False, True):
            grid = F.affine_grid(theta, IMAGE.shape, align_corners=corners)
            found = F.grid_sample(IMAGE, grid, align_corners=corners)
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-9)


def test_pixels_by_hand() -> None:
    x = normal(1, 8, 2, 3)
    y = F.pixel_shuffle(x, 2).numpy()
    for c, i, j in ((0, 0, 0), (0, 1, 2), (1, 3, 5)):
        assert y[0, c, i, j] == x[0, 4 * c + 2 * (i % 2) + j % 2, i // 2, j // 2]
    np.testing.assert_array_equal(F.pixel_unshuffle(y, 2).numpy(), x)
    cut = F.pad(x, (-1, 2, 0, 0)).numpy()
    np.testing.assert_array_equal(cut, np.pad(x[..., 1:], [(0, 0)] * 3 + [(0, 2)]))
