"""Other shapes of the same elements, against NumPy."""

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_arrays import A, B, C, same

pytestmark = pytest.mark.usefixtures("reference")


def test_manipulation():
    same(rg.reshape(C, (4, -1)), C.reshape(4, -1))
    same(rg.permute_dims(C, (2, 0, 1)), C.transpose(2, 0, 1))
    same(rg.moveaxis(C, 0, -1), np.moveaxis(C, 0, -1))
    same(rg.moveaxis(C, (0, 1), (1, 2)), np.moveaxis(C, (0, 1), (1, 2)))
    same(rg.swapaxes(C, 0, 2), C.swapaxes(0, 2))
    same(rg.expand_dims(C, axis=(0, -1)), np.expand_dims(C, (0, -1)))
    same(rg.squeeze(C[:, :1], axis=1), C[:, 0])
    same(rg.broadcast_to(B, (3, 4)), np.broadcast_to(B, (3, 4)))
    same(rg.concat([A, A[:1]], axis=0), np.concatenate([A, A[:1]]))
    same(rg.concat([A, B], axis=None), np.concatenate([A, B], axis=None))
    same(rg.stack([A, A + 1], axis=1), np.stack([A, A + 1], 1))
    same(rg.flip(C, axis=(0, 2)), np.flip(C, (0, 2)))
    same(rg.roll(C, 3, axis=1), np.roll(C, 3, 1))
    same(rg.roll(C, -1, axis=2), np.roll(C, -1, 2))
    same(rg.repeat(A, 2, axis=1), np.repeat(A, 2, 1))
    same(rg.repeat(A, 2), np.repeat(A, 2))
    same(rg.tile(A, (2, 3)), np.tile(A, (2, 3)))
    same(rg.tile(A, (2, 1, 3)), np.tile(A, (2, 1, 3)))
    same(rg.pad(A, [(1, 2), (0, 3)], value=7), np.pad(A, [(1, 2), (0, 3)], constant_values=7))
    for k in (-1, 0, 2):
        same(rg.tril(C, k=k), np.tril(C, k))
        same(rg.triu(A, k=k), np.triu(A, k))
    for got, expected in zip(rg.split(A, [1, 3], axis=1), np.split(A, [1], 1), strict=True):
        same(got, expected)
    for got, expected in zip(rg.unstack(A, axis=1), A.T, strict=True):
        same(got, expected)
    for indexing in ("xy", "ij"):
        grids = rg.meshgrid(B, A[:, 0], indexing=indexing)
        for got, expected in zip(grids, np.meshgrid(B, A[:, 0], indexing=indexing), strict=True):
            same(got, expected)
