"""Tests with values looked at along the way, and without."""

from __future__ import annotations

import pytest

import retrograd as rg

looking = pytest.mark.parametrize("look", [False, True], ids=["unseen", "seen"])


def leaf() -> rg.Tensor:
    return rg.tensor([1.0, 2.0], requires_grad=True)
