"""einops on tensors, against einops on NumPy's arrays."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import retrograd as rg

einops = pytest.importorskip("einops")

A = np.random.default_rng(0).uniform(size=(4, 6, 5, 3))


@pytest.fixture(autouse=True)
def _on_the_reference() -> Any:
    with rg.backend("reference"):
        yield


@pytest.mark.parametrize(
    "f",
    [
        lambda x: einops.rearrange(x, "b (h p) (w q) c -> b h w (p q c)", p=2, q=5),
        lambda x: einops.rearrange(x, "b ... c -> c ... b 1"),
        lambda x: einops.rearrange([x, x], "n b h w c -> b n h w c"),
        lambda x: einops.reduce(x, "b (h p) w c -> b h c", "mean", p=2),
        lambda x: einops.reduce(x, "b h w c -> b () () c", "max"),
        lambda x: einops.reduce(x, "b h w c -> c b", "min"),
        lambda x: einops.reduce(x, "b h w c -> ", "prod"),
        lambda x: einops.reduce(x, "b h w c -> w", "sum"),
        lambda x: einops.reduce(x > 0.1, "b h w c -> b c", "all"),
        lambda x: einops.reduce(x > 0.9, "b h w c -> b c", "any"),
        lambda x: einops.repeat(x, "b h w c -> b (h r) w c s", r=2, s=3),
        lambda x: einops.einsum(x, x, "b h w c, b h w d -> b c d"),
        lambda x: einops.pack([x, x[:, 0]], "b * c")[0],
        lambda x: einops.unpack(x, [(2,), (3,)], "b h * c")[1],
    ],
)
def test_results_are_those_of_numpy(f: Any) -> None:
    y = f(rg.asarray(A))
    assert isinstance(y, rg.Tensor)
    np.testing.assert_allclose(y, f(A), rtol=1e-12)


def test_means_are_of_floats_only_and_patterns_have_to_fit() -> None:
    with pytest.raises(NotImplementedError, match="non-floating"):
        einops.reduce(rg.arange(6), "(a b) -> a", "mean", b=2)
    with pytest.raises(einops.EinopsError, match=r"Shape mismatch|Wrong shape"):
        einops.rearrange(rg.ones((2, 3)), "a b c -> c b a")
    assert einops.parse_shape(rg.asarray(A), "b _ w _") == {"b": 4, "w": 5}
    assert isinstance(einops.asnumpy(rg.ones(2)), np.ndarray)


def test_gradients_go_through() -> None:
    def loss(x: Any) -> Any:
        y = einops.rearrange(x, "b (h p) w c -> (b p) h (w c)", p=3)
        return (einops.repeat(y, "a h k -> a h k r", r=2) ** 2).sum()

    np.testing.assert_allclose(rg.grad(loss)(rg.asarray(A)), 4 * A, rtol=1e-12)
    x = rg.tensor(A, requires_grad=True)
    einops.reduce(x, "b h w c -> c", "mean").sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, np.full(A.shape, 1 / 120), rtol=1e-12)


def test_compiled_and_batched() -> None:
    f = rg.jit(lambda x: einops.reduce(x, "(b two) h w c -> c b", "mean", two=2))
    for n in (4, 2, 6):  # sizes that change get names
        np.testing.assert_allclose(f(rg.ones((n, 6, 5, 3))), np.ones((3, n // 2)))
    batched = rg.vmap(lambda x: einops.rearrange(x, "h w c -> c (h w)"))(rg.asarray(A))
    np.testing.assert_array_equal(batched, einops.rearrange(A, "b h w c -> b c (h w)"))


@pytest.mark.slow
def test_einops_may_be_imported_first() -> None:
    code = (
        "import einops, retrograd as rg; "
        "assert einops.rearrange(rg.ones((2, 3)), 'a b -> b a').shape == (3, 2)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
