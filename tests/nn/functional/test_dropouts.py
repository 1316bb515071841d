"""Dropout as a function: whole channels, and the moments that are kept."""

from __future__ import annotations

import numpy as np

import retrograd as rg

F = rg.nn.functional


def test_dropout_variants() -> None:
    """Whole channels; means and variances as promised."""
    g = rg.random.Generator(5)
    x = rg.asarray(np.random.default_rng(0).normal(size=(40, 50, 6)))
    y = F.dropout1d(x, 0.3, generator=g).numpy()
    gone = (y == 0).all(-1)
    assert ((y == 0).any(-1) == gone).all()
    np.testing.assert_allclose(gone.mean(), 0.3, atol=0.03)
    np.testing.assert_allclose(y[~gone], x.numpy()[~gone] / 0.7)
    for f in (F.alpha_dropout, F.feature_alpha_dropout):
        z = f(x, 0.4, training=True, generator=g).numpy()
        np.testing.assert_allclose([z.mean(), z.var()], [0, 1], atol=0.08)
        assert f(x, 0.4) is x
