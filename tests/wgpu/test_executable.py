"""Programs on the GPU: what stays there, errors, sizes, limits."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime.device_array import DeviceArray
from tests.wgpu.gpu import device_with, needs_gpu

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    with rg.backend("wgpu"):
        yield


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often numbers went to the GPU and came from there."""
    from retrograd.wgpu.device import Device

    counts = {"read": 0, "write": 0}
    for name in counts:
        own = getattr(Device, name)

        def counted(self: Any, *args: Any, _own: Any = own, _name: str = name) -> Any:
            counts[_name] += 1
            return _own(self, *args)

        monkeypatch.setattr(Device, name, counted)
    return counts


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_results_stay_on_the_gpu_until_somebody_looks(traffic: dict[str, int]) -> None:
    step = rg.jit(lambda p: p * 0.5 + 1)
    p = rg.tensor(numbers(8, 4))
    for _ in range(3):
        p = step(p)
    assert traffic == {"read": 0, "write": 1}
    expected = numbers(8, 4) * 0.125 + 1.75
    np.testing.assert_allclose(p.numpy(), expected, rtol=1e-6)
    p.numpy()
    assert traffic["read"] == 1


def test_an_argument_is_uploaded_once(traffic: dict[str, int]) -> None:
    weights, double = rg.tensor(numbers(5)), rg.jit(lambda w: w * 2)
    double(weights)
    double(weights)
    assert traffic["write"] == 1


def test_an_array_that_somebody_edits_is_uploaded_again() -> None:
    x, double = numbers(5), rg.jit(lambda x: x * 2)
    double(x)
    x[:] = 3
    assert double(x).tolist() == [6.0] * 5


def test_tensors_go_on_elsewhere() -> None:
    y = rg.jit(lambda x: x + 1)(rg.tensor(numbers(3, 2)))
    expected = numbers(3, 2) + 1
    for name in ("llvm", "reference"):
        with rg.backend(name):
            np.testing.assert_array_equal((y * 2).numpy(), expected * 2)
            np.testing.assert_array_equal(rg.jit(lambda y: y * 2)(y).numpy(), expected * 2)
    copied = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(copied.numpy(), expected)
    y[0, 0] = 7.0
    assert y[0, 0].item() == 7.0


def test_gradients_and_their_losses() -> None:
    x = rg.tensor(numbers(6, 3), requires_grad=True)
    loss = (rg.relu(x) ** 2).sum()
    loss.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.maximum(numbers(6, 3), 0), rtol=1e-6)


def test_symbolic_sizes_and_none() -> None:
    f = rg.jit(lambda x: (x.sum(0), x * 2))
    for n in (5, 3, 0, 1, 9):
        x = numbers(n, 4)
        total, twice = f(rg.tensor(x))
        np.testing.assert_allclose(total.numpy(), x.sum(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(twice.numpy(), x * 2)


@pytest.mark.parametrize("count", [1, 7, 65, 4097, 300_000])
def test_sums_are_accurate(count: int) -> None:
    x = np.abs(numbers(count))
    exact = x.astype(np.float64).sum()
    assert abs(rg.tensor(x).sum().item() - exact) <= 4e-7 * exact
    table = np.abs(numbers(count, 3))
    np.testing.assert_allclose(
        rg.tensor(table).sum(0).numpy(), table.sum(0, dtype=np.float64), rtol=4e-7
    )


def test_an_index_out_of_range_is_the_error_of_llvm() -> None:
    x, i = rg.tensor(numbers(7, 2)), rg.tensor(np.array([0, 6, 7, -8]))

    def message() -> str:
        with pytest.raises(rg.IndexRangeError) as found:
            rg.jit(lambda x, i: x[i])(x, i).numpy()
        return str(found.value)

    here = message()
    with rg.backend("llvm"):
        assert message() == here
    assert rg.jit(lambda x, i: x[i])(x, rg.tensor(np.array([1]))).shape == (1, 2)


def test_more_arrays_than_a_shader_may_bind() -> None:
    xs = [numbers(5, 3, seed=k) for k in range(12)]

    def f(*xs: Any) -> Any:
        product = xs[0]
        for x in xs[1:]:
            product = product * x + 1
        return product, [x * 2 + y for x, y in itertools.pairwise(xs)]

    with device_with(storage_buffers=4):
        product, sums = rg.jit(f)(*map(rg.tensor, xs))
        found = [product.numpy(), *[s.numpy() for s in sums]]
    expected, more = f(*xs)
    for y, r in zip(found, [expected, *more], strict=True):
        np.testing.assert_allclose(y, r, rtol=1e-5)


def test_grids_of_more_than_one_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.wgpu import shader_writer, specialization

    for module in (shader_writer, specialization):
        monkeypatch.setattr(module, "MAX_GROUPS", 3)
    x = numbers(1500)
    np.testing.assert_array_equal(rg.jit(lambda x: x + 1)(rg.tensor(x)).numpy(), x + 1)


def test_a_gpu_without_double_precision_says_so() -> None:
    x = rg.tensor(numbers(3).astype(np.float64))
    with device_with(float64=False):
        with pytest.raises(rg.BackendError, match=r"no float64.*add"):
            rg.jit(lambda x: x + 1)(x).numpy()
        with rg.backend("wgpu", fallback=True):
            np.testing.assert_array_equal(rg.jit(lambda x: x + 1)(x).numpy(), x.numpy() + 1)


def test_arrays_beyond_the_limit_of_a_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.wgpu.device import device

    device().trim()  # or one of the pool would do
    monkeypatch.setattr(device(), "most_bytes", 1 << 12)
    with pytest.raises(rg.MemoryLimitError, match="more than one buffer"):
        rg.jit(lambda x: x + 1)(rg.tensor(numbers(90_001))).numpy()


def test_memory_that_there_is_not_is_predicted() -> None:
    with device_with(binding_bytes=1 << 12), pytest.raises(rg.MemoryLimitError, match=r"bind.*add"):
        rg.jit(lambda x: x.sum() * 2 + rg.add(x, 1.0))(rg.tensor(numbers(5000))).numpy()


def test_a_lost_gpu_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.wgpu.device import device

    f, x = rg.jit(lambda x: x + 1), rg.tensor(numbers(3))
    f(x).numpy()

    def lost(*_: Any) -> None:
        raise device().wgpu.GPUError("device lost")

    monkeypatch.setattr(device().queue, "submit", lost)
    with pytest.raises(rg.BackendError, match="stopped answering"):
        f(x)


def test_arrays_that_a_program_keeps() -> None:
    table = numbers(4, 3)
    f = rg.jit(lambda x: x @ table + np.arange(3, dtype=np.float32))
    x = numbers(2, 4, seed=1)
    np.testing.assert_allclose(f(rg.tensor(x)).numpy(), x @ table + np.arange(3), rtol=1e-5)


def test_complex_numbers_and_half_precision() -> None:
    z = (numbers(4) + 1j * numbers(4, seed=1)).astype(np.complex64)
    np.testing.assert_allclose(rg.jit(lambda z: z * z)(rg.tensor(z)).numpy(), z * z, rtol=1e-6)
    h = numbers(9).astype(np.float16)
    np.testing.assert_array_equal((rg.tensor(h) * rg.tensor(h)).numpy(), h * h)


def test_device_arrays_are_read_like_arrays() -> None:
    y: Any = rg.jit(lambda x: x + 1)(rg.tensor(numbers(2, 2)))
    held = y.bare_array() if y.bare_array() is not None else y._known()
    assert isinstance(held, DeviceArray)
    assert not held.is_fetched
    np.testing.assert_array_equal(np.asarray(held), numbers(2, 2) + 1)
    assert held.is_fetched


def test_donated_memory_is_written_over_where_nobody_else_has_it() -> None:
    step = rg.jit(lambda s, x: (s * 0.5 + x, (s * x).sum()), donate=("s",))
    s, x = rg.tensor(numbers(6)), rg.tensor(np.ones(6, np.float32))
    expected = numbers(6)
    s, _ = step(s, x)
    for _ in range(3):
        place = s.value_there().copy.gpu
        later, _ = step(s, x)
        assert later.value_there().copy.gpu is place
        with pytest.raises(rg.DonatedError):
            s.numpy()
        s = later
    held = s.value_there()
    later, _ = step(s, x)
    for _ in range(4):
        expected = expected * 0.5 + 1
    np.testing.assert_allclose(np.asarray(held), expected, rtol=1e-6)
    np.testing.assert_allclose(later.numpy(), expected * 0.5 + 1, rtol=1e-6)


def test_a_check_that_fails_leaves_donated_memory_as_it_was() -> None:
    step = rg.jit(lambda s, i: (s + s[i].sum(), s.sum()), donate=("s",))
    s, _ = step(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([0]))
    for _ in range(2):
        with pytest.raises(rg.IndexRangeError, match="the index 7"):
            step(s, rg.tensor([7]))
    assert s.tolist() == [2.0, 3.0, 4.0]
    later, total = step(s, rg.tensor([2]))
    assert later.tolist() == [6.0, 7.0, 8.0]
    assert total.item() == 9.0


def test_one_array_that_is_donated_and_read() -> None:
    step = rg.jit(lambda s, x: (s + x[::-1], (s * 2).sum()), donate=("s",))
    s, _ = step(rg.tensor([1.0, 2.0]), rg.tensor([0.0, 0.0]))
    assert step(s, s)[0].tolist() == [3.0, 3.0]
