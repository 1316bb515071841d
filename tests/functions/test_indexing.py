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


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take_outside_of_the_axis(mode, axis):
    index = np.array([[0, -1, 1], [5, -7, 200]], np.int16)[: 1 if mode == "raise" else 2]
    expected = np.take(X, index, axis=axis, mode=mode)
    assert rg.take(x, index, axis=axis, mode=mode).tolist() == expected.tolist()
    assert np.take(x, index, axis=axis, mode=mode).tolist() == expected.tolist()
    assert x.take(index, axis=axis, mode=mode).tolist() == expected.tolist()
    compiled = rg.jit(lambda x: rg.take(x, index, axis=axis, mode=mode).sum())
    for rows in (2, 5):
        more = np.arange(rows * 12, dtype=np.float32).reshape(rows, 3, 4)
        assert compiled(more).item() == np.take(more, index, axis=axis, mode=mode).sum()
    rg.testing.gradcheck(lambda x: rg.take(x, index, axis=axis, mode=mode), X.astype(np.float64))


def test_take_of_nothing_and_in_no_mode():
    assert rg.take(rg.zeros(0), np.zeros(0, np.int64), mode="clip").shape == (0,)
    with pytest.raises(IndexError):
        rg.take(rg.zeros(0), [0], mode="clip").numpy()
    with pytest.raises(rg.errors.OptionError, match="not 'nearest'"):
        rg.take(x, [0], mode="nearest")


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


# Several index arrays, with what may stand between them.
P, Q = np.array([[0, -1, 1], [1, 0, 0]]), np.array([2, 0, 2])
SEVERAL = [
    np.s_[P, Q], np.s_[P, Q, Q], np.s_[:, P, Q], np.s_[P, :, Q], np.s_[P, None, Q], np.s_[P, 1:, 3],
    np.s_[:, 1, Q], np.s_[..., Q, P, None], np.s_[P, Q, -1], np.s_[True, P, Q],
    np.s_[P[:, :0], Q[:0]], np.s_[P, ::2, Q[::-1]], np.s_[None, P, Q, 1:], np.s_[P, ..., Q],
    np.s_[X[:, :, 0] > 3],
]  # fmt: skip


@pytest.mark.parametrize("key", SEVERAL, ids=str)
@pytest.mark.sample(4)
def test_derivatives_by_several_index_arrays(key):
    at = rg.asarray(np.random.default_rng(1).normal(size=X[key].shape).astype(np.float32))

    def f(v):
        return (at * v[ours(key)] ** 3).sum()

    def added(values):
        total = np.zeros_like(X)
        np.add.at(total, key, values)
        return total

    slope, bend = added(at.numpy() * 3 * X[key] ** 2), added(at.numpy() * 6 * X[key])
    np.testing.assert_allclose(rg.grad(f)(x), slope, rtol=1e-5)
    np.testing.assert_allclose(rg.jit(rg.grad(f))(x), slope, rtol=1e-5)
    second = rg.grad(lambda v: (rg.grad(f)(v) * x).sum())
    np.testing.assert_allclose(second(x), bend * X, rtol=1e-5)
    stack = rg.stack([x, 2 * x])
    for of in (rg.vmap(rg.grad(f)), rg.jit(rg.vmap(rg.grad(f)))):
        np.testing.assert_allclose(of(stack), np.stack([slope, 4 * slope]), rtol=1e-5)
    leaf = rg.tensor(X, requires_grad=True)
    f(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad, slope, rtol=1e-5)
    _, tangent = rg.jvp(lambda v: v[ours(key)], (x,), (2 * x,))
    np.testing.assert_array_equal(tangent, 2 * X[key])


@pytest.mark.parametrize("key", SEVERAL[:5], ids=str)
def test_several_index_arrays_are_read_by_one_gather_and_summed_by_one_scatter(key):
    indices = [k for k in key if isinstance(k, np.ndarray)]

    def f(v, *given):
        at = iter(given)
        return v[tuple(next(at) if isinstance(k, np.ndarray) else k for k in key)].sum()

    graph = rg.trace(rg.grad(f), x, *map(rg.asarray, indices))
    ops = [node.op for node in graph.nodes]
    assert ops.count("scatter_add") == 1
    assert ops.count("gather") == 0
    graph = rg.trace(f, x, *map(rg.asarray, indices))
    assert [node.op for node in graph.nodes].count("gather") == 1


@pytest.mark.parametrize("key", SEVERAL[:6], ids=str)
@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16, rg.float64, rg.complex64])
def test_several_index_arrays_in_other_dtypes(key, dtype):
    v = x.astype(dtype) * (1 + 2j if dtype.is_complex else 1)
    expected = np.zeros(X.shape, np.complex64 if dtype.is_complex else np.float32)
    np.add.at(expected, key, 1)
    factor = 1 + 2j if dtype.is_complex else 1

    def f(v):
        return (abs(v[ours(key)]) ** 2).sum() / 2 if dtype.is_complex else v[ours(key)].sum()

    for of in (rg.grad(f), rg.jit(rg.grad(f))):
        got = of(v)
        assert got.dtype is dtype
        whole = expected * X * factor if dtype.is_complex else expected
        np.testing.assert_allclose(got.astype(rg.complex64 if dtype.is_complex else rg.float64),
                                   whole, rtol=1e-6)  # fmt: skip


def test_several_index_arrays_of_batches():
    i, j = np.array([[0, 1], [-1, 0]]), np.array([[2, -1], [0, 1]])
    for of in (lambda f: f, rg.jit):
        got = of(rg.vmap(lambda a, b: rg.grad(lambda v: v[a, b].sum())(x)))(i, j)
        for k in range(2):
            expected = np.zeros_like(X)
            np.add.at(expected, (i[k], j[k]), 1)
            np.testing.assert_array_equal(got[k], expected)
        both = of(rg.vmap(lambda v, a: v[a, :, 1], in_axes=(0, 0)))(rg.stack([x, 2 * x]), i)
        np.testing.assert_array_equal(both, np.stack([X[i[0], :, 1], 2 * X[i[1], :, 1]]))


def test_several_index_arrays_of_named_sizes():
    f = rg.jit(
        rg.grad(lambda v, a, b: (v[a, :, b] ** 2).sum()),
        shapes={"v": "n m k", "a": "s", "b": "s"},
    )
    rng = np.random.default_rng(2)
    for n, m, k, s in ((3, 2, 4, 5), (1, 7, 2, 0), (6, 1, 1, 9)):
        v = rng.normal(size=(n, m, k)).astype(np.float32)
        a, b = rng.integers(-n, n, s), rng.integers(-k, k, s)
        expected = np.zeros_like(v)
        np.add.at(expected, (a, slice(None), b), 2 * v[a, :, b])  # type: ignore[arg-type]
        np.testing.assert_allclose(f(v, a, b), expected, rtol=1e-5)
    with pytest.raises(rg.IndexRangeError, match="index 4 on axis 2 of size 4"):
        f(np.zeros((5, 2, 4), np.float32), np.array([4]), np.array([4])).numpy()


@pytest.mark.parametrize(("i", "j", "message"), [
    (5, 0, "index 5 on axis 1 of size 3; its indices are -3 to 2"),
    (0, -5, "index -5 on axis 2 of size 4; its indices are -4 to 3"),
])  # fmt: skip
def test_several_index_arrays_are_checked_each_on_its_axis(i, j, message):
    a, b = rg.tensor([0, i]), rg.tensor([0, j])
    for f in (lambda a, b: x[:, a, b], rg.jit(lambda a, b: x[:, a, b] + 0)):
        with pytest.raises(rg.IndexRangeError, match=message):
            f(a, b).numpy()
    with pytest.raises(rg.IndexRangeError, match=message):
        x.at[:, a, b].add(1.0).numpy()


@pytest.mark.parametrize("key", SEVERAL, ids=str)
def test_updates_at_several_index_arrays(key):
    rng = np.random.default_rng(3)
    value = rng.integers(1, 5, X[key].shape).astype(np.float32)
    for mode, put in (("set", np.ndarray.__setitem__), ("add", np.add.at), ("max", np.maximum.at)):
        changed = X.copy()
        put(changed, key, value)
        np.testing.assert_array_equal(getattr(x.at[ours(key)], mode)(value), changed)
    got = rg.grad(lambda u: (x.at[ours(key)].add(u) * x).sum())(rg.asarray(value))
    np.testing.assert_array_equal(got, X[key])
