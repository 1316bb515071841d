"""`nn.losses` has all losses of `nn.functional`."""

import retrograd as rg
from retrograd import nn


def test_all_losses_are_there() -> None:
    named = {n for n in nn.functional.__all__ if n.endswith(("_loss", "cross_entropy", "kl_div"))}
    named.add("binary_cross_entropy_with_logits")
    assert set(nn.losses.__all__) == named
    assert all(getattr(nn.losses, n) is getattr(nn.functional, n) for n in named)
    assert rg.nn.losses.mse_loss([1.0], [0.0]).item() == 1
