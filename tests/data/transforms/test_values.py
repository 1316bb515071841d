"""Values of arrays."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data.transforms import GaussianNoise, Normalize, OneHot, ToDtype, ToFloat

X = np.random.default_rng(0).integers(0, 256, (3, 4, 5)).astype(np.uint8)


def test_to_float():
    assert np.array_equal(ToFloat()(X), (X / 255).astype(np.float32))
    assert ToFloat(scale=False)(X).max() == X.max()
    assert ToFloat("float64")(np.array([1.5], np.float32)).dtype == np.float64
    assert ToFloat()(rg.tensor([True])).tolist() == [1.0]
    assert ToDtype(rg.int8)([1.9]).tolist() == [1]
    with pytest.raises(rg.DTypeError, match="a floating one, not int8"):
        ToFloat("int8")


def test_normalize():
    mean, std = [1.0, 2.0, 3.0], [2.0, 4.0, 8.0]
    x = X.astype(np.float64)
    expected = np.stack([(x[c] - mean[c]) / std[c] for c in range(3)])
    assert np.array_equal(Normalize(mean, std)(x), expected)
    assert Normalize(mean, std)(X).dtype == np.float32
    assert np.array_equal(Normalize(mean, std, axis=-1)(np.ones(3)), (1 - np.array(mean)) / std)
    assert Normalize(0.5, 2)(np.array([1.5], np.float16)).tolist() == [0.5]
    with pytest.raises(rg.ShapeError, match=r"3 numbers along axis -1, .*shape \(2,\)"):
        Normalize(mean, std)(np.ones(2))
    with pytest.raises(rg.OptionError, match="std is not 0"):
        Normalize(0, [1, 0])
    with pytest.raises(rg.ShapeError, match="numbers, or lists"):
        Normalize([[1]], 1)


def test_one_hot():
    assert np.array_equal(OneHot(4, "int64")([[1, 3]]), np.eye(4, dtype=int)[[[1, 3]]])
    with pytest.raises(rg.IndexRangeError, match="4 is none of 4 classes"):
        OneHot(4)([1, 4])
    with pytest.raises(rg.DTypeError, match="classes are integers, not float32"):
        OneHot(4)(1.0)


def test_noise():
    noise = GaussianNoise(std=2.0, mean=1.0)(np.zeros(20_000))
    assert abs(noise.mean() - 1) < 0.1
    assert abs(noise.std() - 2) < 0.1
    expected = 3 + 0.5 * np.random.default_rng(1).standard_normal(4)
    found = GaussianNoise(0.5)(np.full(4, 3.0), rng=np.random.default_rng(1))
    assert np.array_equal(found, expected)
    assert GaussianNoise()(X).dtype == np.float32
    with pytest.raises(rg.OptionError, match="std is not negative"):
        GaussianNoise(-1.0)
