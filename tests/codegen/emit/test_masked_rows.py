"""Rows that masks hide in part: only the visible part is gone through, to the same bits."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.emit import masked_rows
from retrograd.ir import Graph
from retrograd.passes import optimize
from retrograd.runtime.executable import Executable


def masked(rows: int, keys: int, lower: bool) -> Graph:
    """Sums of rows of which a band is visible."""

    def f(x):
        shown = rg.tril(rg.ones((rows, keys), dtype=rg.bool))
        if lower:
            shown = shown & rg.triu(rg.ones((rows, keys), dtype=rg.bool), k=-40)
        return rg.sum(rg.where(shown, rg.exp(x) * x, 0.0), axis=-1)

    return optimize(rg.trace(f, rg.spec((rows, keys), rg.float32)))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("rows", "keys"), [(3, 200), (130, 333), (400, 257)])
def test_the_visible_part_has_the_bits_of_whole_rows(rows, keys, lower, monkeypatch):
    x = np.random.default_rng(0).normal(size=(rows, keys)).astype(np.float32)
    (found,) = Executable(masked(rows, keys, lower))([x])
    monkeypatch.setattr(masked_rows, "masked_domain", lambda nest: None)
    (whole,) = Executable(masked(rows, keys, lower))([x])
    np.testing.assert_array_equal(found, whole)
    shown = np.tril(np.ones((rows, keys)))
    shown *= np.triu(shown, -40) if lower else 1
    np.testing.assert_allclose(found, (np.exp(x) * x * shown).sum(-1), rtol=1e-4, atol=1e-4)


def test_infinities_that_are_hidden_do_not_matter():
    x = np.where(np.tril(np.ones((130, 200))) > 0, 0.5, np.inf).astype(np.float32)
    (found,) = Executable(masked(130, 200, False))([x])
    np.testing.assert_allclose(found, np.exp(0.5) * 0.5 * np.arange(1, 131), rtol=1e-5)
