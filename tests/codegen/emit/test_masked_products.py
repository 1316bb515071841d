"""What masks leave zeros in, as the left matrix of products: the bits are those of all products."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes import optimize
from retrograd.schedule.kernel import gemms
from retrograd.schedule.planning.plan import KernelPlan

T, N = 640, 64
MASKS = {
    "causal": rg.tril,
    "window": lambda all_: rg.tril(all_) & rg.triu(all_, k=-40),
    "upper": rg.triu,
}


def masked(kind, x):
    return rg.where(MASKS[kind](rg.ones((T, T), dtype=rg.bool)), rg.exp(x), 0.0)


def products(p, v, g):
    """By the steps of tiles of rows; turned, by their rows; and by columns, of the right matrix."""
    return p @ v, p.mT @ g, g.mT @ p


def drawn():
    draw = np.random.default_rng(0)
    return [draw.standard_normal(s).astype(np.float32) for s in ((4, T, T), (4, T, N), (4, T, N))]


def change_nothing(x, v, g):
    pass


def infinity_at_the_end(x, v, g):
    v[:, -1] = np.inf
    g[:, -1] = np.inf


def minus_zeros_that_end_where_nobody_looks(x, v, g):
    x[:, ::2] = -np.inf  # whose sums are of zeros
    v[:, : T // 2, 3], v[:, T // 2 :, 3] = -1.0, 1.0


def minus_zeros_that_end_before_anybody_looks(x, v, g):
    x[:, :, 100:] = -np.inf
    g[..., 5] = -1.0
    g[:, 200:210, 5] = 1.0


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(
    "change",
    [
        change_nothing,
        infinity_at_the_end,
        minus_zeros_that_end_where_nobody_looks,
        minus_zeros_that_end_before_anybody_looks,
    ],
)
@pytest.mark.sample(4)
def test_bits_are_those_of_all_products(kind, change):
    x, v, g = drawn()
    change(x, v, g)
    own = rg.jit(lambda x, v, g: products(masked(kind, x), v, g))(x, v, g)
    p = rg.jit(lambda x: masked(kind, x))(x)
    with np.errstate(all="ignore"):
        plain = rg.jit(products)(p, v, g)
    for a, b in zip(own, plain, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_of_both_matrices_the_plan_knows_what_is_hidden():
    x, v, g = drawn()
    traced = rg.trace(lambda x, v, g: products(masked("causal", x), v, g), x, v, g)
    below = None, (1, 1)
    left = below, None
    plan = KernelPlan(optimize(traced))
    assert [nest.hidden for nest in gemms(plan.every)] == [left, left, (None, below)]
