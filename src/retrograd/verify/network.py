"""A network of sums with constant weights and ReLUs: what branch and bound works on.

Value 0 is the input, step k makes value k + 1, and the last value is the output. All of it is
exact: weights are the program's own. `dtype` of a sum is the one that the program computes it in,
whose roundings are part of every bound; "exact" is for what only moves or selects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.verify.checker import digest

Array = np.ndarray[Any, Any]
Structure = tuple[tuple[Any, ...], ...]  # of each step its kind and the values that it reads
EXACT = "exact"
# Of each dtype the unit roundoff, the least normal number and the largest number.
ROUNDING = {
    "float64": (2.0**-53, 2.0**-1022, 1.7976931348623157e308),
    "float32": (2.0**-24, 2.0**-126, 3.4028234663852886e38),
    "float16": (2.0**-11, 2.0**-14, 65504.0),
    "bfloat16": (2.0**-8, 2.0**-126, 3.3895313892515355e38),
}


@dataclass(frozen=True, eq=False)
class Affine:
    """`y = sum over terms of W v + bias`, each W of shape [outputs, size of v]."""

    terms: tuple[tuple[int, Array], ...]
    bias: Array
    dtype: str = EXACT


@dataclass(frozen=True, eq=False)
class Relu:
    """`max(v, 0)`."""

    source: int


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """Steps over one vector of inputs."""

    inputs: int
    steps: tuple[Affine | Relu, ...]

    @property
    def sizes(self) -> list[int]:
        """Of each value how many elements it has."""
        found = [self.inputs]
        for step in self.steps:
            found.append(len(step.bias) if isinstance(step, Affine) else found[step.source])
        return found

    @property
    def relus(self) -> list[int]:
        """The values that ReLUs give."""
        return [k + 1 for k, step in enumerate(self.steps) if isinstance(step, Relu)]

    @property
    def structure(self) -> Structure:
        """What it is without its weights: programs for it are compiled once."""
        return tuple(
            ("affine", *(v for v, _ in step.terms))
            if isinstance(step, Affine)
            else ("relu", step.source)
            for step in self.steps
        )

    def source(self, value: int) -> int:
        """The argument of the ReLU that gives a value."""
        step = self.steps[value - 1]
        assert isinstance(step, Relu)
        return step.source

    def __call__(self, x: Array) -> Array:
        """The output for rows of inputs, in float64."""
        values = [np.asarray(x, np.float64)]
        for step in self.steps:
            if isinstance(step, Relu):
                values.append(np.maximum(values[step.source], 0.0))
            else:
                total = np.broadcast_to(step.bias, (len(values[0]), len(step.bias)))
                values.append(total + sum(values[v] @ w.T for v, w in step.terms))
        return values[-1]

    def to_json(self) -> dict[str, Any]:
        """As certificates write it, exactly."""
        return {"inputs": self.inputs, "steps": [_step_json(step) for step in self.steps]}

    def digest(self) -> str:
        """SHA-256 of `to_json`: equal for the networks of two programs with the same weights."""
        return digest(self.to_json())


def hexes(values: Any) -> list[str]:
    """Numbers as `float.hex` writes them."""
    return [float(v).hex() for v in values]


def _step_json(step: Affine | Relu) -> dict[str, Any]:
    if isinstance(step, Relu):
        return {"kind": "relu", "from": step.source}
    terms = []
    for source, weights in step.terms:
        rows = []
        for row in weights:
            at = np.flatnonzero(row)
            rows.append([at.tolist(), hexes(row[at])])
        terms.append({"from": source, "rows": rows})
    return {"kind": "affine", "dtype": step.dtype, "terms": terms, "bias": hexes(step.bias)}
