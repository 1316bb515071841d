"""Derivatives in parameters and hypergeometric functions in boxes, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from retrograd.ir import TensorType, float64
from retrograd.ops.leaf import input_node
from retrograd.ops.random import implicit_gradients as ig
from retrograd.ops.special import functions as sf
from retrograd.ops.special import scipy_functions as sc
from retrograd.verify.bound_propagation.interval import Interval
from retrograd.verify.bound_propagation.propagation import interval_of
from retrograd.verify.records.special import von_mises_slope

mp = pytest.importorskip("mpmath")
Function = Callable[..., Any]


def gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def slope(f: Function, *orders: int) -> Function:
    return lambda *at: mp.diff(f, tuple(mp.mpf(float(v)) for v in at), orders)


# An op, what it is, and its inputs: parameters, positive numbers, parts of 1, any numbers.
CASES: dict[Any, tuple[Function, str]] = {
    sf.gammainc_da: (slope(gamma, 1, 0), "px"),
    sf.gammainc_daa: (slope(gamma, 2, 0), "px"),
    sf.betainc_da: (slope(beta, 1, 0, 0), "ppu"),
    sf.betainc_db: (slope(beta, 0, 1, 0), "ppu"),
    sf.betainc_daa: (slope(beta, 2, 0, 0), "ppu"),
    sf.betainc_dab: (slope(beta, 1, 1, 0), "ppu"),
    sf.betainc_dbb: (slope(beta, 0, 2, 0), "ppu"),
    sc.hyp1f1: (mp.hyp1f1, "ppr"),
    sc.hyp1f1_da: (slope(mp.hyp1f1, 1, 0, 0), "ppx"),
    sc.hyp1f1_db: (slope(mp.hyp1f1, 0, 1, 0), "ppx"),
    sc.hyp2f1: (mp.hyp2f1, "pppv"),
    sc.hyp2f1_da: (slope(mp.hyp2f1, 1, 0, 0, 0), "pppu"),
    sc.hyp2f1_dc: (slope(mp.hyp2f1, 0, 0, 1, 0), "pppu"),
}
# Inputs of any sign, where only magnitudes are known.
MIXED: dict[Any, tuple[Function, str]] = {
    sc.hyp1f1: (mp.hyp1f1, "rpr"),
    sc.hyp1f1_da: (slope(mp.hyp1f1, 1, 0, 0), "rpr"),
    sc.hyp1f1_db: (slope(mp.hyp1f1, 0, 1, 0), "rpr"),
    sc.hyp2f1: (mp.hyp2f1, "rrpw"),
    sc.hyp2f1_da: (slope(mp.hyp2f1, 1, 0, 0, 0), "rrpw"),
    sc.hyp2f1_dc: (slope(mp.hyp2f1, 0, 0, 1, 0), "rrpw"),
    ig.von_mises_slope: (partial(von_mises_slope, mp), "xc"),
    sc.lpmv: (lambda m, v, x: mp.legenp(int(v), int(m), x), "klw"),
}
DRAWS: dict[str, Function] = {
    "p": lambda rng, n: np.exp(rng.uniform(-2, 2.5, n)),
    "x": lambda rng, n: np.exp(rng.uniform(-3, 2.5, n)),
    "r": lambda rng, n: rng.normal(size=n) * 4,
    "u": lambda rng, n: rng.uniform(0.02, 0.95, n),
    "v": lambda rng, n: rng.uniform(-3, 0.9, n),
    "w": lambda rng, n: rng.uniform(-0.8, 0.8, n),
    "c": lambda rng, n: rng.uniform(-3, 2.8, n),
    "k": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "l": lambda rng, n: rng.integers(-4, 7, n).astype(float),
}


def box(rng: Any, kind: str, width: float, n: int) -> Interval:
    x = DRAWS[kind](rng, n)
    if kind in "kl":  # orders are known
        return Interval(x, x)
    below, above = width * rng.random((2, n)) * (np.abs(x) if kind in "px" else 0.1)
    return Interval(x - below / 2, np.minimum(x + above, 0.97 if kind in "uv" else np.inf))


def missed(
    op: Any, width: float, n: int, seed: int = 0, cases: Any = CASES
) -> tuple[list[str], int]:
    """Values that are not within bounds at some points of n boxes, and how many boxes have any."""
    rng = np.random.default_rng([seed, int(width * 1000)])
    f, kinds = cases[op]
    given = [box(rng, k, width, n) for k in kinds]
    nodes = [input_node(TensorType(float64, (n,))) for _ in kinds]
    with np.errstate(all="ignore"):
        found = interval_of(op(*nodes), given)
    wrong = []
    for i in range(n):
        for _ in range(2):
            t = rng.choice([0.0, 1.0, rng.random()], len(given))
            at = [x.lower[i] + (x.upper[i] - x.lower[i]) * s for x, s in zip(given, t, strict=True)]
            y = float(f(*at))
            if not found.lower[i] <= y <= found.upper[i]:
                wrong.append(f"{op.name}{at} is {y}, not in [{found.lower[i]}, {found.upper[i]}]")
    return wrong, int((np.isfinite(found.lower) & np.isfinite(found.upper)).sum())


@pytest.mark.parametrize("op", [sf.gammainc_da, sc.hyp1f1], ids=lambda op: op.name)
def test_values_are_inside(op):
    wrong, bounded = missed(op, 0.3, 4)
    assert not wrong
    assert bounded >= 3


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("op", CASES, ids=lambda op: op.name)
def test_values_of_all_are_inside(op, width):
    wrong, bounded = missed(op, width, 24)
    assert not wrong
    assert bounded >= 16  # left of 0 the order of the parameters counts


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("op", MIXED, ids=lambda op: op.name)
def test_values_of_inputs_of_any_sign_are_inside(op, width):
    wrong, bounded = missed(op, width, 24, cases=MIXED)
    assert not wrong
    assert bounded >= 16  # Legendre functions of orders below the degree are others


def test_bounds_come_to_the_value_as_the_box_does():
    for width in (1e-2, 1e-4):
        a, x = (Interval(np.array([v]), np.array([v * (1 + width)])) for v in (1.5, 2.0))
        nodes = [input_node(TensorType(float64, (1,))) for _ in range(2)]
        found = interval_of(sf.gammainc_da(*nodes), [a, x])
        assert (found.upper - found.lower)[0] < 5 * width + 1e-5


def test_nothing_is_promised_beyond_the_domain():
    nodes = [input_node(TensorType(float64, (2,))) for _ in range(3)]
    one = np.ones(2)
    a = Interval(np.array([-0.5, 2.0]), np.array([0.5, 3.0]))
    b = Interval(-one / 2, one)  # with a pole at 0
    with np.errstate(all="ignore"):
        found = interval_of(sc.hyp1f1(*nodes), [a, b, Interval(-one, one)])
    assert np.isinf(found.lower).all()
    assert np.isinf(found.upper).all()
