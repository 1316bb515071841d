"""Keys of `x[key]` and `x.at[key]` against NumPy: single booleans, orders of axes, errors."""

import random

import numpy as np
import pytest

import retrograd as rg

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
x = rg.asarray(X)
BOOLEANS = [True, False, np.True_, np.array(True), np.array(False)]
OTHERS = [0, -1, 2, slice(None), slice(1, None), None, ..., [0, 1], np.array([1]),
          np.array([[0], [1]]), np.array([], np.int64)]  # fmt: skip


COUNTED = np.arange(60).reshape(3, 4, 5)
J, K = np.array([0, -1]), np.array([[1], [2]])
KEYS = [
    0, -1, np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[-2:0:-1], np.s_[:, 1], np.s_[..., -1],
    np.s_[None],
    np.s_[:, None, ..., 2:4], np.s_[5:2], np.s_[J], np.s_[J, K], np.s_[:, J], np.s_[:, J, K],
    np.s_[J, :, K], np.s_[0, :, J], np.s_[J, 1:, 2], np.s_[..., J], np.s_[COUNTED[:, 0, 0] > 10],
    np.s_[COUNTED > 30], np.s_[:, COUNTED[0, :, 0] > 5, J[0]], np.s_[[0, 1], [1, 2]], np.s_[[]],
    np.s_[1, 2, 3],
    np.s_[None, J, None], np.s_[10:], np.s_[:, -3:-1, ::3], np.s_[()], np.s_[..., None],
]  # fmt: skip


def keys(n: int, seed: int = 0):
    draw = random.Random(seed)
    for _ in range(n):
        k = draw.randint(1, 4)
        key = tuple(draw.choice(BOOLEANS if draw.random() < 0.4 else OTHERS) for _ in range(k))
        if sum(i is ... for i in key) < 2:
            yield key if k > 1 or draw.random() < 0.5 else key[0]


def ours(key):
    """The key with tensors in place of arrays."""
    if isinstance(key, tuple):
        return tuple(ours(k) for k in key)
    return rg.asarray(key) if isinstance(key, np.ndarray) else key


@pytest.mark.slow
def test_keys_select_and_update_what_they_do_in_numpy():
    found = 0
    for key in keys(160):
        try:
            expected = X[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[ours(key)].numpy()
            continue
        got = x[ours(key)]
        assert got.shape == expected.shape, key
        assert np.array_equal(got.numpy(), expected), key
        for mode, put in (("set", np.ndarray.__setitem__), ("add", np.add.at)):
            changed = X.copy()
            put(changed, key, 7)
            assert np.array_equal(getattr(x.at[ours(key)], mode)(7), changed), key
        found += 1
    assert found > 80


@pytest.mark.parametrize("key", [True, False, (None, True), (0, True), ([0, 1], True), (True, 1)])
def test_gradients_go_through_single_booleans(key):
    def f(v):
        return (v[key] ** 2).sum()

    expected = np.zeros_like(X)
    np.add.at(expected, key, 2 * X[key])
    assert np.array_equal(rg.grad(f)(x), expected)
    assert np.array_equal(rg.jit(rg.grad(f))(x), expected)
    rows = rg.vmap(lambda v: v[key])(rg.stack([x, x + 1]))
    assert np.array_equal(rows, np.stack([X[key], (X + 1)[key]]))


def test_a_traced_boolean_selects_an_unknown_number():
    yes = rg.asarray(True)
    with pytest.raises(rg.TraceError, match=r"shape \(\) that is traced .* not known"):
        rg.jit(lambda b: x[b])(yes)
    assert rg.jit(lambda b: x.at[b].set(1.0).sum())(yes).item() == 24
    assert rg.jit(lambda b: x.at[b].set(1.0).sum())(~yes).item() == X.sum()


@pytest.mark.parametrize(
    ("key", "match"),
    [
        ((0, 0, 0, 0), "take 4 axes.* has 3"),
        ((..., 0, 0, 0, 0), "take 4 axes"),
        ((np.ones((2, 3), bool), 0, 0), "take 4 axes"),
        (np.ones((2, 3, 4, 1), bool), "take 4 axes"),
        (5, "index 5 on axis 0 of size 2"),
        ((0, -4), "index -4 on axis 1 of size 3"),
        (([0, 1], 9), "index 9"),
        ([0, 9], "index 9"),
        ((..., ...), "one ..."),
        (np.ones(3, bool), "mask of the shape"),
        (([0, 1], [0, 1, 2]), "do not broadcast"),
        (1.5, "not 1.5"),
        (np.array([0.5]), "integers, not float64"),
        ("indices", "string"),
        (slice(0.5, 1), "bounds of a slice"),
    ],
)
def test_what_is_wrong_with_a_key_is_an_index_error(key, match):
    with pytest.raises(IndexError, match=match) as failure:
        x[key].numpy()
    assert isinstance(failure.value, rg.RetrogradError)


def test_an_array_without_axes_takes_no_index():
    s = rg.asarray(3.0)
    for key in (0, slice(None), (..., 0)):
        with pytest.raises(IndexError, match="take 1 axes, of an array that has 0"):
            s[key]
    assert s[True].tolist() == s[None].tolist() == [3]
    assert s[False].shape == (0,)
    assert s[()].item() == s[...].item() == 3


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (lambda: rg.expand_dims(x, axis=4), "axis 4 of an array with 3 axes.* -4 to 3"),
        (lambda: rg.stack([x, x], axis=-5), "axis -5 of an array with 3 axes.* -4 to 3"),
        (lambda: rg.sum(x, axis=3), "axis 3 of an array with 3 axes"),
        (lambda: rg.squeeze(x, axis=3), "axis 3 of an array with 3 axes"),
        (lambda: rg.concat([x, x], axis=3), "axis 3 of an array with 3 axes"),
        (lambda: rg.flip(x, axis=-4), "axis -4 of an array with 3 axes"),
        (lambda: rg.sort(x, axis=3), "axis 3 of an array with 3 axes"),
        (lambda: rg.unstack(x, axis=3), "axis 3 of an array with 3 axes"),
    ],
)
def test_an_axis_that_is_not_there_is_an_index_error_and_a_value_error(f, match):
    with pytest.raises(rg.AxisError, match=match) as failure:
        f()
    assert isinstance(failure.value, IndexError)
    assert isinstance(failure.value, ValueError)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.usefixtures("reference")
def test_indexing(key):
    got = rg.asarray(COUNTED)[key]
    assert got.shape == COUNTED[key].shape
    np.testing.assert_array_equal(got.numpy(), COUNTED[key])


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (3, IndexError, "3"), (np.s_[:, :, 5], IndexError, "axis 2"), (np.s_[0, 0, 0, 0],
        IndexError, "4"),
        (np.s_[0, -5], IndexError, "-5"), (1.5, TypeError, "1.5"), ("a", TypeError, "a"),
        (np.s_[[0.5]], TypeError, "integers"),
        (np.s_[..., 0, ...], IndexError, "one"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("reference")
def test_bad_indices(key, error, words):
    with pytest.raises(error, match=words):
        rg.asarray(COUNTED)[key]


@pytest.mark.usefixtures("reference")
def test_bad_indices_in_arrays_are_found_when_computed():
    with pytest.raises(rg.IndexRangeError, match="7"):
        rg.asarray(COUNTED)[[0, 7]].numpy()


@pytest.mark.usefixtures("reference")
def test_bad_indices_name_the_line_and_what_there_is():
    for f in (rg.scatter_add, rg.scatter_max, rg.scatter_set):  # programs of theirs are shared
        with pytest.raises(rg.IndexRangeError, match=r"-4 to 3.*test_indexing\.py") as caught:
            f(rg.zeros(4), rg.tensor([0, 7]), rg.ones(2)).numpy()
        assert "f32[4]" in str(caught.value)
    x = rg.zeros((2, 3))
    for key in (5, (0, 0, 0), rg.tensor([True, False, True])):
        with pytest.raises(rg.IndexRangeError, match=r"test_indexing\.py"):
            x[key]
    with pytest.raises(rg.ShapeError, match=r"\(arange at .*test_indexing\.py"):
        rg.arange(0, 3, 0)
