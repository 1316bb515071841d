"""Updates at positions, in pairs and along an axis, against NumPy."""

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_arrays import A, same

KEYS = [
    np.array([0, 2, 0]), (slice(None), np.array([1, 1])), (np.array([0, 1]), np.array([2, 2])),
    (np.array([0, 0]), slice(1, 3)), slice(0, 2), (0, slice(None, None, -1)), (Ellipsis, 1), 1,
    (np.array([[0], [2]]), np.array([[1, 1]])),
]  # fmt: skip


@pytest.mark.usefixtures("reference")
def test_take_and_scatter():
    same(rg.take(A, [2, 0], axis=0), A[[2, 0]])
    same(rg.take(A, [[1, 1], [0, 3]], axis=1), np.take(A, [[1, 1], [0, 3]], 1))
    index = A.argsort(1)
    same(rg.take_along_axis(A, index, axis=1), np.take_along_axis(A, index, 1))
    expected = np.zeros(4, np.float32)
    np.add.at(expected, [1, 1, 3], [1.0, 2.0, 5.0])
    same(rg.scatter_add(rg.zeros(4), [1, 1, 3], [1.0, 2.0, 5.0]), expected)
    assert rg.one_hot([0, 2, 5], 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(rg.DTypeError, match="integers"):
        rg.take(A, [0.5], axis=0)


@pytest.mark.parametrize("key", range(len(KEYS)))
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16])
def test_updates_against_numpy(key, dtype):
    rng = np.random.default_rng(key)
    x = rng.integers(1, 9, (3, 4)).astype(dtype)
    value = rng.integers(1, 9, x[KEYS[key]].shape).astype(dtype)
    at = rg.tensor(x).at[KEYS[key]]
    np.testing.assert_array_equal(at.get().numpy(), x[KEYS[key]])
    for name, ufunc in (
        ("add", np.add), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum),
    ):  # fmt: skip
        expected = x.copy()
        ufunc.at(expected, KEYS[key], value)
        np.testing.assert_array_equal(getattr(at, name)(value).numpy(), expected)
    expected = x.copy()
    expected[KEYS[key]] = value
    np.testing.assert_array_equal(at.set(value).numpy(), expected)


def test_the_last_update_stays_and_gets_the_gradient():
    x, u = rg.tensor([1.0, 2.0, 3.0]), rg.tensor([5.0, 6.0, 7.0])
    f = rg.jit(lambda x, u, i: x.at[i].set(u), shapes={"u": "N", "i": "N"})
    i = np.array([2, 0, 2])
    assert f(x, u, i).tolist() == [6, 2, 7]
    gx, gu = rg.grad(lambda x, u: (f(x, u, i) * rg.tensor([1.0, 10.0, 100.0])).sum(), (0, 1))(x, u)
    assert gx.tolist() == [0, 10, 0]
    assert gu.tolist() == [0, 1, 100]


def test_masks():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = np.array([True, False])
    for m in (mask, rg.tensor(mask)):
        assert x.at[m].set(0.0).tolist() == [[0, 0], [3, 4]]
        assert x.at[m].add(rg.tensor([1.0, 5.0])).tolist() == [[2, 7], [3, 4]]
        assert x.at[m].set([[8.0, 9.0]]).tolist() == [[8, 9], [3, 4]]
    f = rg.jit(lambda x: x.at[x > 2].multiply(10.0))
    assert f(x).tolist() == [[1, 2], [30, 40]]
    assert rg.grad(lambda x: f(x).sum())(x).tolist() == [[1, 1], [10, 10]]
    with pytest.raises(rg.IndexRangeError):
        x.at[rg.tensor([True])].set(0.0)
    with pytest.raises(rg.TraceError, match="mask"):
        rg.jit(lambda x: x.at[x > 2].set([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))(rg.tensor([1.0, 3.0]))


def test_put_along_axis():
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal((3, 5)), np.array([[0, 3], [1, 1], [4, 0]])
    for mode in ("set", "add", "multiply", "min", "max"):
        v = rng.standard_normal((3, 2))
        expected = x.copy()
        for r in range(3):
            for k in range(2):
                old = expected[r, i[r, k]]
                expected[r, i[r, k]] = {
                    "set": v[r, k], "add": old + v[r, k], "multiply": old * v[r, k],
                    "min": min(old, v[r, k]), "max": max(old, v[r, k]),
                }[mode]  # fmt: skip
        np.testing.assert_allclose(rg.put_along_axis(x, i, v, 1, mode).numpy(), expected)
        turned = rg.put_along_axis(x.T.copy(), i.T.copy(), v.T.copy(), 0, mode).numpy()
        np.testing.assert_allclose(turned.T, expected)
    assert rg.put_along_axis([[1, 2], [3, 4]], [[1]], 9).tolist() == [[1, 9], [3, 9]]
