"""What Python, NumPy and notebooks expect of a tensor: printing, comparing, formatting, data."""

import array
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse.linalg
import scipy.special

import retrograd as rg


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (rg.tensor(1.5), "Tensor(1.5, dtype=float32)"),
        (rg.tensor([1, 2]), "Tensor([1, 2], dtype=int64)"),
        (rg.tensor([True]), "Tensor([ True], dtype=bool)"),
        (rg.tensor([0.5, 2.0], "bfloat16"), "Tensor([0.5, 2], dtype=bfloat16)"),
        (rg.tensor([]), "Tensor([], dtype=float32)"),
        (rg.zeros((2, 0, 3)), "Tensor([], shape=(2, 0, 3), dtype=float32)"),
        (rg.tensor([1.0], requires_grad=True), "Tensor([1.], dtype=float32, requires_grad=True)"),
        (rg.tensor([math.nan, math.inf]), "Tensor([nan, inf], dtype=float32)"),
    ],
)
def test_repr(x, text):
    assert repr(x) == text


def test_repr_of_large_and_of_traced_tensors():
    large = repr(rg.zeros((1000, 1000)))
    assert "..." in large
    assert len(large) < 1000
    seen: list[str] = []
    rg.jit(lambda x: (seen.append(f"{x} {x!r}"), x)[1])(rg.ones((2, 3)))  # type: ignore[func-returns-value]
    assert seen == ["Tensor(traced f32[2, 3]) Tensor(traced f32[2, 3])"]


def test_formatting_like_a_number():
    loss = rg.tensor(0.123456)
    assert f"{loss:.3f} {loss:>8.2e}" == "0.123 1.23e-01"
    assert f"{rg.tensor([7]):03d}" == "007"
    assert f"{rg.ones(2)}" == str(rg.ones(2))
    assert "%.1f" % rg.tensor(2.0) == "2.0"  # noqa: UP031
    with pytest.raises(TypeError, match=r"the format '\.3f' is one of a number.*set_printoptions"):
        f"{rg.ones(2):.3f}"


def test_equality_with_what_is_no_array():
    x = rg.ones(2)
    same: list[Any] = [x == None, x == "text"]  # noqa: E711
    other: list[Any] = [x != None, x != "text"]  # noqa: E711
    assert same == [False, False]
    assert other == [True, True]
    assert x != object()
    assert (x == [1, 2]).tolist() == [True, False]
    assert [None, "a", x].index(x) == 2


def test_hashing_and_membership():
    x, y = rg.ones(2), rg.ones(2)
    assert {x: 1, y: 2}[x] == 1
    assert len({x, y, x}) == 2
    assert 2 in rg.tensor([1, 2])
    assert 3 not in rg.tensor([1, 2])
    assert x in [x]
    with pytest.raises(rg.ShapeError, match="ambiguous"):
        y in [x]  # noqa: B015


def test_lists_are_arrays():
    x = rg.ones(2, dtype="float16")
    assert (x - [1, 2]).tolist() == [0, -1]
    assert ([1, 2] - x).tolist() == [0, 1]
    assert (x * [1, 2]).dtype == rg.float16
    assert rg.exp([0, 0]).tolist() == [1, 1]
    a = rg.tensor(1.0, requires_grad=True)
    b = rg.tensor(2.0, requires_grad=True)
    rg.mean([a, [1, 2][0] * b, 3.0]).backward()
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.item(), b.grad.item()) == pytest.approx((1 / 3, 1 / 3))
    assert rg.sum([[a, b], [b, 1]]).item() == 6


def test_python_numbers_in_lists_take_the_dtype_of_the_arrays_beside_them():
    assert rg.tensor([rg.ones(2), [3, 4.5]]).dtype == rg.float32
    assert rg.tensor([np.float16(1), 2]).dtype == rg.float16
    assert rg.tensor([np.ones(1), [2]]).dtype == rg.float64
    assert rg.tensor([np.int8(1), 2.5]).dtype == rg.float32
    assert rg.tensor([np.int8(1), 2]).dtype == rg.int8


def test_numpy_float64_numbers_count_as_python_floats_next_to_arrays():
    assert (rg.ones(2) * np.sqrt(2.0)).dtype == rg.float32
    assert (np.float64(2) * rg.ones(2)).dtype == rg.float32
    alone = rg.exp(np.float64(1)).item()  # in float64
    assert math.isclose(alone, math.e, rel_tol=4 * 2.0**-53)
    assert (rg.ones(2) + np.float32(1)).dtype == rg.float32
    assert (rg.tensor([1]) + np.ones(1)).dtype == rg.float64


class Exporter:
    """An object of another library that offers `__array__`."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (np.array([1.0, 2.0], ">f8"), rg.float64),
        (np.array([1, 2], ">i2"), rg.int16),
        (np.asfortranarray([[1.0, 2.0]])[0], rg.float64),
        (np.arange(1.0, 3.0, 0.5)[::2], rg.float64),
        (np.array([2.0, 1.0])[::-1], rg.float64),
        (np.broadcast_to(np.array([1.0, 2.0], np.float32), (1, 2))[0], rg.float32),
        (np.array([1.0, 2.0], ml_dtypes.bfloat16), rg.bfloat16),
        (np.frombuffer(np.array([0, 1, 2], np.int8).tobytes(), np.int8)[1:], rg.int8),
        (np.array([1.0, 2.0]).data, rg.float64),
        (array.array("d", [1.0, 2.0]), rg.float64),
        (range(1, 3), rg.int64),
        ((1, 2), rg.int64),
        (Exporter(), rg.float64),
    ],
)
def test_arrays_of_every_layout(data, dtype):
    for make in (rg.tensor, rg.asarray):
        x = make(data)
        assert (x.dtype, x.tolist()) == (dtype, [1, 2])
        assert (x * 2).sum().item() == 6
        assert (x.reshape(2, 1) @ rg.ones((1, 2), dtype="float64")).shape == (2, 2)
    if isinstance(data, np.ndarray):
        assert (rg.zeros(2, dtype="int8") + data).tolist() == [1, 2]
        assert rg.jit(lambda x: x + 1)(data).tolist() == [2, 3]


def test_exported_memory_is_read_only():
    x = rg.ones(2)
    for a in (x.numpy(), np.asarray(x), np.from_dlpack(x)):
        assert not a.flags.writeable
    assert np.array(x).flags.writeable
    old = x.__dlpack__()  # the protocol without versions cannot say so: it gets a copy
    assert "dltensor" in repr(old)


def test_asarray_without_copying():
    a = np.ones(2)
    assert np.shares_memory(rg.asarray(a, copy=False).numpy(), a)
    x = rg.ones(2)
    assert rg.asarray(x) is x
    with pytest.raises(ValueError, match="copy"):
        rg.asarray(x, dtype="float64", copy=False)


def test_numbers_out_of_range_saturate_and_nan_becomes_zero_in_arrays():
    wide = np.array([1.5, -1.0, 300.0, math.nan, math.inf])
    expected = [1, 0, 255, 0, 255]
    assert rg.tensor(wide, "uint8").tolist() == rg.tensor(wide).astype("uint8").tolist() == expected
    assert rg.tensor(1e300).item() == math.inf
    assert rg.tensor([70000.0], "float16").tolist() == [math.inf]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_arrays_of_no_elements(backend):
    with rg.backend(backend):
        x = rg.tensor(np.zeros((0, 3)), requires_grad=True)
        y = rg.tanh(x) @ rg.ones((3, 2), dtype="float64")
        loss = (y * 2).sum() + rg.concat([x, x]).sum() + x.mean(axis=1).sum() + x[:, 1:].sum()
        loss.backward()
        assert loss.item() == 0
        assert x.grad is not None
        assert x.grad.shape == (0, 3)
        assert (rg.sum(x).item(), rg.prod(x).item()) == (0, 1)
        assert (bool(rg.any(x)), bool(rg.all(x))) == (False, True)
        assert math.isnan(rg.mean(x).item())
        assert rg.softmax(rg.zeros((2, 0))).shape == (2, 0)
        assert rg.argmax(rg.zeros((2, 0)), axis=0).shape == (0,)
        assert rg.stack([x[:, 0]] * 2).shape == (2, 0)


def test_arange_and_linspace_take_any_number():
    assert rg.arange(np.float32(2.5)).tolist() == [0, 1, 2]
    assert rg.arange(rg.tensor(3)).dtype == rg.int64
    assert rg.arange(2**63, 2**63 + 2, dtype="uint64").tolist() == [2**63, 2**63 + 1]
    assert rg.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert rg.arange(-3).shape == (0,)
    assert rg.arange(3, dtype="float64").dtype == rg.float64
    assert rg.linspace(np.float64(0), 1, 3).tolist() == [0, 0.5, 1]


def test_axis_arguments_as_users_of_other_libraries_write_them():
    x = rg.ones((2, 3))
    axis: Any = np.int64(0)
    assert rg.sum(x, axis=axis).shape == (3,)
    assert x.reshape(np.int64(6)).shape == x.reshape(np.array([6])).shape == (6,)
    assert rg.concat([x, x], 1).shape == (2, 6)
    assert rg.stack([x, x], -1).shape == (2, 3, 2)
    assert rg.take(x, [0], 1).shape == (2, 1)
    assert rg.roll(rg.arange(6).reshape(2, 3), 1).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert rg.roll(rg.arange(6).reshape(2, 3), (1, 1), (0, 1)).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert rg.ones((1, 2, 1)).squeeze().shape == (2,)
    assert rg.pad(x, 1).shape == (4, 5)
    assert rg.tile(rg.arange(2), 2).tolist() == [0, 1, 0, 1]
    assert rg.tensordot(x, rg.ones((3, 2)), axes=(1, 0)).shape == (2, 2)


def test_learned_slopes_get_their_gradient():
    slope = rg.tensor(0.5, requires_grad=True)
    rg.leaky_relu(rg.tensor([-2.0, 3.0]), slope).sum().backward()
    assert slope.grad is not None
    assert slope.grad.item() == -2


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_functional_updates_are_numpys_assignments(dtype, backend):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2 if dtype == "bool" else 9, (3, 4))
    keys: list[Any] = [
        0, slice(1, None), (..., 2), ([0, 2], [1, 1]), ([0, 0, 0], [1, 1, 1]),
        a > 1, (slice(None), [3, 3, 0]), (None, 1), np.array([[0, 2], [0, 1]]), [],
    ]  # fmt: skip
    with rg.backend(backend):
        for key in keys:
            x = rg.tensor(a, dtype)
            value = rng.integers(0, 9, np.zeros((3, 4))[key].shape)
            expected = a.astype(bool) if dtype == "bool" else a.copy()
            expected[key] = value
            assert x.at[key].set(rg.tensor(value, dtype)).tolist() == expected.tolist()
            if dtype != "bool":
                expected = a.copy()
                np.add.at(expected, key, value)
                assert x.at[key].add(rg.tensor(value, dtype)).tolist() == expected.tolist()


def test_the_gradient_of_an_update_goes_to_the_value_that_stays():
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = rg.tensor([5.0, 6.0, 7.0], requires_grad=True)
    y = x.at[[0, 0, 2]].set(v)
    (y * rg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert y.tolist() == [6, 2, 7]
    assert x.grad is not None
    assert v.grad is not None
    assert (x.grad.tolist(), v.grad.tolist()) == ([0, 10, 0], [0, 1, 100])
    with pytest.raises(rg.IndexRangeError, match="5"):
        x.at[[0, 5]].set(1).numpy()
    with pytest.raises(rg.DTypeError, match="booleans"):
        rg.tensor([True]).at[0].add(True)


def test_universal_functions_of_numpy():
    x = rg.tensor([0.5, 2.0], requires_grad=True)
    y: Any = np.exp(x) + np.arctan2(x, np.ones(2)) - np.power(x, 2)
    assert isinstance(y, rg.Tensor)
    array = np.array([0.5, 2.0])
    np.testing.assert_allclose(y.tolist(), np.exp(array) + np.arctan(array) - array**2, rtol=1e-6)
    np.add(y, 1.0).sum().backward()
    slope = np.exp(array) + 1 / (1 + array**2) - 2 * array
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6)
    found: Any = rg.jit(np.maximum)(rg.tensor([1, 5]), 3)  # type: ignore[arg-type]
    assert found.tolist() == [3, 5]
    assert np.isnan(x).tolist() == [False, False]


def test_what_numpy_cannot_do_with_a_tensor():
    x: Any = rg.ones(2)
    with pytest.raises(rg.DTypeError, match=r"np.add.reduceat of a Tensor: .*rg.segment_sum"):
        np.add.reduceat(x, [0])
    with pytest.raises(TypeError, match="isnat"):  # NumPy's own error
        np.isnat(x)
    array = np.ones(2)
    x.requires_grad = True
    with pytest.raises(TypeError, match=r"np.isnat has no counterpart.*rg.isnan.*x.detach\(\)"):
        np.isnat(x)
    with pytest.raises(TypeError, match=r"takes no out: .*x = x \+ y"):
        array += x
    with pytest.raises(TypeError, match="takes no out"):
        np.add(array, array, out=x)
    with pytest.raises(TypeError, match="takes no where"):
        np.exp(x, where=array > 0)


def test_an_array_is_changed_by_what_has_no_history():
    """Gradient descent as somebody writes it who knows NumPy."""
    x = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, -1.0]])
    y = x @ [0.5, -2.0]
    loss: Any = lambda w: np.mean((x @ w - y) ** 2)
    w = np.zeros(2)
    held = w
    for _ in range(200):
        w -= 0.05 * rg.grad(loss)(w)
    assert w is held
    np.testing.assert_allclose(w, [0.5, -2.0], atol=1e-3)
    counts = np.zeros(2, np.int64)
    np.add(rg.asarray([1, 2]), counts, out=counts)
    assert counts.tolist() == [1, 2]
    np.divide(rg.asarray(1.0), w, where=rg.asarray(w > 0), out=held)
    np.testing.assert_allclose(held, [2.0, -2.0], atol=1e-2)
    with pytest.raises(rg.DTypeError, match="takes no out"):
        rg.jit(lambda x: np.add(x, 1, out=counts))(rg.asarray([1, 2]))


def test_methods_of_ufuncs():
    a = np.array([[1.0, 2.0], [3.0, 5.0]])
    x: Any = rg.tensor(a, requires_grad=True)
    for f in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp):
        for options in ({}, {"axis": 1}, {"axis": None}, {"axis": 1, "keepdims": True}):
            found: Any = f.reduce(x, **options)
            np.testing.assert_allclose(found.detach().numpy(), f.reduce(a, **options))
        found = f.accumulate(x, axis=1)
        np.testing.assert_allclose(found.detach().numpy(), f.accumulate(a, axis=1))
        found = f.outer(x, a[0])
        np.testing.assert_allclose(found.detach().numpy(), f.outer(a, a[0]))
    found = np.multiply.outer(x, a[0])
    found.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert np.add(x, a, dtype=np.float32).dtype is rg.float32
    with pytest.raises(rg.ArgumentError, match=r"write x = x.at\[indices\].add\(values\)"):
        np.add.at(x, [0], 1.0)
    with pytest.raises(rg.DTypeError, match="takes no where"):
        np.add.reduce(x, where=a > 2)
    with pytest.raises(rg.DTypeError, match="takes no out"):
        np.nancumsum(x, out=a)


def test_ufuncs_of_scipy_and_others():
    """SciPy's are those of `rg.special`; others of the same name are not."""
    x = rg.tensor([0.5, 1.5], dtype=rg.float64, requires_grad=True)
    found: Any = scipy.special.gammainc(2.0, x)
    np.testing.assert_allclose(found.detach().numpy(), scipy.special.gammainc(2.0, [0.5, 1.5]))
    assert found.requires_grad
    own: Any = np.frompyfunc(lambda v: 3 * v, 1, 1)
    with pytest.raises(rg.DTypeError, match=r"has no counterpart.*rg.custom_vjp"):
        own(x)


def test_a_ufunc_without_counterpart_is_computed_where_no_history_is_lost():
    x = rg.tensor([0.5, 1.5], dtype=rg.float64)
    found: Any = scipy.special.jv(1.5, x)
    assert isinstance(found, rg.Tensor)
    np.testing.assert_array_equal(found.numpy(), scipy.special.jv(1.5, [0.5, 1.5]))
    sine, cosine = scipy.special.sici(x)  # of several results
    assert isinstance(sine, rg.Tensor)
    np.testing.assert_array_equal(cosine.numpy(), scipy.special.sici([0.5, 1.5])[1])
    for transform in (rg.jit, rg.grad, rg.vmap):
        with pytest.raises(rg.DTypeError, match="has no counterpart"):
            transform(lambda x: rg.sum(scipy.special.jv(1.5, x)))(x)


def test_reductions_where_a_mask_says():
    a = np.array([[1.0, 2.0, -3.0], [4.0, 0.5, 6.0]])
    x, rows = rg.tensor(a, dtype=rg.float64), np.array([[True], [False]])
    for f in (np.sum, np.prod, np.mean, np.any, np.all, np.var, np.std):
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}):
            np.testing.assert_allclose(f(x, where=x > 0, **options), f(a, where=a > 0, **options))
        np.testing.assert_allclose(f(x, where=rows, axis=0), f(a, where=rows, axis=0))
    np.testing.assert_allclose(np.std(x, 1, where=x > 0, ddof=1), np.std(a, 1, where=a > 0, ddof=1))
    slope = rg.grad(lambda x: np.mean(x, where=a > 0))(x)
    np.testing.assert_allclose(slope, (a > 0) / 5)


def test_reductions_from_an_initial_value():
    a = np.array([[1.0, 2.0, -3.0], [4.0, 0.5, 6.0]])
    x = rg.tensor(a)
    for f in (np.sum, np.prod, np.max, np.min, np.amax):
        for start in (5.0, -1.0):
            for options in ({}, {"axis": 0}, {"axis": 1, "where": a > 0}):
                right = f(a, initial=start, **options)
                np.testing.assert_allclose(f(x, initial=start, **options), right)
    with pytest.raises(rg.ArgumentError, match="wants an initial value"):
        np.max(x, where=a > 0)
    found: Any = np.mean(x, 0, np.float32, where=a > 0)
    assert found.dtype == rg.float32
    np.testing.assert_allclose(found, np.mean(a, 0, np.float32, where=a > 0), 1e-6)


def test_factors_of_a_matrix_by_numpys_mode():
    a = np.array([[1.0, 2.0], [3.0, 5.0], [0.5, 1.0]])
    x = rg.tensor(a, dtype=rg.float64)
    found: Any = np.linalg.qr(x, "r")
    plain: Any = np.linalg.qr(a, "r")
    np.testing.assert_allclose(abs(found), abs(plain))
    whole: Any = np.linalg.qr(x, mode="complete")
    right = abs(np.linalg.qr(a, mode="complete").Q)
    np.testing.assert_allclose(abs(whole.Q), right, atol=1e-14)


def test_conversions_give_numpys_arrays_of_what_has_no_history():
    x = rg.tensor([1.0, 2.0])
    for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        found = f(x)
        assert type(found) is np.ndarray
        found += 1
        assert x.tolist() == [1.0, 2.0]
        assert isinstance(f(x.requires_grad_()), rg.Tensor)
        assert rg.jit(f)(x.detach()).shape == found.shape
        x = x.detach()
    one, other = np.atleast_1d(rg.asarray(1.0), rg.asarray(2.0))
    assert type(one) is type(other) is np.ndarray


def test_operators_leave_sparse_matrices_and_linear_operators_to_these():
    a = np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]])
    x, sparse = rg.tensor([[1.0, 2.0, 3.0]], dtype=rg.float64), scipy.sparse.csr_array(a)
    np.testing.assert_allclose(np.asarray(x @ sparse), x.numpy() @ a)
    np.testing.assert_allclose(np.asarray(sparse.T @ x[0]), a.T @ x[0].numpy())
    operator = scipy.sparse.linalg.aslinearoperator(a)
    np.testing.assert_allclose(np.asarray(x @ operator), x.numpy() @ a)
    with pytest.raises(rg.DTypeError, match="expected a tensor"):
        rg.matmul(x, sparse)


def test_numpys_testing_takes_tensors():
    x: Any = rg.tensor([1.0, 2.0], requires_grad=True)
    np.testing.assert_allclose(x, [1.0, 2.0])
    np.testing.assert_array_equal(x, np.array([1.0, 2.0], np.float32))
    np.testing.assert_array_almost_equal(x, [1.0, 2.0])
    np.testing.assert_array_less(x, [1.5, 2.5])
    for check in (np.testing.assert_allclose, np.testing.assert_array_equal):
        with pytest.raises(AssertionError):
            check(x, [1.0, 3.0])


def test_small_arrays_and_mixed_integers():
    one: Any = rg.asarray(np.array([2], np.int32))
    assert [1, 2, 3][one] == 3
    assert list(range(int(one))) == [0, 1]
    found: Any = np.add(rg.asarray(np.array([1], np.uint64)), one)
    assert found.dtype is rg.float64
    assert np.add(rg.asarray(np.array([1], np.uint8)), one).dtype is rg.int32
    assert np.sum(one).tolist() == 2
    assert np.einsum(rg.ones((2, 2)), [0, 0]).item() == 2.0
    with pytest.raises(rg.ShapeError, match="followed by a list"):
        rg.einsum(rg.ones((2, 2)), rg.ones(2))
    with pytest.raises(rg.ShapeError, match="numbers from 0 to 51"):
        rg.einsum(rg.ones((2, 2)), [0, 99])


def test_joined_by_index():
    """`np.r_` makes arrays of what it is given before anything else can see it; a list keeps its
    tensors under `np.concatenate`."""
    x: Any = rg.tensor([1.0, 2.0])
    np.testing.assert_array_equal(np.r_[x, 3.0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(np.c_[x, x], [[1.0, 1.0], [2.0, 2.0]])
    assert isinstance(np.concatenate([x, np.ones(1, np.float32)]), rg.Tensor)
