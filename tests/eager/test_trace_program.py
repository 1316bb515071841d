"""Programs of recordings: what is computed along with what is looked at."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from tests.eager.recorded import X, parameter


# -- what somebody holds --------------------------------------------------------------------------
def test_what_is_held_is_computed_along_and_what_is_not_is_not():
    x = rg.tensor(np.tile(X, (8, 1)))
    h = x * 2.5
    y = (h + 1.5).sum()
    other = rg.exp(x)
    y.item()
    assert h.is_computed
    assert not other.is_computed
    np.testing.assert_allclose(other.numpy(), np.exp(x.numpy()), rtol=1e-6)


def test_gradients_are_computed_along_with_their_loss_and_the_other_way_round():
    w = parameter(3)
    for look in (lambda loss: loss.item(), lambda loss: w.grad.numpy()):
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        look(loss)
        assert loss.is_computed
        assert w.grad is not None
        assert w.grad.is_computed
