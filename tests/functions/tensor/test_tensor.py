"""`Tensor`: values, operators, history, `backward`."""

import gc
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.leaf import PENDING


def test_creation_keeps_the_dtypes_python_users_expect():
    assert rg.tensor(1.5).dtype == rg.float32
    assert rg.tensor(3).dtype == rg.int64
    assert rg.tensor([True, False]).dtype == rg.bool
    assert rg.tensor(np.array([1.0])).dtype == rg.float64
    assert rg.tensor([1.0, 2.0], dtype="bfloat16").dtype == rg.bfloat16
    assert rg.tensor([rg.tensor(1.0), rg.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert rg.tensor([]).shape == (0,)


def test_tensor_copies_and_asarray_shares():
    source = np.zeros(3, np.float32)
    copied, shared = rg.tensor(source), rg.asarray(source)
    source[0] = 5
    assert copied.tolist() == [0, 0, 0]
    assert shared.tolist() == [5, 0, 0]
    with pytest.raises(ValueError, match="copy"):
        rg.asarray([1, 2], copy=False)


def test_numpy_view_is_read_only():
    x = rg.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 2


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1.0, 2.0], [3.0]], rg.ShapeError, "ragged"),
        ([object()], rg.DTypeError, "object"),
        (np.array([1 + 2j], np.clongdouble), rg.DTypeError, "complex256|clongdouble"),
        ("text", rg.DTypeError, "str data"),
        ([2**70], rg.DTypeError, "does not fit"),
    ],
)
def test_data_that_is_no_array_of_numbers(data, error, words):
    with pytest.raises(error, match=words):
        rg.tensor(data)


def test_python_numbers_take_the_dtype_of_the_array():
    x = rg.tensor([1.0, 2.0], dtype="float16")
    assert (x * 2).dtype == rg.float16
    assert (2.5 * x).dtype == rg.float16
    assert (rg.tensor([1, 2]) + 1).dtype == rg.int64
    assert (rg.tensor([1, 2]) * 0.5).dtype == rg.float32
    assert (rg.tensor([1], dtype="int8") + rg.tensor([1.0], dtype="float64")).dtype == rg.float64
    assert (rg.tensor([1.0], dtype="float16") + rg.tensor([1.0], dtype="bfloat16")).dtype == (
        rg.float32
    )
    with pytest.raises(rg.DTypeError, match="300 does not fit"):
        rg.tensor([1], dtype="int8") + 300


def test_operators_agree_with_numpy():
    a = np.array([[1.5, -2.0], [3.0, 0.5]], np.float32)
    b = np.array([2.0, -0.5], np.float32)
    x, y = rg.tensor(a), rg.tensor(b)
    for got, expected in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b),
        (x % y, a % b), (x**2, a**2), (2.0 - x, 2 - a), (1 / x, 1 / a), (-x, -a), (abs(x), abs(a)),
        (x @ y, a @ b), (x.T, a.T), (x > y, a > b), (x == y, a == b), ((x > 0) & (x < 2),
        (a > 0) & (a < 2)),
        (~(x > 0), ~(a > 0)), (a - y, a - b), (2 ** rg.tensor([1.0, 3.0]), np.array([2.0, 8.0])),
    ]:  # fmt: skip
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)  # type: ignore[attr-defined]


def test_conversion_to_python():
    assert rg.tensor(2.0).item() == 2.0
    assert float(rg.tensor([3.0])) == 3.0
    assert [10, 20][rg.tensor(1)] == 20
    assert bool(rg.tensor(1.0) > 0)
    assert len(rg.zeros((4, 2))) == 4
    assert [r.tolist() for r in rg.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    with pytest.raises(rg.ShapeError, match="one element"):
        rg.ones(2).item()
    with pytest.raises(TypeError):
        len(rg.tensor(1.0))
    assert np.asarray(rg.ones(2)).tolist() == [1, 1]
    assert np.from_dlpack(rg.ones(2)).tolist() == [1, 1]


def test_repr_shows_values_dtype_and_gradient():
    assert repr(rg.tensor([1.0, 2.0], requires_grad=True)) == (
        "Tensor([1., 2.], dtype=float32, requires_grad=True)"
    )


def test_backward_accumulates_into_leaves():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    assert x.grad is None


def test_backward_with_a_seed():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(seed=[1.0, 10.0])
    assert x.grad.tolist() == [2, 40]
    with pytest.raises(rg.ShapeError, match="seed"):
        (x * x).backward(seed=[1.0])
    with pytest.raises(rg.GradientError, match="scalar"):
        (x * x).backward()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_backward_of_one_element_starts_from_one_as_in_pytorch(dtype):
    w = rg.tensor([[2.0]], dtype=dtype, requires_grad=True)
    for _ in range(2):  # the second time by what was recorded
        (w * w * w).backward()
    assert w.grad.shape == (1, 1)
    assert w.grad.tolist() == [[24.0]]
    with pytest.raises(rg.GradientError, match=r"from a scalar, but .* \(0,\)"):
        (w[0] * w[0])[:0].backward()
    z = rg.tensor([1j], requires_grad=True)
    with pytest.raises(rg.GradientError, match="from a real number"):
        (z * z).backward()


def test_backward_without_anything_to_differentiate():
    with pytest.raises(rg.GradientError, match="requires_grad"):
        rg.ones(3).sum().backward()
    with pytest.raises(rg.GradientError, match="floating"):
        rg.tensor([1], requires_grad=True)


def test_backward_after_looking_at_the_loss_and_at_intermediates():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    h = x * x
    assert h.tolist() == [1, 4]
    loss = (h * h).sum()
    assert loss.item() == 17
    loss.backward()
    assert x.grad.tolist() == [4, 32]


def test_a_tensor_used_twice_gets_both_contributions():
    x = rg.tensor(3.0, requires_grad=True)
    (x + x * x).backward()
    assert x.grad.item() == 7


def test_no_grad_and_detach_cut_the_history():
    x = rg.tensor(2.0, requires_grad=True)
    with rg.no_grad():
        y = x * 3
    assert not y.requires_grad
    z = (x * 2).detach()
    assert not z.requires_grad
    (x * y * z).backward()
    assert x.grad.item() == 24.0
    with pytest.raises(rg.GradientError):
        y.backward()


@rg.no_grad()
def _tripled(x):
    return x * 3


def test_no_grad_decorates():
    assert not _tripled(rg.tensor(1.0, requires_grad=True)).requires_grad


def test_updates_change_a_copy_and_operators_in_place_the_tensor():
    x = rg.zeros(3)
    assert x.at[0].set(1.0).tolist() == [1, 0, 0]
    assert x.at[1:].add(2.0).tolist() == [0, 2, 2]
    y = x
    y += 1
    assert x.tolist() == y.tolist() == [1, 1, 1]


def test_gradient_of_functional_updates():
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = rg.tensor(5.0, requires_grad=True)
    (x.at[1].set(v) * rg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1, 0, 100]
    assert v.grad.item() == 10


def test_a_training_loop_compiles_once_whatever_the_learning_rate():
    x = rg.random.Generator(0).normal((8, 3))
    w = rg.random.Generator(1).normal((3,)).requires_grad_()
    misses = []
    for step in range(6):
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        new = w - rg.asarray(w.grad) * (0.1 / (step + 3))
        w = rg.tensor(new, requires_grad=True)
        misses.append(rg.cache_stats()["misses"])
    assert misses[1] == misses[-1]


def test_looking_at_one_result_computes_what_is_held_on_the_way():
    x = rg.ones(3)
    h = x + 1
    y = h * 2
    y.numpy()
    assert h.is_computed


@pytest.mark.slow
def test_history_is_freed_after_backward():
    x = rg.tensor([1.0], requires_grad=True)
    y = x * 2
    node = weakref.ref(y.node)
    loss = (y * y).sum()
    loss.backward()
    x.grad.numpy()
    loss.numpy()
    del y
    gc.collect()
    assert node() is None


@pytest.mark.slow
def test_a_long_loop_does_not_keep_its_past():
    x = rg.tensor([1.0])
    first: Any = None
    for i in range(50):
        x = x * 0.5 + 0.25
        x.numpy()
        if i == 0:
            first = weakref.ref(x.node)
    gc.collect()
    assert first() is None
    assert len([h for h in PENDING.values() if h is x]) == 0


def test_deep_chain_of_eager_operations():
    x = rg.tensor(0.5, requires_grad=True)
    y = x
    with rg.backend("reference"):
        for _ in range(3000):
            y = y * 1.0001
        y.backward()
        assert x.grad.item() == pytest.approx(1.0001**3000, rel=1e-3)


def test_threads_do_not_disturb_each_other():
    results: dict[int, Any] = {}

    def work(k):
        x: Any = rg.tensor([float(k), 2.0], requires_grad=True)
        for _ in range(20):
            x.grad = None
            (x * x * k).sum().backward()
            results[k] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: [2.0 * k * k, 4.0 * k] for k in range(1, 5)}


def test_unknown_backend():
    with pytest.raises(rg.BackendError, match="llvm"), rg.backend("nonsense"):
        pass
    assert "reference" in rg.backends()


def test_backends_agree_on_eager_code():
    results = []
    for name in ("reference", "llvm"):
        with rg.backend(name):
            x = rg.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
            loss = rg.log_softmax(x @ x.T).mean()
            loss.backward()
            results.append((loss.item(), x.grad.numpy()))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-7)


def test_errors_name_the_shapes():
    with pytest.raises(rg.ShapeError, match=r"\(2, 3\) and \(4,\)"):
        rg.ones((2, 3)) + rg.ones(4)
    with pytest.raises(rg.ShapeError, match=r"f32\[2, 3\] and f32\[2, 3\]"):
        rg.ones((2, 3)) @ rg.ones((2, 3))
    with pytest.raises(rg.DTypeError):
        rg.ones(3) + "text"
    x, y = rg.ones(2), rg.ones(3)
    with pytest.raises(rg.ShapeError, match=r"rg.add at .*test_tensor.py:\d+ in .*: x \+ y"):
        x + y


def test_no_warning_reaches_the_user_from_infinities():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in rg.backends():
            with rg.backend(name):
                assert np.isinf((rg.tensor(1.0) / rg.tensor(0.0)).item())
                assert np.isnan(rg.log(rg.tensor(-1.0)).item())


def test_a_derivative_that_is_zero_is_a_gradient_of_zeros():
    x = rg.tensor([1.5, -0.5], requires_grad=True)
    (rg.floor(x) + rg.sign(x)).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_an_unknown_device_is_refused():
    assert rg.ones(2, device="cpu").tolist() == [1, 1]
    with pytest.raises(rg.OptionError, match="cuda"):
        rg.zeros(2, device="cuda")


def test_what_is_no_more_than_an_array_can_become_a_leaf():
    for make in (
        lambda: rg.full((), 0.3, requires_grad=True),
        lambda: rg.full((2,), 0.3).detach().requires_grad_(),
        lambda: rg.Tensor.dehydrated(np.ones(2)).requires_grad_(),
        lambda: rg.full_like(rg.ones(2), 0.5, requires_grad=True),
    ):
        x = make()
        assert x.requires_grad
        assert x.is_leaf
        (x * x).sum().backward()
        assert (x.grad == 2 * x.detach()).all()
