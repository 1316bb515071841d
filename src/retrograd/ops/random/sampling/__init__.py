"""Random samples as formulas of a key and parameters, of correctly rounded operations only.

Each is written once, for NumPy's arrays and for nodes of a graph (`numbers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.ir import DType, float32, float64
from retrograd.ops.random.sampling import continuous as c
from retrograd.ops.random.sampling import discrete as n
from retrograd.ops.random.sampling import normal
from retrograd.ops.random.sampling.numbers import Arrays, Nodes, Numbers

__all__ = ["FORMULAS", "Arrays", "Formula", "Nodes", "Numbers"]


class Formula(NamedTuple):
    """How samples are drawn: `draw(m, key, shape, *parameters, *settings)`."""

    draw: Callable[..., Any]
    parameters: int = 0  # doubles of the shape of the samples
    settings: int = 0  # numbers that are known when the graph is built
    proposals: int = 1  # about how often as much is computed as there are samples
    dtype: DType = float64


FORMULAS: dict[str, Formula] = {
    "normal": Formula(normal.normal),
    "normal32": Formula(normal.normal32, dtype=float32),
    "unit": Formula(c.unit),
    "exponential": Formula(c.exponential),
    "laplace": Formula(c.laplace),
    "logistic": Formula(c.logistic),
    "gumbel": Formula(c.gumbel),
    "cauchy": Formula(c.cauchy),
    "truncated_normal": Formula(c.truncated_normal, settings=2),
    "gamma": Formula(c.gamma, 1, proposals=c.OF_GAMMA),
    "log_gamma": Formula(c.log_gamma, 1, proposals=c.OF_GAMMA),
    "beta": Formula(c.beta, 2, proposals=2 * c.OF_GAMMA),
    "von_mises": Formula(c.von_mises, 1, proposals=c.PROPOSALS),
    "geometric": Formula(n.geometric, 1),
    "poisson": Formula(n.poisson, 1, proposals=c.PROPOSALS),
    "binomial": Formula(n.binomial, 2, proposals=c.PROPOSALS),
}
