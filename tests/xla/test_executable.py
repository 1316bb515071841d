"""Programs on XLA, called as users call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

jax = pytest.importorskip("jax", reason="the extra xla is not installed")


def on_both(f: Any, *args: Any) -> tuple[Any, Any]:
    """What a function gives on the reference backend, and on xla."""
    found = []
    for name in ("reference", "xla"):
        with rg.backend(name):
            found.append(f(*args).numpy())
    return found[0], found[1]


def test_gradients_are_those_of_the_definition() -> None:
    w = rg.tensor(np.linspace(-1, 1, 12).reshape(3, 4), dtype=rg.float64)
    x = rg.tensor(np.linspace(0, 2, 6).reshape(2, 3), dtype=rg.float64)
    f = rg.jit(rg.grad(lambda w: (rg.softmax(x @ w, -1) ** 2).sum()))
    expected, found = on_both(f, w)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_64_bits_are_for_this_backend_alone() -> None:
    with rg.backend("xla"):
        assert (rg.tensor([1.0], dtype=rg.float64) / 3).numpy()[0] == 1 / 3
        assert (rg.tensor([2**40]) + 1).numpy()[0] == 2**40 + 1
    assert not jax.config.jax_enable_x64
    assert jax.numpy.zeros(1).dtype == np.float32


def test_an_index_out_of_range_is_the_error_of_all_backends() -> None:
    f = rg.jit(lambda x, i: x[i])
    messages = []
    for name in ("llvm", "xla"):
        with (
            rg.backend(name),
            pytest.raises(rg.IndexRangeError, match=r"the index -4 on axis 0 of size 3") as error,
        ):
            f(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([0, -4, 5]))
        messages.append(str(error.value).partition(":")[0])
    assert messages[0] == messages[1]
    with rg.backend("xla"):  # the program can be called again
        assert f(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([0, -3, 2])).tolist() == [1.0, 1.0, 3.0]


def test_arrays_stay_until_somebody_looks() -> None:
    f = rg.jit(lambda x: x * 2)
    with rg.backend("xla"):
        y = f(f(rg.tensor([1.0, 2.0])))
        assert isinstance(y.value_there().copy.array, jax.Array)
        assert y.tolist() == [4.0, 8.0]
    assert (y + 1).tolist() == [5.0, 9.0]  # on llvm, which fetches it


def test_donated_memory_is_taken() -> None:
    step = rg.jit(lambda s, x: s + x, donate=("s",))
    with rg.backend("xla"):
        s = rg.tensor(np.zeros(4, np.float32))
        later = step(s, rg.tensor(np.ones(4, np.float32)))
        again = step(later, rg.tensor(np.ones(4, np.float32)))
        assert again.tolist() == [2.0] * 4
        with pytest.raises(rg.DonatedError):
            later.numpy()


def test_a_step_is_compiled_once() -> None:
    step = rg.jit(lambda s, x: (s + x, s.sum()), donate=("s",))
    with rg.backend("xla"):
        s = rg.tensor(np.zeros(7, np.float32))
        for _ in range(3):
            s, total = step(s, rg.tensor(np.ones(7, np.float32)))
        assert total.item() == 14.0
    (traced,) = step._traces.values()
    (compiled,) = traced.program._by_sizes.values()  # type: ignore[attr-defined]
    assert compiled.run._cache_size() == 0
    assert compiled.consume._cache_size() == 1


@pytest.mark.slow
def test_what_somebody_else_has_is_not_taken() -> None:
    step = rg.jit(lambda s, x: s + x, donate=("s",))
    with rg.backend("xla"):
        s = rg.tensor([1.0]) + 1
        held = s.value_there()
        assert step(s, rg.tensor([1.0])).tolist() == [3.0]
        assert np.asarray(held) == [2.0]
        t = rg.tensor([1.0]) + 1
        assert step(t, t).tolist() == [4.0]


@pytest.mark.slow
def test_sizes_with_names() -> None:
    f = rg.jit(rg.grad(lambda x: (x * x).sum()), shapes={"x": ("N",)})
    with rg.backend("xla"):
        for n in (3, 5, 0, 3):
            assert f(rg.tensor(np.ones(n))).tolist() == [2.0] * n


@pytest.mark.slow
def test_sums_of_many_are_as_accurate_as_stated() -> None:
    x = np.full(10_000_000, 0.1, np.float32)
    with rg.backend("xla"):
        total = rg.tensor(x).sum().item()
    exact = float(np.sum(x, dtype=np.float64))
    assert abs(total - exact) <= (128 + np.log2(x.size)) * 2.0**-24 * exact


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
def test_half_precision_is_rounded_at_each_operation(dtype: Any) -> None:
    x = rg.tensor(np.linspace(0.1, 3, 50), dtype=dtype)
    expected, found = on_both(rg.jit(lambda x: (x * x + x) * x - x), x)
    assert found.tobytes() == expected.tobytes()


def test_without_jax_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd import xla

    monkeypatch.setattr(xla, "is_installed", lambda name: name != "jax")
    assert xla.missing() is not None
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[xla\]'"):
        rg.backend("xla")
