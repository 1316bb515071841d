"""What masks hide is not computed, and no bit shows it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.passes import optimize
from retrograd.runtime.backend import Array
from retrograd.schedule.kernel import gemms
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.schedule.tiling.masked_domain import masked_domain
from retrograd.tuning import TUNING
from tests.runtime.agreement import GuardedProgram
from tests.schedule.tiling.attention import given

SHOWN = 1 << 40  # rows that are shorter are computed throughout


def visible(rows: int, keys: int, kind: str) -> Any:
    """Masks made of positions: true where a pair counts."""
    all_ = rg.ones((rows, keys), dtype=rg.bool)
    below, above = (lambda k: rg.tril(all_, k=k)), (lambda k: rg.triu(all_, k=k))
    return {
        "causal": lambda: below(0),
        "strictly": lambda: below(-1),  # the first row sees nothing
        "from the end": lambda: below(keys - rows),
        "window": lambda: below(0) & above(-19),
        "both sides": lambda: above(-5) & below(70),
        "later": lambda: ~below(0),
        "nothing": lambda: below(-10 * keys),
    }[kind]()


def attend(kind: str, q: Any, k: Any, v: Any) -> Any:
    """Attention with rows that may see nothing."""
    scores = q @ k.mT
    rows, keys = scores.shape[-2:]
    allowed = visible(rows, keys, kind)
    top = rg.max(rg.where(allowed, scores, -math.inf), axis=-1, keepdims=True)
    top = rg.stop_gradient(rg.where(top == -math.inf, 0.0, top))
    e = rg.exp(rg.where(allowed, scores - top, -math.inf))
    negative = rg.sum(rg.where(allowed, -e * e, 0.0), axis=-1, keepdims=True)
    total = rg.sum(e, axis=-1, keepdims=True)
    return e @ v / rg.where(total == 0, 1.0, total) + negative


def graphs(kind: str, arrays: list[Array]) -> list[Graph]:
    def loss(q: Any, k: Any, v: Any) -> Any:
        y = attend(kind, q, k, v)
        return (y * rg.sin(y)).sum()

    forward = rg.trace(lambda q, k, v: attend(kind, q, k, v), *arrays)
    return [optimize(forward), optimize(rg.trace(rg.grad(loss, argnums=(0, 1, 2)), *arrays))]


KINDS = ("causal", "strictly", "from the end", "window", "both sides", "later", "nothing")
SIZES = [((2, 130), 150), ((3, 2, 300), 300), ((2, 17), 2100), ((2, 1040), 133)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "keys"), SIZES, ids=str)
@pytest.mark.sample(4)
def test_no_bit_differs(kind, shape, keys, monkeypatch):
    arrays = given(shape, 24, keys)
    arrays[0][..., 1, :] *= 1e30  # scores that overflow
    arrays[2][0, ..., keys // 2, 3] = np.inf  # a value that is not finite
    for graph in graphs(kind, arrays):
        monkeypatch.setattr(TUNING, "masked_row_elements", 1)
        program = GuardedProgram(graph)
        found = [y.copy() for y in program(arrays)]
        program.check_guards()
        assert any(masked_domain(n) for k in program.plan.kernels for n in k.nests)
        monkeypatch.setattr(TUNING, "masked_row_elements", SHOWN)
        plain = GuardedProgram(graph)
        assert not any(masked_domain(n) for k in plain.plan.kernels for n in k.nests)
        for y, r in zip(found, plain(arrays), strict=True):
            np.testing.assert_array_equal(np.isnan(y), np.isnan(r))
            assert np.nan_to_num(y).tobytes() == np.nan_to_num(r).tobytes()


@pytest.mark.parametrize(("kind", "part"), [
    ("causal", (None, (1, 1))), ("window", ((-19, 1), (1, 1))), ("from the end", (None, (51, 1))),
])  # fmt: skip
def test_products_know_which_part_is_read(kind, part):
    arrays = given((2, 150), 24, 200)
    plan = KernelPlan(graphs(kind, arrays)[0])
    assert [nest.visible for nest in gemms(plan.kernels)] == [part]


def test_a_row_that_somebody_else_reads_is_computed():
    """The scores themselves are an output, or are added up elsewhere."""
    arrays = given((2, 150), 24, 200)

    def both(q: Any, k: Any, v: Any) -> Any:
        return attend("causal", q, k, v), (q @ k.mT).sum()

    plan = KernelPlan(optimize(rg.trace(both, *arrays)))
    assert not any(nest.visible for nest in gemms(plan.kernels))


def test_terms_of_minus_zero_and_hidden_zeros_add_up_to_zero():
    x = -np.zeros((3, 200), np.float32)
    graph = rg.trace(lambda x: rg.sum(rg.tril(x), axis=-1), x)
    (y,) = GuardedProgram(optimize(graph))([x])
    assert not np.signbit(y).any()
    whole = rg.trace(lambda x: rg.sum(rg.tril(x, k=300), axis=-1), x)
    (y,) = GuardedProgram(optimize(whole))([x])
    assert np.signbit(y).all()


@pytest.mark.parametrize("fill", [0.5, math.inf, math.nan])
def test_maps_take_any_number(fill):
    x = np.random.default_rng(0).normal(size=(37, 261)).astype(np.float32)
    i, j = np.indices(x.shape)

    def f(x: Any) -> Any:
        return rg.where(visible(x.shape[0], x.shape[1], "window"), rg.sin(x), fill), rg.where(
            visible(x.shape[0], x.shape[1], "later"), x, 2 * fill
        )

    graph = optimize(rg.trace(f, x))
    program = GuardedProgram(graph)
    found = program([x])
    program.check_guards()
    plain = [np.where((j <= i) & (i - j < 20), np.sin(x), fill), np.where(j > i, x, 2 * fill)]
    for y, r in zip(found, plain, strict=True):
        np.testing.assert_allclose(y, r, rtol=1e-6)
