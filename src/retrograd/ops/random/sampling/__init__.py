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
from retrograd.ops.random.sampling.numbers import GraphSampleMath, NumPySampleMath, SampleMath

__all__ = ["FORMULAS", "NumPySampleMath", "SampleFormula", "GraphSampleMath", "SampleMath"]


class SampleFormula(NamedTuple):
    """How samples are drawn: `draw(m, key, shape, *parameters, *settings)`."""

    draw: Callable[..., Any]
    parameters: int = 0  # doubles of the shape of the samples
    settings: int = 0  # numbers that are known when the graph is built
    proposals: int = 1  # about how often as much is computed as there are samples
    dtype: DType = float64


FORMULAS: dict[str, SampleFormula] = {
    "normal": SampleFormula(normal.normal),
    "normal32": SampleFormula(normal.normal32, dtype=float32),
    "unit": SampleFormula(c.unit),
    "exponential": SampleFormula(c.exponential),
    "laplace": SampleFormula(c.laplace),
    "logistic": SampleFormula(c.logistic),
    "gumbel": SampleFormula(c.gumbel),
    "cauchy": SampleFormula(c.cauchy),
    "truncated_normal": SampleFormula(c.truncated_normal, settings=2),
    "gamma": SampleFormula(c.gamma, 1, proposals=c.OF_GAMMA),
    "log_gamma": SampleFormula(c.log_gamma, 1, proposals=c.OF_GAMMA),
    "beta": SampleFormula(c.beta, 2, proposals=2 * c.OF_GAMMA),
    "von_mises": SampleFormula(c.von_mises, 1, proposals=c.PROPOSALS),
    "geometric": SampleFormula(n.geometric, 1),
    "poisson": SampleFormula(n.poisson, 1, proposals=c.PROPOSALS),
    "binomial": SampleFormula(n.binomial, 2, proposals=c.PROPOSALS),
}
