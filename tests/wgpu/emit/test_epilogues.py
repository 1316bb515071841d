"""Maps that are done by the dispatch before them: which are, that values are those of the CPU, and
that what others read, or what would be read too late, is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import as_dtype
from retrograd.wgpu.executable import WgpuProgram
from retrograd.wgpu.run import CommandEncoder
from retrograd.wgpu.specialization import Specialization
from tests.wgpu.gpu import needs_gpu

pytestmark = needs_gpu
Array = np.ndarray[Any, Any]
R = np.random.default_rng(0)


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the dispatches of programs that run here."""
    labels: list[str] = []
    step = CommandEncoder.step

    def noted(self: Any, item: Any) -> None:
        labels.append(item.dispatch.label)
        step(self, item)

    monkeypatch.setattr(CommandEncoder, "step", noted)
    return labels


def checked(f: Callable[..., Any], *arrays: Array, rtol: float = 2e-5) -> None:
    """That the results on the GPU are those of float64 on the CPU."""
    graph = rg.trace(f, *[rg.spec(x.shape, as_dtype(x.dtype)) for x in arrays])
    wide = [x.astype(np.float64) if x.dtype == np.float32 else x for x in arrays]
    exact = rg.trace(f, *[rg.spec(x.shape, as_dtype(x.dtype)) for x in wide])(*wide)
    for y, z in zip(WgpuProgram(graph)(arrays), rg.tree.flatten(exact)[0], strict=True):
        want = z.numpy()
        np.testing.assert_allclose(y, want, rtol=rtol, atol=rtol * max(np.abs(want).max(), 1e-30))


def normal(*shape: int) -> Array:
    return R.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("sizes", [(160, 100, 130), (100, 300, 64), (257, 129, 130)])
def test_bias_and_activation_come_with_the_product(
    sizes: tuple[int, int, int], count: list[str]
) -> None:
    """Of one block of products, which are in registers, and of several, which are in memory."""
    m, k, n = sizes
    checked(lambda x, w, b: rg.tanh(x @ w + b), normal(m, k), normal(k, n) / 9, normal(n))
    assert set(count) == {"gemm"}


def test_with_products_that_are_small(count: list[str]) -> None:
    """They are sums of columns."""
    checked(lambda x, w, b: rg.tanh(x @ w + b), normal(33, 70), normal(70, 50) / 9, normal(50))
    assert "map" not in count


def test_with_the_parts_of_a_long_product(count: list[str]) -> None:
    checked(lambda x, w, b: rg.relu(x @ w + b), normal(8, 4000), normal(4000, 6), normal(6))
    assert count == ["gemm", "gemm"]


def test_stacks_of_products(count: list[str]) -> None:
    checked(lambda a, b: rg.exp((a @ b) / 30), normal(3, 130, 120), normal(3, 120, 130))
    assert count == ["gemm"]


def test_several_results_of_one_map(count: list[str]) -> None:
    def f(x: Any, w: Any) -> Any:
        y = rg.tanh(x @ w)
        return y, 1 - y * y

    checked(f, normal(20, 30) / 5, normal(30, 40))
    assert "map" not in count


def test_softmax_takes_two_dispatches(count: list[str]) -> None:
    """The exponentials come with the maximum of the row, the quotients with the sum."""
    checked(lambda x: rg.softmax(x, axis=1), normal(37, 300))
    assert len(count) == 2


def test_what_others_read_is_written_too() -> None:
    def f(x: Any, w: Any) -> Any:
        y = x @ w
        return rg.sigmoid(y), y, y.sum(axis=0)

    checked(f, normal(40, 50), normal(50, 33))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: (x @ w).T + 1.0,
        lambda x, w: (x @ w)[::-1] * 2.0,
        lambda x, w: (y := x @ w) * y[:, :1],
        lambda x, w: (x @ w).reshape(-1)[1:] + (x @ w).reshape(-1)[:-1],
    ],
)
def test_elements_in_another_order_wait_for_all(f: Callable[..., Any]) -> None:
    checked(f, normal(48, 20), normal(20, 48))


def test_rows_of_a_reduction_that_is_read_across() -> None:
    """Each point reads the sum of another row than its own."""
    checked(lambda x: x / x.sum(axis=1)[None, :], np.abs(normal(90, 90)) + 1)


def test_memory_that_the_map_would_take_is_still_read() -> None:
    """A chain of products whose buffers take turns in the arena."""

    def f(x: Any, *ws: Any) -> Any:
        for w in ws:
            x = rg.tanh(x @ w)
        return x

    checked(f, normal(64, 64), *[normal(64, 64) / 8 for _ in range(6)], rtol=1e-4)


def test_gradients_and_steps_that_donate() -> None:
    def step(w: Any, b: Any, x: Any) -> Any:
        loss = lambda w, b: (rg.tanh(x @ w + b) ** 2).mean()
        dw, db = rg.grad(loss, argnums=(0, 1))(w, b)
        return w - 0.1 * dw, b - 0.1 * db

    w, b, x = normal(30, 20), normal(20), normal(64, 30)
    made = rg.jit(step, donate=("w", "b"))
    with rg.backend("wgpu"):
        u, v = rg.tensor(w), rg.tensor(b)
        for _ in range(3):
            u, v = made(u, v, rg.tensor(x))
        found = u.numpy(), v.numpy()
    u, v = rg.tensor(w.astype(np.float64)), rg.tensor(b.astype(np.float64))
    for _ in range(3):
        u, v = step(u, v, rg.tensor(x.astype(np.float64)))
    for y, z in zip(found, (u, v), strict=True):
        np.testing.assert_allclose(y, z.numpy(), rtol=1e-4, atol=1e-5)


def test_more_buffers_than_a_shader_may_bind(count: list[str]) -> None:
    """Then the map is a dispatch of its own."""
    from tests.wgpu.gpu import device_with

    def f(x: Any, w: Any, *others: Any) -> Any:
        return sum(others, x @ w)

    arrays = normal(130, 120), normal(120, 130), *[normal(130, 130) for _ in range(4)]
    with device_with(storage_buffers=6):
        checked(f, *arrays)
    assert count[0] == "gemm"
    assert len(count) > 1


def test_a_map_that_moved_is_told_to_the_arena() -> None:
    """Its kernel has the time of the product that does it."""
    graph = rg.trace(lambda x, w: rg.tanh(x @ w), rg.spec((8, 8)), rg.spec((8, 8)))
    program = WgpuProgram(graph)
    made = Specialization(program.plan, program.status, {}, dry=True)
    assert len(made.items) == 1
    assert len(program.plan.kernels) == 2
