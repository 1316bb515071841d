"""Padding in all modes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.functions.numpy_api.sweeps import agree, numbers

WIDTHS = [0, 1, (1, 2), ((0, 3),), ((1, 0), (7, 9)), ((5, 6), (0, 0))]
MODES = ["constant", "edge", "linear_ramp", "maximum", "minimum", "mean", "median", "reflect",
         "symmetric", "wrap"]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.sample(4)
def test_modes(mode: str) -> None:
    for shape in ((3, 4), (1, 2), (1, 1)):
        for width in WIDTHS:
            agree("pad", numbers(2, shape), width, mode)
    agree("pad", numbers(2, (5,), "int64") * 3, (2, 3), mode)
    agree("pad", numbers(2, (0,)), 1, mode)


def test_options() -> None:
    x = numbers(1, (3, 4))
    for kind in ("reflect", "symmetric"):
        for width in WIDTHS:
            agree("pad", x, width, kind, reflect_type="odd")
    for length in (1, 2, (1, 2), ((1, 2), (3, 9))):
        agree("pad", x, 2, "mean", stat_length=length)
    agree("pad", x, {1: (1, 2)}, "edge")
    agree("pad", x, 2, "linear_ramp", end_values=((1, 2), (3, 4)))
    agree("pad", x, 2, constant_values=((1, 2), (3, 4)))
    agree("pad", x, 1, "mirror")
    assert rg.pad([1.0], 1, value=rg.tensor(2.0)).tolist() == [2.0, 1.0, 2.0]
    with pytest.raises(rg.OptionError, match="reflect_type"):
        rg.pad([1.0], 1, "reflect", reflect_type="strange")


def test_named_sizes() -> None:
    """One program serves every size."""
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        f = rg.jit(lambda x, mode=mode: rg.pad(x, (2, 3), mode), shapes={"x": "N"})
        for n in (1, 2, 4):
            x = np.arange(1.0, n + 1)
            np.testing.assert_array_equal(f(x).numpy(), np.pad(x, (2, 3), mode))


def test_gradient() -> None:
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    rg.pad(x, (3, 0), "reflect").sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 3.0, 2.0]
