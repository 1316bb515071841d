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


def test_what_takes_little_more_of_what_is_computed_is_computed_along():
    """Else the next step would go on from two recordings."""
    w, x = parameter(40, 40), rg.tensor(np.ones((300, 40), np.float32))
    norm = rg.nn.BatchNorm1d(40)
    running = rg.zeros(40)
    for _ in range(2):
        h = rg.tanh(x @ w)
        with rg.no_grad():
            running = 0.9 * running + 0.1 * (h * h).mean(axis=0)
        dear, apart, may_fail = h @ h.T, rg.sin(x), rg.sort(h)
        loss = (norm(h) ** 2).sum()
        loss.backward()
        loss.item()
        assert running.is_computed
        assert norm.running_mean.is_computed
        assert norm.running_var.is_computed
        assert norm.num_batches_tracked.is_computed
        assert not any(y.is_computed for y in (dear, apart, may_fail))


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
