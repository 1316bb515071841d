"""The search finds what it is to find, and nothing where bounds hold."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import RULES
from tests.verify.bound_propagation.campaign import METHODS, attacked_network, campaign, search


def wrong(
    kind: str, samples: int, count: int, seed: int = 0, names: list[str] | None = None
) -> str:
    found = [x.wrong for _, _, x in campaign(seed, samples, [kind], count, names)]
    return "; ".join(w for w in found if w)


def test_the_search_comes_to_the_corner_of_a_box():
    """Of 24 numbers, by crossing and changing alone: one in 16 million corners."""
    n, rng = 24, np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], n)
    region = [([(np.zeros(n), np.ones(n))], np.zeros(n))]

    def run(x: list[np.ndarray]) -> list[np.ndarray]:
        return [x[0] @ signs]

    most = float(np.maximum(signs, 0).sum())
    ends = Interval(np.asarray(most - n), np.asarray(most))
    whole = search(rng, run, region, [[ends]], 256, 40)
    assert not whole.wrong
    assert whole.reached == 1.0
    short = Interval(ends.lower, ends.upper - 1e-9)
    assert search(rng, run, region, [[short]], 256, 40).wrong


@pytest.mark.slow
def test_a_wrong_rule_is_found(monkeypatch):
    """A hyperbolic tangent that is a little flatter."""
    right = RULES["tanh"]

    def flat(node, x):
        found = right(node, x)
        if not isinstance(found, Interval):  # of a complex number
            return found
        return Interval(found.lower * (1 - 2e-6), found.upper * (1 - 2e-6), found.nan)

    monkeypatch.setitem(RULES, "tanh", flat)
    assert wrong("ops", 0, 512, names=["tanh"])
    monkeypatch.setitem(RULES, "tanh", right)
    assert not wrong("ops", 0, 512, names=["tanh"])


@pytest.mark.slow
def test_networks_and_operations_hold():
    with rg.backend("reference"):
        assert not attacked_network(0, 64, 3, METHODS[:2]).wrong
    assert not wrong("ops", 0, 256, names=["mul", "gamma", "cumsum"])
    assert not wrong("graphs", 1_000, 256)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["networks", "ops", "graphs"])
def test_ten_million_inputs_of_each_kind(kind):
    assert not wrong(kind, 10_000_000, 8192, seed=1)
