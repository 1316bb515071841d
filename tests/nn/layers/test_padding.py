"""Padding layers: NumPy's results of the same names, and what they refuse."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
MODES: dict[str, dict[str, Any]] = {
    "Zero": {"mode": "constant"},
    "Constant": {"mode": "constant", "constant_values": 2.5},
    "Circular": {"mode": "wrap"},
    "Reflection": {"mode": "reflect"},
    "Replication": {"mode": "edge"},
}


@pytest.mark.parametrize("kind", MODES)
def test_numbers_are_before_and_after_from_the_last_axis_on(kind: str) -> None:
    value = (2.5,) if kind == "Constant" else ()
    one = getattr(nn, f"{kind}Pad1d")((1, 2), *value)
    two = getattr(nn, f"{kind}Pad2d")((3, 0, 1, 2), *value)
    x = X[0]
    np.testing.assert_array_equal(
        one(x).numpy(), np.pad(x, [(0, 0), (0, 0), (1, 2)], **MODES[kind])
    )
    widths = [(0, 0), (0, 0), (1, 2), (3, 0)]
    np.testing.assert_array_equal(two(X).numpy(), np.pad(X, widths, **MODES[kind]))


def test_one_number_is_for_every_side() -> None:
    layer = nn.ReplicationPad3d(1)
    x = X[None]
    widths = [(0, 0), (0, 0), (1, 1), (1, 1), (1, 1)]
    np.testing.assert_array_equal(layer(x).numpy(), np.pad(x, widths, mode="edge"))
    assert repr(layer) == "ReplicationPad3d((1, 1, 1, 1, 1, 1))"
    assert repr(nn.ConstantPad1d(1, 2.0)) == "ConstantPad1d(padding=(1, 1), value=2.0)"


def test_refusals() -> None:
    with pytest.raises(rg.OptionError, match="ReflectionPad2d takes one number, or 4"):
        nn.ReflectionPad2d((1, 2))
    with pytest.raises(rg.ShapeError):
        nn.ReflectionPad1d(5)(X[0])  # not narrower than the axis
    with pytest.raises(rg.ShapeError):
        nn.ZeroPad3d(1)(np.ones(4))
